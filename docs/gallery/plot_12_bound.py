"""
bound: has the fit converged?
=============================

The lower bound of the evidence grows with every iteration; only where factors are removed, or left
out on trial, may it step down. A fit has converged where the curve is flat; `terms=True` shows
which of its terms still change.

See :func:`kofa.plot.bound` for all its parameters.
"""

from sklearn.datasets import load_wine

import kofa

wine = load_wine(as_frame=True)
data = {"minerals": wine.data.iloc[:, :5], "phenols": wine.data.iloc[:, 5:]}
model = kofa.FactorModel().fit(data)
kofa.plot.bound(model)
