"""
factor_relevance: in which view is a factor at work?
====================================================

A panel for each view. Bars are grey where a factor is off. The relevance is that of the model's
own parameters; how much is explained of the data is in :func:`kofa.plot.variance_explained`.

See :func:`kofa.plot.factor_relevance` for all its parameters.
"""

from sklearn.datasets import load_wine

import kofa

wine = load_wine(as_frame=True)
data = {"minerals": wine.data.iloc[:, :5], "phenols": wine.data.iloc[:, 5:]}
model = kofa.FactorModel().fit(data)
kofa.plot.factor_relevance(model)
