"""
enrichment: which sets of features have large weights?
======================================================

Sets by factors, with stars where q is below .05; of one factor (`factor="factor1"`) it is a plot
of dots. With `data` it is taken into account that features of a set go together.

See :func:`kofa.plot.enrichment` for all its parameters.
"""

from sklearn.datasets import load_breast_cancer

import kofa

cells = load_breast_cancer(as_frame=True)
data = {"mean": cells.data.iloc[:, :10], "worst": cells.data.iloc[:, 20:]}
model = kofa.FactorModel().fit(data)
size = [f"worst {what}" for what in ("radius", "perimeter", "area")]
shape = [f"worst {what}" for what in ("smoothness", "compactness", "concavity", "symmetry")]
sets = {"size": size, "shape": shape}
kofa.plot.enrichment(model, "worst", sets, [0, 1, 2, 3], data, min_size=3)
