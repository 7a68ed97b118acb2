"""Three tables about wines, with holes: what `kofa demo` shows, or writes for you to try."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kofa.cli.display import Screen, table
from kofa.cli.steps.writing import until_written
from kofa.errors import FileError
from kofa.files import check_folder, new_folder, write_files, write_text
from kofa.model import FactorModel
from kofa.views import Categorical, Real

STUDY = """\
# 138 wines; kofa fit study.toml -o wine.kofa
[model]
outputs = ["cultivar"]

[views.minerals]
file = "minerals.csv"

[views.phenols]
file = "phenols.csv"

[views.cultivar]
file = "cultivar.csv"
kind = "categorical"
"""
_MINERALS = ["alcohol", "malic_acid", "ash", "alcalinity_of_ash", "magnesium"]


def wines() -> dict[str, Any]:
    """178 wines of three cultivars: five and eight measurements as two tables, and the cultivar."""
    import pandas as pd
    from sklearn.datasets import load_wine

    bunch = load_wine(as_frame=True)
    ids = [f"w{i:03d}" for i in range(len(bunch.data))]
    frame = bunch.data.set_axis(ids).sample(frac=1.0, random_state=0)
    cultivar = pd.Series(
        bunch.target.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"}).to_numpy(), ids
    )
    return {
        "minerals": frame[_MINERALS].rename_axis("wine"),
        "phenols": frame.drop(columns=_MINERALS).rename_axis("wine"),
        "cultivar": cultivar.loc[frame.index].to_frame("cultivar").rename_axis("wine"),
    }


def with_holes(complete: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first 138 wines with much of them missing, and the other 40 as new ones."""
    import numpy as np

    rng = np.random.default_rng(0)
    seen = {name: frame.iloc[:138] for name, frame in complete.items()}
    for name in ("minerals", "phenols"):
        seen[name] = seen[name].mask(rng.random(seen[name].shape) < 0.1)
    seen["phenols"] = seen["phenols"].iloc[:108]
    seen["cultivar"] = seen["cultivar"].iloc[10:50]
    return seen, {name: frame.iloc[138:] for name, frame in complete.items()}


def write_tables(folder: Path) -> list[str]:
    """Put the tables and their study into a new or empty folder; return the names of the files."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError("expected a new or empty folder", folder, cure="choose another name")
    check_folder(folder / "study.toml" if folder.exists() else folder)
    seen, new = with_holes(wines())
    files = {f"{name}.csv": frame for name, frame in seen.items()}
    files |= {f"new_{name}.csv": new[name] for name in ("minerals", "phenols")}
    with until_written(folder), new_folder(folder):
        write_files({folder / name: frame for name, frame in files.items()})
        write_text(folder / "study.toml", STUDY)
    return [*files, "study.toml"]


def show(screen: Screen) -> None:
    """Fit the wines, and show what the model makes of those it has not seen."""
    complete = wines()
    seen, new = with_holes(complete)
    views = {"minerals": Real(), "phenols": Real(), "cultivar": Categorical()}
    watch = screen.watch()
    with watch:
        model = FactorModel(views, outputs=["cultivar"], callback=watch).fit(seen)
    screen.show(
        "138 wines in three tables: 5 minerals and alcohol; 8 phenols and colours, of 108 wines;\n"
        "the cultivar, of 40. A tenth of the measurements is missing.\n",
        f"{model.n_factors_} factors explain them. 40 new wines, predicted from what is given:\n",
    )
    _show_accuracy(screen, model, new)
    _show_some(screen, model, new)
    _show_filled(screen, model, seen, complete)
    screen.show(
        "\nTry it yourself:  kofa demo wine   writes these tables into the folder wine.\n"
        "With your own:    kofa init        writes a study.toml from the tables in a folder."
    )


def _show_accuracy(screen: Screen, model: FactorModel, new: dict[str, Any]) -> None:
    truth, rows = new["cultivar"]["cultivar"], []
    for names in (["minerals"], ["phenols"], ["minerals", "phenols"]):
        given = {name: new[name] for name in names}
        right = (model.predict(given, "cultivar") == truth).mean()
        sure = model.predict_proba(given, "cultivar").max(axis=1).mean()
        rows.append((" and ".join(names), f"{right:.0%}", f"{sure:.0%}"))
    screen.show(table(("given", "right", "its own estimate"), rows, ("right", "its own estimate")))


def _show_some(screen: Screen, model: FactorModel, new: dict[str, Any]) -> None:
    """The wines about which the model is least certain when it sees the minerals only."""
    few = model.predict_proba({"minerals": new["minerals"]}, "cultivar")
    unsure = few.max(axis=1).nsmallest(5).index
    all_given = {name: new[name].loc[unsure] for name in ("minerals", "phenols")}
    both = model.predict_proba(all_given, "cultivar")
    rows = [
        (
            wine,
            new["cultivar"]["cultivar"][wine],
            *(f"{few.loc[wine, c]:.2f} → {both.loc[wine, c]:.2f}" for c in few.columns),
        )
        for wine in unsure
    ]
    screen.show("\nFive wines; probabilities from the minerals → from both tables:\n")
    screen.show(table(("wine", "truth", *few.columns), rows, tuple(few.columns)))


def _show_filled(
    screen: Screen, model: FactorModel, seen: dict[str, Any], complete: dict[str, Any]
) -> None:
    """How far filled entries are from the truth, beside column means."""
    filled, rows = model.impute({n: seen[n] for n in ("minerals", "phenols")}), []
    for name, frame in filled.items():
        truth, before = complete[name].loc[frame.index], seen[name].reindex(frame.index)
        holes, scale = before.isna(), before.std()
        error = (((frame - truth) / scale)[holes] ** 2).stack().mean()
        plain = (((before.mean() - truth) / scale)[holes] ** 2).stack().mean()
        rows.append((name, int(holes.to_numpy().sum()), f"{error**0.5:.2f}", f"{plain**0.5:.2f}"))
    screen.show("\nFilled holes; error in standard deviations:\n")
    names = ("table", "holes", "error", "error of column means")
    screen.show(table(names, rows, names[1:]))
