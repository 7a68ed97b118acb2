"""
A report for people without Python
==================================

A colleague asks what came out. One file, which opens by a double click and asks the network for
nothing, has all of it: the summary in sentences, the samples as points, tables to sort and search,
and the code that repeats the fit. :doc:`Reports </report>` lists its parts.
"""

import tempfile
from pathlib import Path

from sklearn.datasets import load_diabetes

import kofa

# %%
# The data
# --------
# 442 patients of scikit-learn's diabetes data: who they are, what their blood says, and how far the
# disease has come a year later.

frame = load_diabetes(as_frame=True, scaled=False).frame
frame.index = [f"patient {i}" for i in frame.index]
data = {
    "person": frame[["age", "bmi", "bp"]],
    "blood": frame[["s1", "s2", "s3", "s4", "s5", "s6"]],
    "progress": frame[["target"]],
}

# %%
# Model and evaluation
# --------------------
# What predicts what, and how well, is only honest for samples that the fit has not seen. So the
# model is cross-validated first; without that a report says that its scores are of the training
# data.

model = kofa.FactorModel(outputs=["progress"])
evaluation = kofa.cross_validate(model, data, cv=5, return_predictions=True)
model.fit(data)
model

# %%
# The report
# ----------
# Covariates are what else is known of the samples: they can colour the points, and are tested
# against the factors.

path = Path(tempfile.mkdtemp()) / "report.html"
model.report(path, data, covariates=frame[["sex"]], evaluation=evaluation)
print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")

# %%
# The same from the shell, for a model and a study that ``kofa fit`` and ``kofa init`` wrote::
#
#    kofa evaluate study.toml -o scores.csv
#    kofa report model.kofa --study study.toml --evaluation scores.csv -o report.html
#
# What the summary of the report is made from, as tables in Python:

model.variance_explained().pivot(index="factor", columns="view", values="r2").round(2)

# %%
scores, predictions = evaluation
kofa.score_summary(scores)
