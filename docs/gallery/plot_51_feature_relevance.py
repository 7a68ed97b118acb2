"""
feature_relevance: which features do the outputs depend on?
===========================================================

The pixels that tell a 3 from an 8. Without `image_shape` the largest are drawn as bars.

See :func:`kofa.plot.feature_relevance` for all its parameters.
"""

from sklearn.datasets import load_digits

import kofa

images, digits = load_digits(return_X_y=True)
some = ((digits == 3) | (digits == 8)).nonzero()[0][:200]
X = images[some].reshape(-1, 8, 8)[:, :, 2:7].reshape(-1, 40)  # what is not always empty
views = {"image": kofa.Real(kernel=kofa.RBF(relevance="learn")), "digit": kofa.Categorical()}
model = kofa.FactorModel(views, outputs=["digit"]).fit({"image": X, "digit": digits[some]})
kofa.plot.feature_relevance(model, "image", image_shape=(8, 5))
