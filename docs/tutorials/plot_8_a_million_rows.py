"""
A million rows from disk
========================

Two tables of a million rows each: twelve readings of machines, and what six meters say of their
power. They are in files, and neither the fit nor the factors of all rows are held in memory.
:doc:`Large data </scale>` has sizes, engines and figures.
"""

import tempfile
from pathlib import Path

import numpy as np

import kofa

# %%
# The files
# ---------
# Nobody ships a million rows, so they are drawn here, a hundred thousand at a time: one factor that
# both tables share, and one of each table alone.

folder = Path(tempfile.mkdtemp())
n, at_once = 1_000_000, 100_000
rng = np.random.default_rng(0)
weights = {"readings": rng.normal(size=(3, 12)), "power": rng.normal(size=(3, 6))}
weights["readings"][2] = weights["power"][1] = 0.0
files = {
    name: np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.float32, (n, w.shape[1]))
    for name, w in weights.items()
}
for start in range(0, n, at_once):
    z = rng.normal(size=(at_once, 3))
    for name, w in weights.items():
        noise = rng.normal(size=(at_once, w.shape[1]))
        files[name][start : start + at_once] = z @ w + noise

# %%
# The fit
# -------
# A table that is opened with ``mmap_mode="r"`` is read block by block in each pass. Parquet files
# are opened by :func:`kofa.open_table`, and a list of files is one table.

data = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in weights}
model = kofa.FactorModel().fit(data)
print(f"{model.n_factors_} factors after {model.n_iter_} iterations")

# %%
# The shared factor, and one of each table:

model.factor_relevance().drop_duplicates("factor")[["factor", "label", "links"]]

# %%
kofa.plot.variance_explained(model)

# %%
# Answers of a million rows
# -------------------------
# ``out`` names a file, ``.npy`` or Parquet, to which they are written some rows after the others.

path = model.transform(data, out=folder / "factors.npy")
factors = np.load(path, mmap_mode="r")
print(factors.shape)

# %%
# The power of machines whose meters are not known, from their readings:

path = model.predict({"readings": data["readings"]}, "power", out=folder / "power.npy")
error = np.load(path, mmap_mode="r")[:1000] - data["power"][:1000]
print(f"error {error.std():.2f}; spread {data['power'][:1000].std():.2f}; the noise is 1")

# %%
# Only some of the rows are needed for a picture.

kofa.plot.factors(model, {name: table[:2000] for name, table in data.items()})
