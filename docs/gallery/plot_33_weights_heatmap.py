"""
weights_heatmap: features by factors
====================================

Features stand with the factor for which their weight is the largest.

See :func:`kofa.plot.weights_heatmap` for all its parameters.
"""

from sklearn.datasets import load_breast_cancer

import kofa

cells = load_breast_cancer(as_frame=True)
data = {"mean": cells.data.iloc[:, :10], "worst": cells.data.iloc[:, 20:]}
model = kofa.FactorModel().fit(data)
kofa.plot.weights_heatmap(model, "worst", factors=[0, 1, 2, 3])
