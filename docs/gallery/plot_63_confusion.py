"""
confusion: which classes are taken for which?
=============================================

Numbers of held-out samples, coloured by the share of the true class.

See :func:`kofa.plot.confusion` for all its parameters.
"""

from sklearn.datasets import load_wine

import kofa

X, y = load_wine(return_X_y=True)
views = {"minerals": kofa.Real(), "cultivar": kofa.Categorical()}
model = kofa.FactorModel(views, outputs=["cultivar"])
scores, held_out = kofa.cross_validate(
    model, {"minerals": X[:, :5], "cultivar": y}, return_predictions=True
)
kofa.plot.confusion(held_out)
