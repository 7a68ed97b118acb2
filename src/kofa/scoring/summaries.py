"""What tables of scores and predictions say: means over folds, calibration, confusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kofa.checks import check_number
from kofa.data.tables import import_pandas
from kofa.errors import DataError
from kofa.linalg import Array, IntArray
from kofa.scoring.tables import ALL, BASELINE, LEVELS, PREDICTION_FIELDS, SCORE_FIELDS, objects


def score_summary(scores: Any) -> Any:
    """Mean and spread over folds of the scores that `cross_validate` or `compare` returned.

    Parameters
    ----------
    scores : DataFrame
        From `cross_validate` or `compare`.

    Returns
    -------
    DataFrame with a row for each view, column and score (and model): ``mean`` and ``sd`` over
    folds, ``pooled``, the score of all folds together, and ``folds``, the number of those that
    have the score. Where the scores have a ``baseline``, its mean over folds. Of several models
    also ``difference``, the mean over folds of what a model has more than the first, and ``se``,
    its standard error from the same folds. Training samples of folds overlap, so that the true
    error is somewhat larger.

    Examples
    --------
    >>> import pandas as pd, kofa
    >>> scores = pd.DataFrame({
    ...     "model": ["a", "a", "b", "b"], "fold": [0, 1, 0, 1], "view": "y", "column": "all",
    ...     "score": "r2", "value": [0.5, 0.7, 0.6, 0.9], "n": 10,
    ... })
    >>> kofa.score_summary(scores)[["model", "score", "mean", "folds", "difference", "se"]]
      model score  mean  folds  difference    se
    0     a    r2  0.60      2        0.00  0.00
    1     b    r2  0.75      2        0.15  0.05
    """
    _check_table(scores, SCORE_FIELDS, "scores of kofa.cross_validate or kofa.compare")
    keys = [*_model(scores), "view", "column", "score"]
    together = scores["fold"] == ALL
    each = scores[~together]
    table = _grouped(each, keys).value.agg(mean="mean", sd="std", folds="count")
    table.insert(2, "pooled", scores[together].set_index(keys).value.reindex(table.index))
    if BASELINE in scores:
        table[BASELINE] = _grouped(each, keys)[BASELINE].mean()
    if _model(scores):
        gains = _grouped(each.assign(gain=_gains(each)), keys).gain
        table["difference"], table["se"] = gains.mean(), gains.sem()
    return table.reset_index()


def _gains(scores: Any) -> Array:
    """What each score is above that of the first model in the same fold."""
    place = ["fold", "view", "column", "score"]
    first = scores[scores.model == scores.model.iloc[0]].set_index(place).value
    matched = first.reindex(import_pandas().MultiIndex.from_frame(scores[place]))
    return np.asarray(scores.value.to_numpy() - matched.to_numpy())


def calibration_table(predictions: Any, bins: int = 10) -> Any:
    """Whether intervals and probabilities of held-out samples are what they say.

    Parameters
    ----------
    predictions : DataFrame
        From `cross_validate` or `compare` with ``return_predictions``.
    bins : int
        The number of intervals of equal width into which probabilities are sorted.

    Returns
    -------
    DataFrame with ``view``, ``column`` (and ``model``), ``kind``, ``nominal``, ``observed`` and
    ``n``. Of numbers, ``nominal`` is the level of a central interval (.1, .2, … .9, .95) and
    ``observed`` the share of values in it; of counts, which are whole, that should be more. Of a
    `Binary` view or a class, ``nominal`` is the mean of the probabilities in a bin and
    ``observed`` how often there was a one. Bins without any are left out. In a calibrated model
    both are the same up to chance. The column "all" has all columns, or classes, together.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 2))
    >>> sick = (x[:, 0] + rng.normal(size=200) > 0).astype(float)
    >>> model = kofa.FactorModel({"x": kofa.Real(), "sick": kofa.Binary()}, outputs=["sick"])
    >>> data = {"x": x, "sick": sick}
    >>> scores, predictions = kofa.cross_validate(model, data, return_predictions=True)
    >>> kofa.calibration_table(predictions, bins=4).round(2)
       view column    kind  nominal  observed   n
    0  sick    all  binary     0.13      0.08  53
    1  sick    all  binary     0.35      0.43  51
    2  sick    all  binary     0.63      0.63  51
    3  sick    all  binary     0.87      0.84  45
    """
    check_number("bins", bins, whole=True, least=1)
    _check_predictions(predictions)
    keys = [*_model(predictions), "view", "column", "kind"]
    parts = [
        _part(keys, key, *_curve(group, int(bins)))
        for key, group in _grouped(_with_all_columns(predictions), keys)
    ]
    return import_pandas().concat(parts, ignore_index=True)


def _curve(group: Any, bins: int) -> tuple[Any, Any, Any]:
    """What is predicted, what is observed, and of how many values."""
    if group["kind"].iloc[0] != "number":
        return _reliability(group["mean"].to_numpy(float), group["truth"].to_numpy(float), bins)
    level = group["level"].to_numpy(float)
    level = level[~np.isnan(level)]  # of kinds without intervals
    observed = [float((level <= nominal).mean()) for nominal in LEVELS] if len(level) else []
    return LEVELS[: len(observed)], observed, len(level)


def _reliability(probability: Array, truth: Array, bins: int) -> tuple[Array, Array, IntArray]:
    where = np.minimum((probability * bins).astype(np.intp), bins - 1)
    n = np.bincount(where, minlength=bins)
    some = n > 0
    predicted, observed = (
        np.bincount(where, values, minlength=bins)[some] / n[some]
        for values in (probability, truth)
    )
    return predicted, observed, n[some]


def _part(keys: Sequence[str], key: Sequence[Any], nominal: Any, observed: Any, n: Any) -> Any:
    """The rows of one column."""
    same = {name: objects([one] * len(nominal)) for name, one in zip(keys, key, strict=True)}
    return import_pandas().DataFrame(
        same | {"nominal": np.asarray(nominal), "observed": np.asarray(observed), "n": n}
    )


def _with_all_columns(predictions: Any) -> Any:
    """Views with one column as the column "all", the others with such a column besides."""
    several = _grouped(predictions, ["view"])["column"].transform("nunique") > 1
    together = predictions.assign(column=ALL)
    return import_pandas().concat([together, predictions[several]], ignore_index=True)


def confusion_table(predictions: Any) -> Any:
    """How often each class was predicted for samples of each class.

    Parameters
    ----------
    predictions : DataFrame
        From `cross_validate` or `compare` with ``return_predictions``.

    Returns
    -------
    DataFrame with ``view``, ``column`` (and ``model``), ``truth``, ``predicted`` and ``n``, with
    a row for each pair of classes of a `Categorical` view, and for each pair of 0 and 1 of each
    column of a `Binary` view. What is predicted is the class with the highest probability.

    Examples
    --------
    >>> import kofa
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> views = {"flower": kofa.Real(), "species": kofa.Categorical()}
    >>> model = kofa.FactorModel(views, outputs=["species"])
    >>> data = {"flower": X, "species": load_iris().target_names[y]}
    >>> scores, predictions = kofa.cross_validate(model, data, return_predictions=True)
    >>> table = kofa.confusion_table(predictions)
    >>> table.pivot(index="truth", columns="predicted", values="n")
    predicted   setosa  versicolor  virginica
    truth
    setosa          50           0          0
    versicolor       0          46          4
    virginica        0           1         49
    """
    _check_predictions(predictions)
    parts = [
        *_confusions(_labels(predictions[predictions["kind"] == "class"])),
        *_confusions(_zeros_and_ones(predictions[predictions["kind"] == "binary"])),
    ]
    if not parts:
        raise DataError("expected predictions of a Binary or Categorical view but there are none")
    return import_pandas().concat(parts, ignore_index=True)


def _labels(rows: Any) -> Any:
    """A row for each sample, with its label and the likeliest; its rows are of its classes."""
    rows = rows.reset_index(drop=True)
    samples = _grouped(rows, [*_model(rows), "fold", "sample", "view"])
    likeliest, true = samples["mean"].idxmax(), samples["truth"].idxmax()
    found = rows.loc[true].assign(truth=rows["column"].loc[true].to_numpy())
    return found.assign(column=ALL, predicted=rows["column"].loc[likeliest].to_numpy())


def _zeros_and_ones(rows: Any) -> Any:
    return rows.assign(truth=rows["truth"].astype(int), predicted=(rows["mean"] > 0.5).astype(int))


def _confusions(rows: Any) -> Iterator[Any]:
    """For each column, the number of samples of each pair of classes."""
    keys = [*_model(rows), "view", "column"]
    for key, group in _grouped(rows, keys):
        classes = _classes(group)
        counts = group.groupby(["truth", "predicted"], sort=False).size().to_dict()
        pairs = [(true, predicted) for true in classes for predicted in classes]
        same = {name: objects([one] * len(pairs)) for name, one in zip(keys, key, strict=True)}
        yield import_pandas().DataFrame(
            same
            | {
                "truth": objects([true for true, _ in pairs]),
                "predicted": objects([predicted for _, predicted in pairs]),
                "n": [counts.get(pair, 0) for pair in pairs],
            }
        )


def _classes(group: Any) -> list[Any]:
    """The classes that occur, in order where they have one."""
    seen = list(dict.fromkeys([*group["truth"], *group["predicted"]]))
    try:
        return sorted(seen)
    except TypeError:
        return seen


def _model(table: Any) -> list[str]:
    """The name of the column with models, if there is one."""
    return ["model"] if "model" in table else []


def _grouped(table: Any, keys: list[str]) -> Any:
    return table.groupby(keys, sort=False, dropna=False)


def _check_predictions(table: Any) -> None:
    _check_table(table, PREDICTION_FIELDS, "predictions, as with return_predictions=True")
    if not len(table):
        raise DataError("Expected predictions but there are none: no test sample has a value.")


def _check_table(table: Any, fields: Sequence[str], expected: str) -> None:
    """Raise unless it is a table with these columns."""
    lacking = [field for field in fields if field not in getattr(table, "columns", ())]
    if lacking:
        what = f"expected a table of {expected}, but there is no column {lacking[0]!r}"
        raise DataError(what)
