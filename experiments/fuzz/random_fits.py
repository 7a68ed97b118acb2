"""Random problems fitted, with all that must hold of every fit.

What failed is printed with its seed; `check(problem(seed))` repeats one. KOFA_SEED gives the first
seed, KOFA_FITS says how many there are.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import kofa
from experiments.experiment import Mark, Measurement, Row
from experiments.fuzz.odd_tables import written
from experiments.fuzz.random_problems import Problem, overlapping, problem
from experiments.tasks import Array

FITS = int(os.environ.get("KOFA_FITS", "1000"))
EQUAL = 1e-9  # of an output's spread: a sample alone and in a batch
FALL = 1e-8  # of the bound: what rounding may take from it
# And for each entry, in nats: where a kernel is explained down to the floor of the noise, the last
# digit of a residual is multiplied by a precision of some 1e7.
ENTRY_FALL = 1e-7
Answers = dict[str, Any]
Ask = Callable[[kofa.FactorModel, Any], Answers]
Make = Callable[[int], Problem]
Check = Callable[[Problem], str]


class Failed(Exception):  # noqa: N818
    """Something that must hold does not."""


# ---------------------------------------------------------------- one fit


def check(given: Problem) -> str:
    """Fit and ask for everything; raise `Failed` where something does not hold."""
    before = {name: written(table) for name, table in given.data.items()}
    with watched() as seen:
        try:
            model, path = fit(given)
        except kofa.KofaError as error:
            if given.unusable is None:
                raise Failed(f"refused: {error}") from error
            return "refused"
    if given.unusable is not None:
        raise Failed(f"not refused: {given.unusable}")
    entries = len(next(iter(given.plain.values()))) * sum(
        q.n_columns for q in model.posterior_.values()
    )
    _check_bound(path, ENTRY_FALL * entries)
    found = _asked(described, model, given.data, seen)
    _check_same_numbers(model, given, found)
    new = _asked(answers, model, given.new, seen)
    _check_alone(model, given, new)
    _check_saved(model, given, new)
    _check_tables(model)
    if {name: written(table) for name, table in given.data.items()} != before:
        raise Failed("the caller's data were changed")
    return "fitted"


@contextmanager
def watched() -> Iterator[list[warnings.WarningMessage]]:
    """Warnings in here; those that are not kofa's own words at our line are failures."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield seen
    for warning in seen:
        if not issubclass(warning.category, UserWarning) or warning.filename != __file__:
            raise Failed(
                f"foreign warning: {warning.category.__name__}: {warning.message} "
                f"({Path(warning.filename).name}:{warning.lineno})"
            )


def fit(given: Problem) -> tuple[kofa.FactorModel, list[kofa.Iteration]]:
    """The fitted model, and every iteration of every start."""
    path: list[kofa.Iteration] = []
    model = kofa.FactorModel(
        given.views, callback=lambda i: path.append(i) is not None, **given.options
    )
    return model.fit(given.data), path


def _check_bound(path: list[kofa.Iteration], rounding: float) -> None:
    for last, now in pairwise(path):
        follows = now.n_iter == last.n_iter + 1 and now.start == last.start
        fall = last.lower_bound - now.lower_bound
        if not np.isfinite(now.lower_bound):
            raise Failed(f"bound is {now.lower_bound}")
        allowed = FALL * max(abs(last.lower_bound), 1.0) + rounding
        if follows and not now.factors_changed and fall > allowed:
            raise Failed(f"bound fell by {fall:.3g} of {last.lower_bound:.6g} at {now.n_iter}")


# ---------------------------------------------------------------- answers


def described(model: kofa.FactorModel, data: Mapping[str, Any]) -> Answers:
    """What a model says of samples as a whole."""
    Z, covariance = model.transform(data, return_cov=True)
    return {"transform": Z, "covariance": covariance, "score": model.score_samples(data)}


def answers(model: kofa.FactorModel, data: Mapping[str, Any]) -> Answers:
    """What a model says of samples and of each view, from all of them and from the others."""
    found = described(model, data)
    for name, table in model.reconstruct(data, proba=True).items():
        proba = model.views_[name].layer.has("probability")
        found[f"{name}: reconstruct{', proba' if proba else ''}"] = table
    for name, view in model.views_.items():
        if any(source != view.source for source in data):
            found |= {f"{name}: {what}": table for what, table in _of_view(model, data, name)}
    return found


