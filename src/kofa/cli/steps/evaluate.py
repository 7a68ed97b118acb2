"""`kofa evaluate` and `kofa compare`: folds, scores, and what is shown of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kofa.cli import UsageError
from kofa.cli.display import Screen, counted
from kofa.cli.plan import STDIN, Plan, Source, naming_files
from kofa.cli.steps.apply import check_target
from kofa.cli.steps.fit import check_orientation, plan_of
from kofa.cli.steps.meaning import covariate_source
from kofa.cli.steps.result import check_result, deliver, shown
from kofa.cli.steps.tables import naming_options
from kofa.cli.steps.writing import until_written
from kofa.cross_validation.cross_validate import compare as compare_models
from kofa.cross_validation.cross_validate import cross_validate
from kofa.errors import FileError
from kofa.files import listed, same_file, write_file
from kofa.model import FactorModel
from kofa.scoring.summaries import score_summary
from kofa.scoring.tables import ALL, BASELINE

_NO_OUTPUTS = 'add --outputs NAME, or outputs = ["NAME"] under [model] in the study'
_OPTIONS = ("cv", "groups", "scoring", "n_jobs")
_SHOWN = ("model", "view", "score", "mean", "sd", BASELINE, "difference", "se", "pooled", "folds")
_BASELINE = "baseline: predicting the mean of the training samples, or their shares of classes"


@dataclass(frozen=True)
class Folds:
    """How samples are left out, and what is scored, as options say it."""

    cv: int
    groups: str | None
    scoring: Sequence[str] | None
    n_jobs: int | None

    def options(self) -> dict[str, Any]:
        """The same for `kofa.cross_validate`."""
        if self.n_jobs == 0:
            raise UsageError("expected a number other than 0", source="--n-jobs 0")
        said = {"cv": self.cv, "scoring": self.scoring, "n_jobs": self.n_jobs}
        return said | {"groups": None if self.groups is None else _group_of(self.groups)}


def _group_of(text: str) -> Any:
    """The group of each sample, from FILE:COLUMN."""
    frame = covariate_source(text, {}).read()
    if frame.shape[1] > 1:
        cure = f"its columns are {listed(frame.columns)}"
        raise UsageError("expected FILE:COLUMN", source=f"--groups {text}", cure=cure)
    return frame.iloc[:, 0]


# ---------------------------------------------------------------- one study


def evaluate(
    plan: Plan,
    folds: Folds,
    screen: Screen,
    *,
    predictions: str | None,
    out: str | None,
    json: bool,
) -> None:
    """Cross-validate a study, and hand over its scores."""
    if not plan.model.get("outputs"):
        raise UsageError("expected outputs to predict and score", cure=_NO_OUTPUTS)
    files = [source.file for source in plan.sources.values()]
    _check_files(files, out, json, predictions)
    data = plan.read()
    check_orientation(data, plan.sources)
    model, options = FactorModel(plan.views, **plan.model), folds.options()
    with (
        screen.busy(f"{folds.cv} fits"),
        naming_files(plan.sources),
        plan.naming_study(),
        naming_options(*_OPTIONS),
    ):
        found = cross_validate(model, data, baseline=True, return_predictions=True, **options)
    _hand_over(screen, found, predictions, out, json)


def _check_files(
    read: Sequence[Path], out: str | None, json: bool, predictions: str | None
) -> None:
    check_result(out, json, read)
    if predictions is None:
        return
    if predictions == "-" or predictions.lower().endswith(".json"):
        cure = "expected a file of type CSV, TSV or Parquet"
        raise UsageError(cure, source=f"--predictions {predictions}")
    check_target(predictions, read)
    if out is not None and same_file(Path(out), Path(predictions)):
        raise UsageError("expected another file than --out", source=f"--predictions {predictions}")


def _hand_over(
    screen: Screen, found: tuple[Any, Any], predictions: str | None, out: str | None, json: bool
) -> None:
    scores, predicted = found
    if predictions is not None:
        with until_written(predictions):
            write_file(predicted, predictions, index=False)
        if not json and out != "-":
            screen.report(f"{predictions}: {counted(len(predicted), 'prediction')}")
    summary = score_summary(scores)
    look = summary[summary["column"] == ALL]
    look = look[[name for name in _SHOWN if name in look]]
    several = len(look) < len(summary)
    note = f"{_BASELINE}{'; columns of a view together' if several else ''}"
    if out is not None and out != "-":  # a file is written, and the summary is worth a look
        screen.report(*_summary(look, note, screen))
    deliver(screen, scores, out, json, look=look, note=note)


def _summary(look: Any, note: str, screen: Screen) -> list[Any]:
    return [*shown(look, look, screen.width), f"\n{note}\n"]


# ---------------------------------------------------------------- several studies


def plans_of(studies: Sequence[Path], outputs: Sequence[str] | None) -> dict[str, Plan]:
    """The plan of each study, by the name of its file."""
    if len(studies) < 2:
        cure = "kofa evaluate takes one"
        raise UsageError("expected two studies or more", cure=cure)
    options = {"outputs": list(outputs)} if outputs else {}
    stems = [path.stem for path in studies]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in studies]
    if len(set(names)) < len(names):
        cure = "leave one out"
        raise UsageError("expected different studies but one is given twice", cure=cure)
    return {
        name: plan_of(path, None, None, {}, options)
        for name, path in zip(names, studies, strict=True)
    }


def compare(
    plans: Mapping[str, Plan],
    folds: Folds,
    screen: Screen,
    *,
    predictions: str | None,
    out: str | None,
    json: bool,
) -> None:
    """Cross-validate several studies with the same folds, and hand over their scores."""
    outputs = _common_outputs(plans)
    sources, renamed = _tables_of(plans, outputs)
    _check_files([source.file for source in sources.values()], out, json, predictions)
    data = {name: source.read() for name, source in sources.items()}
    models = {}
    for study, plan in plans.items():
        own = {renamed[study][name]: view for name, view in plan.views.items()}
        check_orientation({name: data[name] for name in own}, sources)
        models[study] = FactorModel(own, **plan.model)
    options = folds.options()
    with (
        screen.busy(f"{folds.cv * len(plans)} fits"),
        naming_files(sources),
        naming_options(*_OPTIONS),
    ):
        found = compare_models(models, data, baseline=True, return_predictions=True, **options)
    _hand_over(screen, found, predictions, out, json)


def _common_outputs(plans: Mapping[str, Plan]) -> list[str]:
    """The outputs, which all studies have."""
    first, *others = plans
    outputs = list(plans[first].model.get("outputs") or ())
    if not outputs:
        raise UsageError(f"{first} has no outputs to predict and score", cure=_NO_OUTPUTS)
    for name in others:
        own = plans[name].model.get("outputs") or ()
        if set(own) != set(outputs):
            what = f"{first} predicts {listed(outputs)} but {name} {listed(own) or 'nothing'}"
            raise UsageError(what, cure="add --outputs NAME for what all have")
    return outputs


def _tables_of(
    plans: Mapping[str, Plan], outputs: Sequence[str]
) -> tuple[dict[str, Source], dict[str, dict[str, str]]]:
    """All tables, and what each study's views are called among them.

    Views of the same name are one table where they are read in the same way; else each study has
    its own. Outputs must be the same.
    """
    sources: dict[str, Source] = {}
    renamed: dict[str, dict[str, str]] = {}
    for study, plan in plans.items():
        renamed[study] = {}
        for name, source in plan.sources.items():
            known = sources.get(name)
            same = known is None or _same(known, source)
            if not same and name in outputs:
                what = f"the output {name!r} is not read as in the other studies"
                raise FileError(what, f"{study}: {source.name}", cure="give all the same table")
            key = name if same else f"{name} of {study}"
            sources.setdefault(key, source)
            renamed[study][name] = key
    return sources, renamed


def _same(one: Source, other: Source) -> bool:
    return same_file(one.file, other.file) and replace(one, file=STDIN) == replace(
        other, file=STDIN
    )
