"""What is to be fitted, predicted and scored, checked before the first fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kofa import omics
from kofa.checks import hint, is_among, listed, require
from kofa.cross_validation.folds import Fold, split
from kofa.cross_validation.held_out import naming_fold
from kofa.cross_validation.model import Model
from kofa.cross_validation.parts import ViewsData, aligned, by_sample
from kofa.errors import DataError, DeclarationError, warn
from kofa.scores import SCORES, scores_of
from kofa.scoring.tables import ALL
from kofa.views import View, check_outputs, check_views


@dataclass(frozen=True, eq=False)
class Plan:
    """Models, their data, what they are to predict, the folds, and the scores."""

    models: Mapping[str, Model]
    given: Mapping[str, ViewsData]
    outputs: list[str]
    folds: list[Fold]
    scoring: list[str]

    @classmethod
    def checked(
        cls,
        models: Mapping[str, Model],
        data: Any,
        outputs: Any,
        cv: Any,
        groups: Any,
        scoring: Any,
    ) -> Plan:
        """Everything that can be wrong is found before the first fit."""
        data = _tables(models, data)
        declared = {name: check_views(model.views, data) for name, model in models.items()}
        given = aligned(declared, data)
        wanted = _outputs(models, outputs, declared)
        _check_names(given, wanted)
        first = next(iter(given.values()))
        if groups is not None:
            groups = by_sample(groups, first.samples, "a group")
        folds = split(cv, first.samples.n, _labels(first, wanted), groups)
        for number, fold in enumerate(folds):
            with naming_fold(number):
                for views_data in given.values():
                    views_data.check_training(fold.train)
        _warn_of_unseen_classes(models, given, wanted, folds)
        return cls(models, given, wanted, folds, _scoring(scoring, declared, wanted))


def _tables(models: Mapping[str, Model], data: Any) -> Any:
    """What the models declare of a MuData or AnnData; anything else as it is."""
    if not omics.is_omics(data):
        return data
    names: dict[str, None] = {}
    for model in models.values():
        if not isinstance(model.views, Mapping):
            return omics.from_mudata(data)
        names |= dict.fromkeys(model.views)
    return omics.from_mudata(data, list(names))


def _outputs(
    models: Mapping[str, Model], outputs: Any, declared: Mapping[str, Mapping[str, View]]
) -> list[str]:
    """The views to be scored, which every model has and can score."""
    for name, views in declared.items():
        check_outputs(models[name].outputs, views)
        check_outputs(outputs, views)
    if outputs is None:
        outputs = _declared_outputs(models)
    wanted = list(dict.fromkeys(outputs))
    if not wanted:
        what = "expected outputs to say which views to predict and score"
        raise DeclarationError(what, option="outputs", cure="pass outputs=[…]")
    for name, views in declared.items():
        _check_scored(wanted, views, models[name])
    return wanted


def _declared_outputs(models: Mapping[str, Model]) -> list[str]:
    first, *others = [list(model.outputs or ()) for model in models.values()]
    for name, own in zip(list(models)[1:], others, strict=True):
        if set(own) != set(first):
            what = f"the models have different outputs: {name!r} has {listed(own) or 'none'}"
            raise DeclarationError(what, option="outputs", cure="pass outputs=[…] to compare")
    return first


def _check_scored(outputs: Sequence[str], views: Mapping[str, View], model: Model) -> None:
    """Raise for an output whose values are not predicted, or if nothing is left to predict from."""
    for name in outputs:
        if views[name].kernel is not None:
            what = "a view that is explained through a kernel has no predicted values to score"
            raise DeclarationError(what, name, option="outputs", cure="declare it without kernel")
    if not set(views) - {*outputs, *(model.outputs or ())}:
        what = "expected at least one view to predict the outputs from"
        raise DeclarationError(what, option="outputs")


def _check_names(given: Mapping[str, ViewsData], outputs: Sequence[str]) -> None:
    """Raise for a column with the name that stands for all columns."""
    for each in given.values():
        for name in outputs:
            columns = each.columns(name)
            if len(columns) > 1 and ALL in columns:
                what = "the name stands for all columns together in tables of scores"
                raise DataError(what, name, ALL, cure="rename the column or the class")


def _scoring(
    scoring: Any, declared: Mapping[str, Mapping[str, View]], outputs: Sequence[str]
) -> list[str]:
    """The names of scores, each of which some output has."""
    if scoring is None:
        return list(SCORES)
    names = [scoring] if isinstance(scoring, str) else scoring
    fine = isinstance(names, Sequence) and len(names) > 0
    require(fine, "scoring", "a name, a list of names or None", scoring)
    kinds = [views[name].likelihood for views in declared.values() for name in outputs]
    offered = [name for name in SCORES if any(name in scores_of(kind) for kind in kinds)]
    for name in names:
        if not is_among(name, offered):
            known = is_among(name, SCORES)
            cure = f"there is {listed(offered)}" if known else hint(name, offered, "there is")
            what = f"no output has the score {name!r}" if known else f"unknown score {name!r}"
            raise DeclarationError(what, option="scoring", cure=cure)
    return list(names)


def _labels(given: ViewsData, outputs: Sequence[str]) -> Any:
    """The classes of the samples where the only output is one column of them; −1 if not known."""
    view = outputs[0]
    table = given.tables[view]
    if len(outputs) > 1 or table.values.shape[1] > 1:
        return None
    if not given.views[view].likelihood.has("probability"):
        return None
    return np.nan_to_num(np.asarray(given.samples.spread(table))[:, 0], nan=-1.0).astype(np.intp)


def _warn_of_unseen_classes(
    models: Mapping[str, Model],
    given: Mapping[str, ViewsData],
    outputs: Sequence[str],
    folds: Sequence[Fold],
) -> None:
    """Where a class is in the test samples of a fold but not in its training samples."""
    used = {
        view: each
        for name, each in given.items()
        for view in each.views
        if view in outputs or view not in (models[name].outputs or ())
    }
    for view, each in used.items():
        then = "it is predicted with probability zero" if view in outputs else "it is missing"
        for number, fold in enumerate(folds):
            unseen = each.unseen_classes(view, fold.test, fold.train)
            if len(unseen):
                label = each.columns(view)[int(unseen[0])]
                warn(
                    f"View {view!r}: no training sample of fold {number} has the class {label!r}, "
                    f"so that {then} there. Take fewer folds, or leave the class out."
                )
