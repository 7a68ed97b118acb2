"""
Several tables with holes: what do they share?
==============================================

Three tables about the school districts of California in 1998: their pupils, their teachers and
their schools, and how many pupils were above the national median in a test of mathematics. The
data ship with statsmodels. No table is complete, and the tables are not about the same districts.

Five questions, as users of MOFA ask them: how many factors are there, which tables share them,
which columns make them up, how sure is that, and what about new samples?
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import statsmodels.api as sm

import kofa

# %%
# The tables
# ----------
# Data are a dict of tables. Rows are matched by their index.

frame = sm.datasets.star98.load_pandas().data
frame.index = [f"district {i}" for i in range(len(frame))]
complete = {
    "pupils": frame[["LOWINC", "PERASIAN", "PERBLACK", "PERHISP"]],
    "teachers": frame[["PERMINTE", "AVYRSEXP", "AVSALK"]],
    "schools": frame[["PERSPENK", "PTRATIO", "PCTAF", "PCTCHRT", "PCTYRRND"]],
    "maths": (frame["NABOVE"] / (frame["NABOVE"] + frame["NBELOW"])).to_frame("above"),
}

# %%
# To see how holes are dealt with, some are made: a tenth of the entries, the teachers of 60
# districts, and the results in mathematics of 100 others.

rng = np.random.default_rng(0)
order = rng.permutation(len(frame))
without_teachers, without_maths = order[:60], order[60:160]
data = {
    name: table.mask(rng.random(table.shape) < 0.1)
    for name, table in complete.items()
    if name != "maths"
}
data["teachers"] = data["teachers"].drop(frame.index[without_teachers])
data["maths"] = complete["maths"].drop(frame.index[without_maths])
kofa.plot.data_overview(data)

# %%
# How many factors?
# -----------------
# Nothing has to be chosen: factors that explain nothing are removed.

model = kofa.FactorModel().fit(data)
model

# %%
# Which tables share them?
# ------------------------

kofa.plot.variance_explained(model)

# %%
# The same as a table, with a word for each factor.

model.factor_relevance().drop_duplicates("factor")[["factor", "label", "links"]]

# %%
# Which columns make up a factor, and how sure is that?
# -----------------------------------------------------
# A bar is pale where not even the sign is certain; lines are two standard deviations.

figure, panels = plt.subplots(3, 1, figsize=(5, 6), layout="constrained")
for ax, view in zip(panels, ("pupils", "teachers", "schools"), strict=True):
    kofa.plot.top_weights(model, view, "factor1", ax=ax)
    ax.set(title=view, xlabel="standardised weight" if view == "schools" else "")

# %%
# The districts in the plane of two factors, coloured by a column.

kofa.plot.factors(model, data, colour=("pupils", "LOWINC"))

# %%
# Do the factors go with something that the model has not seen?

covariates = pd.DataFrame({"pupils in the test": np.log(frame["NABOVE"] + frame["NBELOW"])})
model.associate(covariates)[["factor", "covariate", "value", "q"]].round(3)

# %%
# What was not measured
# ---------------------
# The results of the districts that had none, from their other tables, with intervals of 90 %.
# Since the true ones are known here, they can be compared.

inputs = {name: data[name] for name in ("pupils", "teachers", "schools")}
mean = model.predict(inputs, "maths")
low, high = model.predict_quantiles(inputs, "maths", [0.05, 0.95])
missing = frame.index[without_maths]
truth = complete["maths"].loc[missing]
error = np.sqrt(((mean.loc[missing] - truth) ** 2).mean().item())
spread = truth.std().item()
inside = ((truth >= low.loc[missing]) & (truth <= high.loc[missing])).mean().item()
print(f"error {error:.3f}; spread of the results {spread:.3f}; {inside:.0%} in their intervals")

# %%
# ``impute`` fills every hole of every table at once.

filled = model.impute(data)
print({name: int(table.isna().sum().sum()) for name, table in filled.items()})

# %%
# Which districts are unlike what their factors say?

model.outliers(data, by="entry").head(5).round(2)
