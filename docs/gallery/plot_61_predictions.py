"""
predictions: predictions against the truth
==========================================

Each sample is predicted by a model that has not seen it. Lines are intervals of 90 %; perfect
predictions lie on the diagonal.

See :func:`kofa.plot.predictions` for all its parameters.
"""

from sklearn.datasets import load_diabetes

import kofa

X, y = load_diabetes(return_X_y=True, as_frame=True)
views = {"blood": kofa.Real(), "progress": kofa.Real()}
model = kofa.FactorModel(views, outputs=["progress"])
scores, held_out = kofa.cross_validate(model, {"blood": X, "progress": y}, return_predictions=True)
kofa.plot.predictions(held_out)
