"""
Images: the lower half from the upper half
==========================================

An image is a row of pixels, and half an image is a view. scikit-learn's digits have 8 × 8 pixels.
The upper halves are explained through a kernel, the lower halves pixel by pixel, and the digit is a
third view. Then everything can be asked of everything else.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import kofa

images, digits = load_digits(return_X_y=True)
rows = np.random.default_rng(0).permutation(len(images))[:600]
images, digits = images[rows], digits[rows]
used = images[:500].std(axis=0) > 0  # pixels that are always empty tell nothing
upper, lower = used[:32], used[32:]
data = {"upper": images[:, :32][:, upper], "lower": images[:, 32:][:, lower], "digit": digits}
seen = {name: table[:500] for name, table in data.items()}

# %%
# The model
# ---------

views = {"upper": kofa.Real(kernel="rbf"), "lower": kofa.Real(), "digit": kofa.Categorical()}
model = kofa.FactorModel(views, outputs=["lower", "digit"]).fit(seen)
model

# %%
# From the upper half
# -------------------
# Of images that were not in the fit: what they are, what is predicted from their upper halves, and
# how sure that is. Where the standard deviation is large, the upper half leaves it open.

new = {"upper": data["upper"][500:]}
mean, std = model.predict(new, "lower", return_std=True)
guess = model.predict(new, "digit")


def drawn(upper_half, lower_half):
    """An image of two halves, whose constant pixels are empty."""
    image = np.zeros(64)
    image[:32][upper] = upper_half
    image[32:][lower] = lower_half
    return image.reshape(8, 8)


figure, panels = plt.subplots(3, 5, figsize=(5, 3.6), layout="constrained")
for column in range(5):
    parts = (data["lower"][500 + column], mean[column], std[column])
    for ax, part in zip(panels[:, column], parts, strict=True):
        top = np.zeros(upper.sum()) if part is parts[2] else new["upper"][column]
        ax.imshow(drawn(top, part), cmap="gray_r", vmin=0, vmax=8 if part is parts[2] else 16)
        ax.set(xticks=[], yticks=[])
    panels[0, column].set_title(f"a {digits[500 + column]}")
    panels[1, column].set_title(f"{guess[column]}?")
for ax, name in zip(panels[:, 0], ("image", "predicted", "spread"), strict=True):
    ax.set_ylabel(name)

# %%
# Is the digit right?
# -------------------

right = np.mean(guess == digits[500:])
p = model.predict_proba(new, "digit")
print(f"{right:.0%} of 100 digits from the upper half; mean probability {p.max(axis=1).mean():.2f}")

# %%
# From the lower half
# -------------------
# ``impute`` and ``predict`` take whatever views there are. The lower half is an output, so the
# factors of samples that have nothing else are found from it.

from_lower = model.predict({"lower": data["lower"][500:]}, "digit")
print(f"{np.mean(from_lower == digits[500:]):.0%} from the lower half")

# %%
# What a factor changes
# ---------------------
# The weights of the lower half are images too.

W = model.weights("lower")
figure, panels = plt.subplots(2, 3, figsize=(5, 2.4), layout="constrained")
for k, ax in enumerate(panels.flat):
    image = np.zeros(32)
    image[lower] = W[:, k]
    limit = abs(W[:, :6]).max()
    ax.imshow(image.reshape(4, 8), cmap="PuOr_r", vmin=-limit, vmax=limit)
    ax.set(title=model.factor_names_[k], xticks=[], yticks=[])
