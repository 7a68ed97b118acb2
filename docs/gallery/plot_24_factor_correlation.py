"""
factor_correlation: do factors go together?
===========================================

Factors of a converged fit are hardly correlated in the samples of the fit; in new samples they
may be.

See :func:`kofa.plot.factor_correlation` for all its parameters.
"""

from sklearn.datasets import load_wine

import kofa

wine = load_wine(as_frame=True)
data = {"minerals": wine.data.iloc[:, :5], "phenols": wine.data.iloc[:, 5:]}
model = kofa.FactorModel().fit(data)
kofa.plot.factor_correlation(model)
