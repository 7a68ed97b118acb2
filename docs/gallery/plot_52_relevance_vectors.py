"""
relevance_vectors: which samples does a kernel need?
====================================================

Others are compared with these samples alone. The larger, the more the outputs would lose without
it.

See :func:`kofa.plot.relevance_vectors` for all its parameters.
"""

from sklearn.datasets import load_wine

import kofa

X, y = load_wine(return_X_y=True)
views = {"wine": kofa.Real(kernel="rbf", sparse=True), "cultivar": kofa.Categorical()}
model = kofa.FactorModel(views, outputs=["cultivar"]).fit({"wine": X, "cultivar": y})
kofa.plot.relevance_vectors(model, "wine")
