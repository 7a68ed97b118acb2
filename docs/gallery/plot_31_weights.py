"""
weights: all weights of a factor in their order
===============================================

Weights are in standard deviations of each feature, so that features in different units can be
compared. `scale="weight"` shows them in their own units.

See :func:`kofa.plot.weights` for all its parameters.
"""

from sklearn.datasets import load_breast_cancer

import kofa

cells = load_breast_cancer(as_frame=True)
data = {"mean": cells.data.iloc[:, :10], "worst": cells.data.iloc[:, 20:]}
model = kofa.FactorModel().fit(data)
kofa.plot.weights(model, "worst", "factor1")
