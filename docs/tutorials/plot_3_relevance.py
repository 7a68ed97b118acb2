"""
Kernels: which features and which samples matter
================================================

Ten measurements of 442 patients with diabetes, and how far the illness had progressed a year later.
The first question is how to predict it. The others are which of the measurements it depends on, and
which patients are enough to compare a new one with.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import kofa

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
# A kernelized view
# -----------------
# With a kernel, a view is explained as similarities between samples rather than column by column,
# so that the output need not be a straight line in the measurements. The width of the kernel is
# learnt from the output, and so is the relevance of each feature if that is asked for.

views = {"patient": kofa.Real(kernel=kofa.RBF(relevance="learn")), "progress": kofa.Real()}
model = kofa.FactorModel(views, outputs=["progress"])
model.fit({"patient": X_train, "progress": y_train})
model

# %%
# Features
# --------

kofa.plot.feature_relevance(model, "patient")

# %%
# The names of those that were not switched off, to go on with.

print(model.selected_features("patient"))

# %%
# Samples
# -------
# ``sparse=True`` keeps the patients that add to the evidence of the output: its relevance vectors.
# A new patient is compared with these alone, which makes the model smaller and predictions faster.

views = {"patient": kofa.Real(kernel="rbf", sparse=True), "progress": kofa.Real()}
sparse = kofa.FactorModel(views, outputs=["progress"])
sparse.fit({"patient": X_train, "progress": y_train})
vectors = sparse.relevance_vectors("patient")
print(f"{vectors.kept.sum()} of {len(X_train)} patients are kept")
kofa.plot.relevance_vectors(sparse, "patient")

# %%
# The patients themselves, the most relevant first.

most = vectors[vectors.kept].nlargest(5, "relevance")
X_train.loc[most["sample"]].assign(relevance=most["relevance"].to_numpy().round(1))

# %%
# Was it worth it?
# ----------------
# R² on patients that neither has seen, and the share of them that is in its interval of 90 %.

for name, one in {"relevance of features": model, "relevance vectors": sparse}.items():
    mean = one.predict({"patient": X_test})[y.name]
    low, high = (table[y.name] for table in one.predict_quantiles({"patient": X_test}))
    r2 = 1 - np.sum((y_test - mean) ** 2) / np.sum((y_test - y_train.mean()) ** 2)
    inside = np.mean((y_test >= low) & (y_test <= high))
    print(f"{name}: R² {r2:.2f}, {inside:.0%} in their intervals")
