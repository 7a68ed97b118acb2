"""
calibration: do intervals hold what they promise?
=================================================

The share of true values in intervals of each level. The band is what chance does to a perfect
model.

See :func:`kofa.plot.calibration` for all its parameters.
"""

from sklearn.datasets import load_diabetes

import kofa

X, y = load_diabetes(return_X_y=True, as_frame=True)
views = {"blood": kofa.Real(), "progress": kofa.Real()}
model = kofa.FactorModel(views, outputs=["progress"])
scores, held_out = kofa.cross_validate(model, {"blood": X, "progress": y}, return_predictions=True)
kofa.plot.calibration(held_out)
