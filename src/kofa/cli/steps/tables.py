"""The tables of a fitted model: which views and factors are asked for, and what is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kofa.cli import UsageError
from kofa.cli.steps.apply import Given
from kofa.errors import DataError, DeclarationError
from kofa.files import hint, listed
from kofa.model import FactorModel

SHOWN_FEATURES = 5  # of each factor


# ---------------------------------------------------------------- what is asked for


def view_names(model: FactorModel, views: Sequence[str] | None) -> list[str]:
    """The views that are asked for, or all; by the table's name, each of its kernels."""
    found = []
    for name in views or model.views_:
        own = [one for one, view in model.views_.items() if name in (one, view.source)]
        if not own:
            cure = hint(name, model.views_, "its views are")
            raise UsageError(f"the model has no view {name!r}", cure=cure)
        found += own
    return list(dict.fromkeys(found))


def one_view(model: FactorModel, name: str) -> str:
    """A view that is asked for; of a table with several kernels one has to be named."""
    found = view_names(model, [name])
    if len(found) > 1:
        raise UsageError(f"the view {name!r} has several kernels", cure=f"name {listed(found)}")
    return found[0]


@contextmanager
def naming_options(*names: str) -> Iterator[None]:
    """Errors about an option of a function are about the option of the same name here.

    About one of some `names`, or any.
    """
    try:
        yield
    except DeclarationError as error:
        asked = error.option is not None and (not names or error.option in names)
        if error.view is not None or not asked:
            raise
        name = f"--{str(error.option).replace('_', '-')}"
        raise error.as_error(UsageError, source=name) from None


def factor_name(model: FactorModel, text: str) -> str:
    """The name of a factor, from its name or its position, which counts from zero."""
    names = [str(name) for name in model.factor_names_]
    if text in names:
        return text
    if re.fullmatch("[0-9]{1,9}", text) and int(text) < len(names):
        return names[int(text)]
    cure = hint(text, names, "there are")
    raise UsageError(f"the model has no factor {text!r}", cure=cure)


def factor_names(model: FactorModel, factors: Sequence[str] | None) -> list[str] | None:
    """Names of several factors, or None for all."""
    return [factor_name(model, one) for one in factors] if factors else None


def check_by(by: str, known: Iterable[str]) -> None:
    if by not in known:
        raise UsageError(f"expected --by {', '.join(known)}", got=by, cure=hint(by, known))


# ---------------------------------------------------------------- tables


def weights(
    model: FactorModel, views: Sequence[str], factors: Sequence[str] | None, n: int | None
) -> tuple[Any, Any, str]:
    """The weights of views, the `n` largest of each factor; what is shown of them, and a note."""
    frame = _stacked(views, lambda view: model.weights(view, tidy=True))
    if factors is not None:
        frame = frame[frame["factor"].isin(factors)].reset_index(drop=True)
    if n is not None:
        frame = _largest(frame, n)
        return frame, frame, ""
    look = _largest(frame, SHOWN_FEATURES)
    note = f"the {SHOWN_FEATURES} largest of each factor and view"
    return frame, look, note if len(look) < len(frame) else ""


def _largest(frame: Any, n: int) -> Any:
    """The `n` largest weights of each factor in each view, the largest first."""
    size = frame["standardised"].abs()
    ranked = frame.loc[size.sort_values(ascending=False, kind="stable").index]
    top = ranked.groupby(["view", "factor"], sort=False).head(n)
    order = {name: place for place, name in enumerate(dict.fromkeys(frame["factor"]))}
    views = {name: place for place, name in enumerate(dict.fromkeys(frame["view"]))}
    place = top["view"].map(views) * len(order) + top["factor"].map(order)
    return top.loc[place.sort_values(kind="stable").index].reset_index(drop=True)


def factors(given: Given) -> Any:
    """The factors of samples, whose names are the first column."""
    with given.ask() as data:
        frame = given.model.factors(data)
    name = frame.index.name if frame.index.name not in (None, *frame.columns) else "sample"
    return frame.rename_axis(name).reset_index()


def variance(given: Given, by: str) -> tuple[Any, Any]:
    """What factors explain; by factor, a column for each view is easier to look at."""
    with given.ask() as data:
        frame = given.model.variance_explained(data, by)
    if by != "factor":
        return frame, frame
    wide = frame.pivot(index="factor", columns="view", values="r2")
    wide = wide.reindex(index=given.model.factor_names_, columns=dict.fromkeys(frame["view"]))
    total = wide.sum(min_count=1).to_frame("all").T
    return frame, _concat([wide, total]).rename_axis("factor").reset_index()


def relevance(model: FactorModel, views: Sequence[str] | None, by: str) -> tuple[Any, Any]:
    """Relevance of factors in views, of features, or of samples."""
    names = view_names(model, views)
    if by == "factor":
        frame = model.factor_relevance()
        frame = frame[frame["view"].isin(names)].reset_index(drop=True)
        return frame, _by_factor(frame)
    method = model.feature_relevance if by == "feature" else model.relevance_vectors
    frame = _stacked(names, method, skip=not views)
    return frame, frame


def _by_factor(frame: Any) -> Any:
    """A row for each factor: what it is, and its relevance in each view."""
    about = frame.drop_duplicates("factor")[["factor", "label", "links"]].set_index("factor")
    wide = frame.pivot(index="factor", columns="view", values="relevance")
    wide = wide.reindex(index=about.index, columns=dict.fromkeys(frame["view"]))
    named = wide.rename(columns={name: f"{name} " for name in wide if name in about})
    return about.join(named)[["label", *named.columns, "links"]].reset_index()


def kernels(model: FactorModel, outputs: Sequence[str] | None) -> Any:
    """The share of each kernel in the factors, or in what is predicted of outputs."""
    known = [name for name, view in model.views_.items() if view.role.output]
    for name in outputs or ():
        if name not in known:
            cure = hint(name, known, "its outputs are") if known else "it has none"
            raise UsageError(f"the model has no output {name!r}", cure=cure)
    if not outputs:
        return model.kernel_weights()
    return _stacked(outputs, model.kernel_weights, column="output")


def _stacked(
    names: Sequence[str], method: Callable[[str], Any], column: str = "view", skip: bool = False
) -> Any:
    """Tables of several views under each other; with `skip` of those that have one."""
    parts, errors = [], []
    for name in names:
        try:
            part = method(name)
        except DataError as error:
            errors.append(error)
            if not skip:
                raise
            continue
        part.insert(0, column, name)
        parts.append(part)
    if not parts:
        raise errors[0]
    return _concat(parts, ignore_index=True)


def _concat(parts: Sequence[Any], **options: Any) -> Any:
    import pandas as pd

    return pd.concat(parts, **options)
