"""
kernel_weights: which kernels help?
===================================

The share of each kernel of the bank in the predictions of an output; without its name, in the
factors.

See :func:`kofa.plot.kernel_weights` for all its parameters.
"""

from sklearn.datasets import load_diabetes

import kofa

X, y = load_diabetes(return_X_y=True)
views = {"blood": kofa.Real(kernel="bank"), "progress": kofa.Real()}
model = kofa.FactorModel(views, outputs=["progress"]).fit({"blood": X, "progress": y})
kofa.plot.kernel_weights(model, "progress")
