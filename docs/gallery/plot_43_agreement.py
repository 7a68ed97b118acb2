"""
agreement: the same factors in another fit?
===========================================

Factors of the two fits are paired so that their correlations are as large as they can be. Signs
are arbitrary.

See :func:`kofa.plot.agreement` for all its parameters.
"""

from sklearn.datasets import load_wine

import kofa

wine = load_wine(as_frame=True)
data = {"minerals": wine.data.iloc[:, :5], "phenols": wine.data.iloc[:, 5:]}
model = kofa.FactorModel().fit(data)
other = kofa.FactorModel().fit({name: table.iloc[::2] for name, table in data.items()})
kofa.plot.agreement(model, other, data)
