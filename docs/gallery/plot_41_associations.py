"""
associations: factors and covariates
====================================

Stars mark what is hardly chance: q below .05, .01 and .001. The table is that of
:meth:`kofa.FactorModel.associate`.

See :func:`kofa.plot.associations` for all its parameters.
"""

from sklearn.datasets import load_wine

import kofa

wine = load_wine(as_frame=True)
data = {"minerals": wine.data.iloc[:, :5], "phenols": wine.data.iloc[:, 5:]}
model = kofa.FactorModel().fit(data)
covariates = wine.frame[["target", "proline"]].astype({"target": "category"})
kofa.plot.associations(model, covariates)
