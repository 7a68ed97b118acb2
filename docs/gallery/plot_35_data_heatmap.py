"""
data_heatmap: is the factor in the data?
========================================

The data of the features with the largest weights, samples in the order of the factor. If the
factor is real, each row goes from one colour to the other.

See :func:`kofa.plot.data_heatmap` for all its parameters.
"""

from sklearn.datasets import load_breast_cancer

import kofa

cells = load_breast_cancer(as_frame=True)
data = {"mean": cells.data.iloc[:, :10], "worst": cells.data.iloc[:, 20:]}
model = kofa.FactorModel().fit(data)
kofa.plot.data_heatmap(model, data, "worst", "factor1", n=8)
