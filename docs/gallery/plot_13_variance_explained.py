"""
variance_explained: which factor explains how much of which view
================================================================

A factor with colour in several columns is shared by these views. The bars on top are what all
factors explain together.

See :func:`kofa.plot.variance_explained` for all its parameters.
"""

from sklearn.datasets import load_wine

import kofa

wine = load_wine(as_frame=True)
data = {"minerals": wine.data.iloc[:, :5], "phenols": wine.data.iloc[:, 5:]}
model = kofa.FactorModel().fit(data)
kofa.plot.variance_explained(model)
