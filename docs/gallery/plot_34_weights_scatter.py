"""
weights_scatter: the weights of two factors
===========================================

A point for each feature. Features far from both axes belong to both factors.

See :func:`kofa.plot.weights_scatter` for all its parameters.
"""

from sklearn.datasets import load_breast_cancer

import kofa

cells = load_breast_cancer(as_frame=True)
data = {"mean": cells.data.iloc[:, :10], "worst": cells.data.iloc[:, 20:]}
model = kofa.FactorModel().fit(data)
kofa.plot.weights_scatter(model, "worst", x="factor1", y="factor2")
