"""
data_overview: which samples are measured in which view
=======================================================

A row for each view, a column for each sample; samples with the same views stand together. Darker
and lighter is the share of the features that a sample has, and grey are samples that lack the
whole view.

See :func:`kofa.plot.data_overview` for all its parameters.
"""

from sklearn.datasets import load_wine

import kofa

wine = load_wine(as_frame=True).data.sample(frac=1, random_state=0)
holed = wine.iloc[20:, 5:].mask(wine.iloc[20:, 5:] > 3)
kofa.plot.data_overview({"minerals": wine.iloc[:120, :5], "phenols": holed})
