"""
Five minutes
============

From tables to factors, a picture, predictions for new samples and a report. You need
``kofa[plot,pandas,report]``.

The tables here are about 178 wines: minerals, phenols, and which of three grapes they were made
from. To use your own, change the next block: one DataFrame for each table, with the names of the
samples as its index, such as ``pd.read_csv("rna.csv", index_col=0)``.
"""

from pathlib import Path
from tempfile import mkdtemp

from sklearn.datasets import load_wine

import kofa

wine = load_wine(as_frame=True)
wine.data.index = [f"wine {i}" for i in range(178)]
minerals, phenols = wine.data.iloc[:, :5], wine.data.iloc[:, 5:]
grape = wine.target.map({0: "Nebbiolo", 1: "Grignolino", 2: "Barbera"}).to_numpy()

# %%
# 1. Fit
# ------
# Data are a dict of tables. They may have holes, and need not be about the same samples: here the
# phenols of every third wine are not known.

data = {"minerals": minerals, "phenols": phenols[[i % 3 > 0 for i in range(178)]]}
model = kofa.FactorModel().fit(data)
model

# %%
# That is the answer to **how many factors** there are. A column of the table is a factor, a row is
# a view, and a number is the share of the view that the factor explains: **which views share it**.
# A notebook shows this where ``model`` is the last line of a cell. In a script, print what you ask:

print(model.n_factors_, "factors")
print(model.factor_relevance().drop_duplicates("factor")[["factor", "label", "links"]])

# %%
# 2. Look
# -------
# Samples in the plane of the first two factors. The grapes were not known to the model. Colours
# may be a list in the order of the samples, or a Series, which is matched by name.

kofa.plot.factors(model, colour=grape)

# %%
# A notebook shows the picture; in a script, ``kofa.plot.factors(model).figure.savefig("x.png")``
# writes it.
#
# 3. Which features make up a factor, and how sure is that?
# ---------------------------------------------------------
# Lines are two standard deviations; a bar is pale where the sign is not certain.

kofa.plot.top_weights(model, "phenols", "factor1")

# %%
# The same as a table. Every plot has one. ``standardised`` is in standard deviations of the
# feature, and ``lfsr`` is the chance that the sign is wrong (:doc:`/reference/columns`).

model.top_features("phenols", "factor1", n=3).round(2)

# %%
# 4. What about samples that lack a table, or new ones?
# -----------------------------------------------------
# The phenols of the wines that had none, with intervals of 90 %, and what was measured after all.
# Samples that the model has never seen are passed in the same way; ``model.transform(new)`` gives
# their factors, and ``model.impute(new)`` fills their holes.

new = {"minerals": minerals[::3]}
low, high = model.predict_quantiles(new, "phenols", [0.05, 0.95])
inside = (phenols[::3] >= low) & (phenols[::3] <= high)
print(f"{inside.to_numpy().mean():.0%} of the values are in their intervals")
print(model.predict(new, "phenols").iloc[:3, :3].round(2))

# %%
# 5. A report
# -----------
# One HTML file with all of this, to click through, for people without Python. It opens from the
# disk and asks the network for nothing (:doc:`/report`). Covariates are what you know of the
# samples besides; a DataFrame is matched by name.

path = Path(mkdtemp(), "wine.html")  # or simply "wine.html"
model.report(path, data, covariates={"grape": grape})
print(f"{path.stat().st_size / 1e6:.1f} MB")

# %%
# 6. Keep it
# ----------
# ``model.save("wine.kofa")`` writes one file, and ``kofa.load("wine.kofa")`` reads it:
# :doc:`/generated/tutorials/plot_7_serving`.
#
# Where to go from here: labels or numbers that you want to predict are *outputs*
# (:doc:`/concepts/index`); counts, labels and yes/no are other *kinds* (:doc:`/howto/kinds`).
