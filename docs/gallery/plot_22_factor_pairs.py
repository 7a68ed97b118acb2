"""
factor_pairs: each factor against each
======================================

Scatters of all pairs, and the distribution of each factor on the diagonal.

See :func:`kofa.plot.factor_pairs` for all its parameters.
"""

from sklearn.datasets import load_wine

import kofa

wine = load_wine(as_frame=True)
data = {"minerals": wine.data.iloc[:, :5], "phenols": wine.data.iloc[:, 5:]}
model = kofa.FactorModel().fit(data)
cultivar = wine.target.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"}).rename("cultivar")
kofa.plot.factor_pairs(model, colour=cultivar, n=3)
