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
models = {}
for name in ("person", "blood", "both"):
    views = {name: kofa.Real(), "progress": kofa.Real()}
    models[name] = kofa.FactorModel(views, outputs=["progress"])
data = {"person": X.iloc[:, :4], "blood": X.iloc[:, 4:], "both": X, "progress": y}
scores = kofa.compare(models, data)
kofa.plot.compare(scores, "r2")
