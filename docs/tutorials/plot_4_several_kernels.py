"""
Several tables, several kernels
===============================

Cells of 569 tumours were measured in three ways: the mean of ten quantities over the cells, the
standard error of that mean, and the worst cells. Which of the three tables tells whether a tumour
is malignant, and does it do so along a straight line or not?
"""

from sklearn.datasets import load_breast_cancer

import kofa

cells = load_breast_cancer(as_frame=True)
data = {
    "mean": cells.data.iloc[:, :10],
    "error": cells.data.iloc[:, 10:20],
    "worst": cells.data.iloc[:, 20:],
    "diagnosis": cells.target.map({0: "malignant", 1: "benign"}),
}
data = {name: table.iloc[:300] for name, table in data.items()}

# %%
# One model, a kernel for each table
# ----------------------------------
# A list of kernels makes one view of each, which compete for the factors. ``"bank"`` would be one
# view with a weighted sum of kernels.

kernels = ["linear", "rbf"]
views = {name: kofa.Real(kernel=kernels) for name in ("mean", "error", "worst")}
views["diagnosis"] = kofa.Categorical()
model = kofa.FactorModel(views, outputs=["diagnosis"]).fit(data)
kofa.plot.kernel_weights(model, "diagnosis")

# %%
# Shares of the kernels in the predictions of the diagnosis, as a table.

model.kernel_weights("diagnosis").sort_values("weight", ascending=False).round(2)

# %%
# The factors on which the diagnosis depends come first.

print(f"{model.n_predictive_} of {model.n_factors_} factors")
kofa.plot.factors(model, data, colour="diagnosis")

# %%
# Which table could be left out?
# ------------------------------
# Models with fewer views on the same folds: a model sees only the views that it declares.


def with_only(*tables):
    """A model of some of the tables."""
    some = {name: kofa.Real(kernel="rbf") for name in tables}
    return kofa.FactorModel({**some, "diagnosis": kofa.Categorical()}, outputs=["diagnosis"])


models = {
    "all": with_only("mean", "error", "worst"),
    "mean": with_only("mean"),
    "error": with_only("error"),
    "worst": with_only("worst"),
}
scores = kofa.compare(models, data, cv=3, scoring=["accuracy", "log_loss"])
kofa.score_summary(scores)[["model", "score", "mean", "sd", "difference", "se"]].round(3)

# %%

kofa.plot.compare(scores, "log_loss")
