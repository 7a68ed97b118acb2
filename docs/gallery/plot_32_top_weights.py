"""
top_weights: the features that a factor changes most
====================================================

Lines are two standard deviations of the posterior to either side. Bars are pale where even the
sign is not certain.

See :func:`kofa.plot.top_weights` for all its parameters.
"""

from sklearn.datasets import load_breast_cancer

import kofa

cells = load_breast_cancer(as_frame=True)
data = {"mean": cells.data.iloc[:, :10], "worst": cells.data.iloc[:, 20:]}
model = kofa.FactorModel().fit(data)
kofa.plot.top_weights(model, "worst", "factor2")
