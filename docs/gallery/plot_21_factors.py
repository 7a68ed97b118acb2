"""
factors: samples in the plane of two factors
============================================

The colour is any covariate, which the model has not seen here. `z=` makes the plot
three-dimensional, and `ellipses=True` shows how sure each position is.

See :func:`kofa.plot.factors` for all its parameters.
"""

from sklearn.datasets import load_wine

import kofa

wine = load_wine(as_frame=True)
data = {"minerals": wine.data.iloc[:, :5], "phenols": wine.data.iloc[:, 5:]}
model = kofa.FactorModel().fit(data)
cultivar = wine.target.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"}).rename("cultivar")
kofa.plot.factors(model, colour=cultivar)
