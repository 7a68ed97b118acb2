"""
Inside scikit-learn
===================

Three estimators take a table ``X`` and a target ``y``. They go wherever scikit-learn's own do, NaN
may stay in both, and nothing has to be tuned. You need ``kofa`` alone.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import cross_val_score, train_test_split

import kofa

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
X_train[np.random.default_rng(0).random(X_train.shape) < 0.1] = np.nan

# %%
# 1. Fit and predict
# ------------------
# A tenth of the values is missing, and half of the targets.

y_train[::2] = np.nan
model = kofa.KernelFactorRegressor().fit(X_train, y_train)
print(f"R² {model.score(X_test, y_test):.2f}")

# %%
# 2. How sure is it?
# ------------------

low, high = model.predict_quantiles(X_test, [0.05, 0.95])
print(f"{np.mean((low <= y_test) & (y_test <= high)):.0%} are in their intervals of 90 %")

# %%
# 3. What did it find?
# --------------------
# Behind it is a :class:`kofa.FactorModel` with all its tables and plots: which kernels help, and
# which features matter.

kofa.plot.feature_relevance(model.model_, "X")

# %%
# 4. In a cross-validation
# ------------------------
# Also in pipelines and searches.

scores = cross_val_score(kofa.KernelFactorRegressor("rbf"), X, y, cv=3)
print(scores.round(2))

# %%
# Where to go from here: classes with few labels (:doc:`/generated/tutorials/plot_2_few_labels`),
# all that is the same and all that differs (:doc:`/howto/from_scikit_learn`).
