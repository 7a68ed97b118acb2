"""
kernel: a kernel, and what the factors say of it
================================================

Samples by landmarks, both in the order of the first factor: the centred similarities, what five
factors make of them, and the difference.

See :func:`kofa.plot.kernel` for all its parameters.
"""

from sklearn.datasets import load_wine

import kofa

X = load_wine().data
model = kofa.FactorModel({"wine": kofa.Real(kernel="rbf")}, n_factors=5).fit({"wine": X})
kofa.plot.kernel(model, {"wine": X}, "wine")
