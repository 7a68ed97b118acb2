"""
Classes with few labels
=======================

Samples are often cheap and labels dear. Rows without a label take part in the fit of a
:class:`kofa.KernelFactorClassifier`: they tell what samples look like, and the labels then only
have to say where the classes lie. The images are scikit-learn's digits, of which a few have labels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kofa

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
rows = rng.permutation(len(X))[:700]
X, y = X[rows], y[rows].astype(float)
train, test = slice(0, 400), slice(400, 700)
X = X[:, X[train].std(axis=0) > 0]

# %%
# A label that is not known is NaN. Everything else is as in scikit-learn.


def labelled(n_per_class):
    """The labels of the training rows, most of them missing."""
    known = np.full(400, np.nan)
    for digit in range(10):
        few = np.flatnonzero(y[train] == digit)[:n_per_class]
        known[few] = digit
    return known


numbers = [2, 5, 10]
found = {"kofa": [], "labelled rows only: logistic regression": []}
for n in numbers:
    known = labelled(n)
    classifier = kofa.KernelFactorClassifier().fit(X[train], known)
    found["kofa"].append(classifier.score(X[test], y[test]))
    has = ~np.isnan(known)
    other = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    other.fit(X[train][has], known[has])
    found["labelled rows only: logistic regression"].append(other.score(X[test], y[test]))

figure, ax = plt.subplots(figsize=(5, 3), layout="constrained")
for name, accuracy in found.items():
    ax.plot(numbers, accuracy, "o-", label=name)
ax.set(xlabel="labels per digit", ylabel="accuracy on 300 other images", xticks=numbers)
ax.legend()

# %%
# How sure is a prediction?
# -------------------------
# Probabilities average over all that is uncertain. Where they are high, the class should be right.

p = classifier.predict_proba(X[test]).max(axis=1)
right = classifier.predict(X[test]) == y[test]
for low, high in [(0.0, 0.6), (0.6, 0.9), (0.9, 1.01)]:
    some = (p >= low) & (p < high)
    share = right[some].mean()
    print(f"probability {low:.1f} to {min(high, 1):.1f}: {some.sum():3} images, {share:.0%} right")

# %%
# The images about which it is least sure.

least = np.argsort(p)[:8]
figure, panels = plt.subplots(2, 4, figsize=(5, 3), layout="constrained")
images = load_digits().images[rows][test]
for ax, i in zip(panels.flat, least, strict=True):
    ax.imshow(images[i], cmap="gray_r")
    ax.set_title(f"{classifier.predict(X[test][[i]])[0]:.0f}? is {y[test][i]:.0f}")
    ax.axis("off")

# %%
# What the classes share
# ----------------------
# Behind the classifier is a :class:`kofa.FactorModel`, with all its tables and plots.

kofa.plot.kernel_weights(classifier.model_, "y")
