"""
factor_violins: factors in the classes of a covariate
=====================================================

Classes with few samples are drawn as points. A covariate of numbers is cut at its quartiles.

See :func:`kofa.plot.factor_violins` for all its parameters.
"""

from sklearn.datasets import load_wine

import kofa

wine = load_wine(as_frame=True)
data = {"minerals": wine.data.iloc[:, :5], "phenols": wine.data.iloc[:, 5:]}
model = kofa.FactorModel().fit(data)
cultivar = wine.target.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"}).rename("cultivar")
kofa.plot.factor_violins(model, by=cultivar, n=3)