def _of_view(model: kofa.FactorModel, data: Any, name: str) -> Iterator[tuple[str, Any]]:
    layer = model.views_[name].layer
    yield "predict", model.predict(data, name)
    if layer.has("probability"):
        yield "proba", model.predict_proba(data, name)
    if layer.has("std"):
        yield "std", model.predict(data, name, return_std=True)[1]
    if layer.has("quantile"):
        for p, table in zip(
            (0.05, 0.5, 0.95), model.predict_quantiles(data, name, [0.05, 0.5, 0.95]), strict=True
        ):
            yield f"quantile {p}", table


def _numbers(table: Any) -> Array | None:
    """A table of numbers as floats; None for labels."""
    array = np.asarray(table)
    return array.astype(float) if array.dtype.kind in "fiub" else None


def _asked(ask: Ask, model: kofa.FactorModel, data: Any, seen: list[Any]) -> Answers:
    """The answers, checked: finite, ordered, in range; `impute` leaves no holes."""
    with watched() as later:
        found = ask(model, data)
        filled = model.impute(data)
    named = any("NaN or infinit" in str(w.message) for w in [*seen, *later])
    for what, table in found.items():
        numbers = _numbers(table)
        if numbers is not None and not np.isfinite(numbers).all() and not named:
            raise Failed(f"{what} has NaN or infinity")
    _check_range(model, found)
    _check_filled(model, filled)
    return found


def _check_range(model: kofa.FactorModel, found: Answers) -> None:
    for name, view in model.views_.items():
        quantiles = [found.get(f"{name}: quantile {p}") for p in (0.05, 0.5, 0.95)]
        if quantiles[0] is not None:
            low, middle, high = map(np.asarray, quantiles)
            if not ((low <= middle) & (middle <= high)).all():
                raise Failed(f"{name}: quantiles are not in order")
            if view.declared in ("Count", "Positive") and view.likelihood and (low < 0).any():
                raise Failed(f"{name}: negative quantiles")
        for what in ("proba", "reconstruct, proba"):
            if f"{name}: {what}" not in found:
                continue
            p = np.asarray(found[f"{name}: {what}"])
            if not ((p >= 0) & (p <= 1)).all():
                raise Failed(f"{name}: {what} is outside of 0 and 1")
            if name in model.classes_ and not np.allclose(p.sum(axis=1), 1.0):
                raise Failed(f"{name}: {what} do not add up to one")
        if f"{name}: std" in found and (np.asarray(found[f"{name}: std"]) < 0).any():
            raise Failed(f"{name}: negative standard deviations")


def _check_filled(model: kofa.FactorModel, filled: Mapping[str, Any]) -> None:
    for name, view in model.views_.items():
        if name in filled and view.likelihood is not None:
            table = kofa.data.reading.read_table(name, filled[name], labels=name in model.classes_)
            if np.isnan(table.values).any():
                raise Failed(f"{name}: impute leaves holes")


# ---------------------------------------------------------------- the same answers


def _check_same_numbers(model: kofa.FactorModel, given: Problem, found: Answers) -> None:
    """Tables of any make give what plain arrays of their numbers give."""
    with watched():
        plain = np.asarray(model.transform(given.plain))
    Z = found["transform"]
    if given.samples is not None:
        where = Z.index.get_indexer(given.samples)
        Z, plain = np.asarray(Z)[where[where >= 0]], plain[where >= 0]
    _compare("plain, transform", plain, Z, (0.0, 1.0))


def _compare(what: str, a: Any, b: Any, normal: tuple[Any, Any]) -> None:
    """Raise unless tables agree to a share of the spread; further out, of the distance."""
    x, y = _numbers(a), _numbers(b)
    if x is None or y is None:
        return
    if x.shape != y.shape:
        raise Failed(f"{what}: shapes {x.shape} and {y.shape}")
    centre, spread = normal
    unit = np.maximum(np.maximum(spread, np.abs(x - centre)), np.finfo(float).tiny)
    apart = (np.abs(x - y) - 8 * np.finfo(float).eps * np.abs(x)) / unit
    if apart.max(initial=0.0) > EQUAL:
        raise Failed(f"{what}: differ by {apart.max():.2g} of the spread")


