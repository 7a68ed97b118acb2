"""
compare: models on the same folds
=================================

A thin line for each fold, a thick one for the mean: what matters is whether the thin lines go the
same way.

See :func:`kofa.plot.compare` for all its parameters.
"""

from sklearn.datasets import load_diabetes

import kofa

X, y = load_diabetes(return_X_y=True, as_frame=True)
views = {"blood": kofa.Real(), "progress": kofa.Real()}
models = {n: kofa.FactorModel(views, outputs=["progress"], n_factors=n) for n in (1, 2, 4)}
scores = kofa.compare(models, {"blood": X, "progress": y})
kofa.plot.compare(scores, "r2")
