"""Scores and predictions of folds as tables."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from kofa.data.tables import Samples, import_pandas
from kofa.linalg import Array
from kofa.scores import LOWER, SCORES, UPPER, HeldOut, column_means, scores_of

ALL = "all"  # columns of a view together, or folds
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # of central intervals
BASELINE = "baseline"  # the score of predicting the mean of the training samples
SCORE_FIELDS = ("fold", "view", "column", "score", "value", "n")
_PREDICTED = ("truth", "mean", "lower", "upper", "level")
PREDICTION_FIELDS = ("fold", "sample", "view", "column", "kind", *_PREDICTED)


def quantiles_of_levels() -> list[float]:
    """The two ends of each central interval."""
    return sorted({round(0.5 + side * level / 2, 6) for level in LEVELS for side in (-1, 1)})


def score_rows(
    fold: Hashable,
    view: str,
    columns: Sequence[Hashable],
    held: HeldOut,
    wanted: Sequence[str],
    baseline: bool = False,
) -> Any:
    """A table of the scores of one view in one fold, for all columns together and for each."""
    names = [name for name in scores_of(held.likelihood) if name in wanted]
    n = held.n
    labels = [ALL, *columns] if len(n) > 1 else [ALL]
    values = {"value": _by_column(held, names, len(labels))}
    if baseline:
        values[BASELINE] = _by_column(held.without_inputs(), names, len(labels))
    counts = np.append(n.sum(), n)[: len(labels)]
    # Column by column, all scores of one beside each other.
    return import_pandas().DataFrame(
        {
            "fold": objects([fold] * (len(labels) * len(names))),
            "view": view,
            "column": objects([label for label in labels for _ in names]),
            "score": names * len(labels),
            **values,
            "n": np.repeat(counts, len(names)),
        }
    )


def _by_column(held: HeldOut, names: Sequence[str], n: int) -> Array:
    """Scores of the mean over columns, and of each column if there are several."""
    found = [SCORES[name](held) for name in names]
    values = [np.append(column_means(one[:, None]), one)[:n] for one in found]
    return np.array(values).reshape(len(names), -1).T.ravel()


def prediction_rows(
    fold: int, view: str, columns: Sequence[Hashable], held: HeldOut, samples: Sequence[Any]
) -> Any:
    """A table with a row for each value of a view that is known of the samples of a fold."""
    rows, where = np.nonzero(~np.isnan(held.truth))
    pd = import_pandas()
    values = [held.truth, held.mean, *_interval(held)]
    return pd.DataFrame(
        {
            "fold": fold,
            "sample": [samples[row] for row in rows.tolist()],
            "view": view,
            "column": objects([columns[j] for j in where.tolist()]),
            "kind": kind(held),
        }
        | {name: value[rows, where] for name, value in zip(_PREDICTED, values, strict=True)}
    )


def kind(held: HeldOut) -> str:
    """What `mean` is: of a number, the probability of a one, or that of a class."""
    if held.likelihood.reads_labels:
        return "class"
    return "binary" if held.likelihood.binary() else "number"


def _interval(held: HeldOut) -> tuple[Array, Array, Array]:
    """The interval of 90 %, and the least level whose interval has the truth in it."""
    q, none = held.quantiles, np.full(held.truth.shape, np.nan)
    if not q:
        return none, none, none
    level = np.full(held.truth.shape, np.inf)
    for nominal in reversed(LEVELS):
        low, high = (q[round(0.5 + side * nominal / 2, 6)] for side in (-1, 1))
        level[(held.truth >= low) & (held.truth <= high)] = nominal
    return q[LOWER], q[UPPER], level


def sample_names(samples: Samples, positions: Any) -> list[Any]:
    """Names of samples, or their positions."""
    return positions.tolist() if samples.names is None else list(samples.names[positions])


def objects(values: Sequence[Any]) -> Any:
    """An array of Python objects, so that names of several types stay what they are."""
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):  # a tuple at once would become several
        array[i] = value
    return array


def stacked(tables: Mapping[Any, Sequence[Any]], named: bool) -> Any:
    """Tables under each other; the names of models in a column in front, where they have some."""
    pd = import_pandas()
    parts = []
    for model, rows in tables.items():
        some = [part for part in rows if len(part)] or rows[:1]  # an empty column has no type
        part = pd.concat(some, ignore_index=True)
        if named:
            part.insert(0, "model", model)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)