def _check_alone(model: kofa.FactorModel, given: Problem, batch: Answers) -> None:
    """Each new sample alone gives what it gives among others."""
    n = len(next(iter(given.new.values())))
    with watched():
        single = [answers(model, {k: v[[i]] for k, v in given.new.items()}) for i in range(n)]
    for what, table in batch.items():
        alone = np.concatenate([np.asarray(one[what]) for one in single])
        _compare(f"alone, {what}", np.asarray(table), alone, _normal(model, given, what))


def _normal(model: kofa.FactorModel, given: Problem, what: str) -> tuple[Any, Any]:
    """Centre and spread of what an answer is about; 0 and 1 of factors and probabilities."""
    view = model.views_.get(what.rpartition(":")[0])
    if view is None or view.classes is not None or what.endswith("proba"):
        return 0.0, 1.0
    if view.likelihood is None:  # similarities
        return 0.0, view.encoder.scale
    values = given.plain[view.source]
    return np.nanmean(values, axis=0), np.nanstd(values, axis=0)


def _check_saved(model: kofa.FactorModel, given: Problem, before: Answers) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.kofa")
        try:
            model.save(path)
        except kofa.KofaError as error:
            if path.exists():
                raise Failed("a refused save left a file") from error
            return
        with watched():
            loaded = kofa.load(path)
            after = answers(loaded, given.new)
    for what, table in before.items():
        a, b = np.asarray(table), np.asarray(after[what])
        same = np.array_equal(a, b, equal_nan=True) if a.dtype.kind == "f" else (a == b).all()
        if not same:
            raise Failed(f"loaded, {what} differs")


def _check_tables(model: kofa.FactorModel) -> None:
    """Tables of what was found have numbers in them."""
    outputs = [name for name, view in model.views_.items() if view.role.output]
    with watched():
        tables = {f"weights of {name}": model.weights(name) for name in model.views_}
        for output in [None, *outputs]:
            tables[f"kernel weights of {output}"] = model.kernel_weights(output).weight
        for name in model.views_:
            for ask in (model.feature_relevance, model.relevance_vectors):
                try:
                    tables[f"{ask.__name__} of {name}"] = ask(name).relevance
                except kofa.DataError:  # the view has none
                    continue
    for what, table in tables.items():
        if not np.isfinite(np.asarray(table, dtype=float)).all():
            raise Failed(f"{what} have NaN or infinity")


# ---------------------------------------------------------------- many


def check_overlap(given: Problem) -> str:
    """The same of views that hardly overlap, and of folds that may lose the last such samples."""
    found = check(given)
    if given.seed % 2:  # folds take as long as all else
        return found
    with watched():
        model = kofa.FactorModel(given.views, **given.options)
        names = given.options["outputs"] or list(given.views)[:1]
        try:
            _, table = kofa.cross_validate(
                model, given.plain, outputs=names, cv=3, return_predictions=True
            )
        except kofa.KofaError:  # of a class or a column that no fold has
            return found
    predicted = [table[name] for name in ("mean", "probability") if name in table]
    for column in predicted:
        if np.isinf(column.dropna()).any() or (len(predicted) == 1 and column.isna().any()):
            raise Failed("cross_validate predicts NaN or infinity")
    return found


def outcome(seed: int, make: Make = problem, checked: Check = check) -> str:
    """What became of the problem of a seed: fitted, refused, or why it failed."""
    try:
        return checked(make(seed))
    except Failed as failed:
        return f"FAILED {failed}"
    except Exception as error:
        return f"FAILED foreign {type(error).__name__}: {error}"


def random_fits() -> Row:
    """Fits of problems that nobody has seen; which failed, by seed."""
    return _failures("random problems that fail")


def random_overlaps() -> Row:
    """The same of problems whose views have few samples in common, or none."""
    return _failures("problems of few common samples that fail", overlapping, check_overlap)


def _failures(title: str, make: Make = problem, checked: Check = check) -> Row:
    first = int(os.environ.get("KOFA_SEED") or np.random.default_rng().integers(2**40))
    found = {first + i: outcome(first + i, make, checked) for i in range(FITS)}
    bad = {seed: text for seed, text in found.items() if text.startswith("FAILED")}
    for seed, text in bad.items():
        print(f"{seed}: {text}", flush=True)
    refused = Counter(found.values())["refused"]
    text = f"{len(bad)} of {FITS} ({refused} refused as they should be; seeds from {first})"
    return Row(title, float(len(bad)), Mark(high=0.0), text)


EXPERIMENTS: dict[str, Measurement] = {
    "random-fits": random_fits,
    "random-overlaps": random_overlaps,
}
