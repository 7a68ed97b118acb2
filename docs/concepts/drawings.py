"""The drawings of the page: `python docs/concepts/drawings.py` writes them next to itself."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

BLUE, RED, GREEN, ORANGE, GREY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#888888"
HERE = Path(__file__).parent


def canvas(width, height):
    """An empty drawing in units of about a centimetre."""
    figure, ax = plt.subplots(figsize=(width / 2.2, height / 2.2))
    figure.subplots_adjust(0, 0, 1, 1)
    ax.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    ax.axis("off")
    return figure, ax


def table(ax, x, y, width, height, colour, name, columns=4, rows=5, holes=()):
    """A table of cells; holes are (row, column) from the top left, or whole rows."""
    w, h = width / columns, height / rows
    for i in range(rows):
        for j in range(columns):
            missing = (i, j) in holes or i in holes
            face = "white" if missing else colour
            place = (x + j * w, y + height - (i + 1) * h)
            edge = "#cccccc" if missing else "white"
            ax.add_patch(Rectangle(place, w, h, fc=face, ec=edge, lw=1, alpha=0.85))
    ax.text(x + width / 2, y - 0.35, name, ha="center", va="top")


def node(ax, x, y, text, colour, radius=0.5):
    ax.add_patch(Circle((x, y), radius, fc=colour, ec="none", alpha=0.9, zorder=3))
    ax.text(x, y, text, ha="center", va="center", color="white", zorder=4)


def arrow(ax, start, end, colour=GREY, width=1.4, style="-|>"):
    options = {"arrowstyle": style, "mutation_scale": 11, "shrinkA": 2, "shrinkB": 3}
    ax.add_patch(FancyArrowPatch(start, end, color=colour, lw=width, **options))


def factor():
    """One latent vector per sample, which all views follow from."""
    figure, ax = canvas(15, 8.2)
    table(ax, 0.8, 2.2, 1.5, 4, RED, "Z: factors\nof each sample", columns=2)
    for x, colour, name, holes, columns in (
        (6, BLUE, "genes", {(1, 2), (3, 0)}, 5),
        (9.7, GREEN, "proteins", {3, 4}, 4),
        (12.9, ORANGE, "clinic", {0, (2, 1)}, 3),
    ):
        table(ax, x, 2.2, 0.5 * columns, 4, colour, name, columns, holes=holes)
        ax.text(x + 0.25 * columns, 6.9, "W", ha="center", color=colour, weight="bold")
    arrow(ax, (2.6, 4.2), (5.7, 4.2))
    ax.text(4.15, 4.5, "one row explains\none row of each view", ha="center", va="bottom", size=10)
    ax.text(7.5, 0.3, "white: not measured, and left out of the model", ha="center", color=GREY)
    return figure


def view():
    """Shared and private factors, as weights of views."""
    figure, ax = canvas(13, 6.6)
    views = {"genes": (2.5, BLUE), "proteins": (6.5, GREEN), "clinic": (10.5, ORANGE)}
    for name, (x, colour) in views.items():
        ax.add_patch(Rectangle((x - 1.3, 0.7), 2.6, 1, fc=colour, alpha=0.85, ec="none"))
        ink = "black" if colour == ORANGE else "white"
        ax.text(x, 1.2, name, ha="center", va="center", color=ink)
    for x, name, linked, word in (
        (2.5, "1", ["genes", "proteins", "clinic"], "shared"),
        (6.5, "2", ["genes", "proteins"], "shared"),
        (10.5, "3", ["clinic"], "private"),
    ):
        for one in linked:
            arrow(ax, (x, 4.6), (views[one][0], 1.75), views[one][1])
        node(ax, x, 5, name, RED)
        ax.text(x, 5.75, f"factor{name}: {word}", ha="center", va="bottom")
    return figure


def kernelized():
    """A kernelized view: similarities to landmarks instead of columns."""
    figure, ax = canvas(15, 7.6)
    table(ax, 0.6, 2.2, 2.4, 4, BLUE, "rows x\n(any columns)", columns=6, rows=8)
    rng = np.random.default_rng(3)
    points = rng.uniform((5.2, 2.4), (8.8, 6.0), size=(26, 2))
    chosen = points[[2, 9, 17]]
    ax.scatter(*points.T, s=22, color=BLUE, alpha=0.6, lw=0)
    ax.scatter(*chosen.T, s=90, facecolor="none", edgecolor=RED, lw=1.8)
    x = np.array([7.0, 4.1])
    ax.scatter(*x, s=70, color="black", marker="*", zorder=4)
    for v in chosen:
        arrow(ax, x, v, RED, style="-")
    ax.text(7, 1.85, "k(x, v): how alike a sample is\nto each landmark v", ha="center", va="top")
    similar = np.exp(-((points[:8, None] - points[None, :7]) ** 2).sum(-1) / 2)
    for i in range(8):
        for j in range(7):
            place, shade = (11 + j * 0.45, 5.7 - i * 0.5), similar[i, j] ** 0.6
            ax.add_patch(Rectangle(place, 0.45, 0.5, fc=BLUE, ec="white", alpha=shade))
    ax.text(12.6, 1.85, "what the factors\nexplain instead", ha="center", va="top")
    arrow(ax, (3.3, 4.2), (4.7, 4.2))
    arrow(ax, (9.2, 4.2), (10.7, 4.2))
    return figure


def output():
    """Inputs tell about the factors; outputs follow from them."""
    figure, ax = canvas(14, 6.4)
    for y, name, colour in ((4.6, "genes", BLUE), (2.2, "images", GREEN)):
        ax.add_patch(Rectangle((0.6, y - 0.5), 2.8, 1, fc=colour, alpha=0.85, ec="none"))
        ax.text(2, y, name, ha="center", va="center", color="white")
        arrow(ax, (3.45, y), (6.0, 3.4 + 0.2 * np.sign(y - 3.4)), colour)
    node(ax, 7, 3.4, "Z", RED, 0.9)
    for y, name in ((4.6, "diagnosis"), (2.2, "cost")):
        ax.add_patch(Rectangle((10.4, y - 0.5), 2.8, 1, fc=ORANGE, alpha=0.9, ec="none"))
        ax.text(11.8, y, name, ha="center", va="center")
        arrow(ax, (8.0, 3.4 + 0.2 * np.sign(y - 3.4)), (10.3, y), ORANGE)
    for x, text in ((2, "inputs"), (7, "factors"), (11.8, "outputs")):
        ax.text(x, 5.8, text, ha="center", va="bottom", weight="bold")
    text = "kernels, widths and relevances are learnt from the outputs"
    ax.text(7, 0.6, text, ha="center", color=GREY)
    return figure


def relevance():
    """What can matter: factors, features, samples, kernels."""
    figure, panels = plt.subplots(2, 2, figsize=(6, 4), layout="constrained")
    rng = np.random.default_rng(0)
    titles = ("factors in a view", "features of a kernel", "samples", "kernels")
    bars = ([0.8, 0.5, 0.3, 0.02, 0.01], [2.1, 1.6, 0.1, 0.05, 0.02], None, [0.7, 0.25, 0.05])
    for ax, title, heights in zip(panels.flat, titles, bars, strict=True):
        ax.set_title(title)
        ax.set(xticks=[], yticks=[])
        ax.spines[["top", "right"]].set_visible(False)
        if heights is None:
            points = rng.normal(size=(40, 2))
            ax.scatter(*points.T, s=10, color="#bbbbbb")
            ax.scatter(*points[:4].T, s=[120, 70, 45, 30], color=BLUE)
        else:
            colours = [BLUE if height > 0.1 * max(heights) else "#bbbbbb" for height in heights]
            ax.bar(range(len(heights)), heights, color=colours)
    return figure


def main():
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "kofa", "font.size": 12})
    plt.rcParams["font.family"] = "sans-serif"
    for draw in (factor, view, kernelized, output, relevance):
        figure = draw()
        path = HERE / f"{draw.__name__}.svg"
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
