"""
Time as a kernelized view
=========================

Samples that are points in time are alike if they are near in time. A view of the time with a kernel
says just that: factors then change smoothly, and what is missing in a series follows from what it
was before and after.

The series are those of the economy of the United States, four times a year from 1959 to 2009. They
ship with statsmodels.
"""

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm

import kofa

frame = sm.datasets.macrodata.load_pandas().data
year = (frame["year"] + (frame["quarter"] - 1) / 4).to_frame("year")
series = frame[["infl", "tbilrate", "unemp"]].copy()
series["growth"] = 400 * np.log(frame["realgdp"]).diff()
complete = series.drop(index=0)
year = year.drop(index=0)

# %%
# Four years of the unemployment, and four years of the interest, are taken out.

holed = complete.copy()
gaps = {"unemp": year["year"].between(1973, 1977), "tbilrate": year["year"].between(1990, 1994)}
for name, gap in gaps.items():
    holed.loc[gap, name] = np.nan

# %%
# The model
# ---------
# The time is an input with a kernel, whose width is learnt from the series, which are the outputs.

views = {"time": kofa.Real(kernel="rbf"), "series": kofa.Real()}
model = kofa.FactorModel(views, outputs=["series"]).fit({"time": year, "series": holed})
model

# %%
# What the time alone says
# ------------------------
# Predictions with intervals of 90 %. The points were not seen.

mean = model.predict({"time": year}, "series")
low, high = model.predict_quantiles({"time": year}, "series", [0.05, 0.95])
figure, panels = plt.subplots(2, 1, figsize=(7, 4.5), sharex=True, layout="constrained")
for ax, (name, gap) in zip(panels, gaps.items(), strict=True):
    when = year["year"]
    ax.fill_between(when, low[name], high[name], color="#0072B2", alpha=0.2, lw=0)
    ax.plot(when, mean[name], color="#0072B2", label="prediction")
    ax.plot(when, holed[name], color="#888888", lw=1, label="seen")
    ax.plot(when[gap], complete.loc[gap, name], "o", color="#D55E00", ms=3, label="not seen")
    ax.set_ylabel(name)
panels[0].legend(loc="upper right")

# %%
# The factors over time
# ---------------------

Z = model.transform({"time": year}, n_factors=min(3, model.n_factors_))
figure, ax = plt.subplots(figsize=(7, 2.5), layout="constrained")
ax.plot(year["year"], Z)
ax.legend(Z.columns)
ax.set_xlabel("year")

# %%
# Time and the other series together
# ----------------------------------
# If the series help each other, declare the one of interest as the output, and the others as a view
# of their own. :func:`kofa.compare` says whether that is better than time alone, in blocks of
# quarters that are left out together.

blocks = ((year["year"] - 1959) // 4).astype(int)
data = {"time": year, "others": complete.drop(columns="unemp"), "unemp": complete[["unemp"]]}
time, others, unemp = kofa.Real(kernel="rbf"), kofa.Real(kernel="rbf"), kofa.Real()
models = {
    "time": kofa.FactorModel({"time": time, "unemp": unemp}, outputs=["unemp"]),
    "others": kofa.FactorModel({"others": others, "unemp": unemp}, outputs=["unemp"]),
    "both": kofa.FactorModel({"time": time, "others": others, "unemp": unemp}, outputs=["unemp"]),
}
scores = kofa.compare(models, data, cv=4, groups=blocks, scoring=["rmse", "coverage"])
kofa.score_summary(scores)[["model", "score", "mean", "sd"]].round(2)
