"""`kofa check`: all that a fit would take, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kofa.cli.display import counted, table
from kofa.cli.plan import Plan, naming_files
from kofa.cli.steps.fit import check_orientation
from kofa.cli.steps.result import fitting
from kofa.files import listed
from kofa.model import FactorModel
from kofa.preparation.fit_data import FitData
from kofa.preparation.parameters import Parameters
from kofa.preparation.slips import warn_of_slips

_COLUMNS = ("view", "kind", "samples", "columns", "missing", "role", "kernel", "file")


def check(plan: Plan, width: int) -> list[Any]:
    """Read the tables and check them as a fit does; what would be fitted, for people."""
    data = plan.read()
    check_orientation(data, plan.sources)
    model = FactorModel(plan.views, **plan.model)
    parameters = Parameters(**model.get_params(deep=False))
    with naming_files(plan.sources), plan.naming_study():
        views = parameters.check(data)
        parameters.generator()
        found = FitData.read(views, data, parameters.outputs)
        warn_of_slips(found, declared=True)
    return [_head(found, data), _views(plan, data, width), _foot(parameters)]


def _head(found: FitData, data: Mapping[str, Any]) -> str:
    everywhere = set.intersection(*(set(frame.index) for frame in data.values()))
    views = counted(len(data), "view")
    complete = f", {len(everywhere)} of them in all" if len(data) > 1 else ""
    return f"{counted(found.samples.n, 'sample')} in {views}{complete}\n"


def _views(plan: Plan, data: Mapping[str, Any], width: int) -> Any:
    outputs = plan.model.get("outputs") or ()
    columns: dict[str, list[str]] = {name: [] for name in _COLUMNS}
    for name, view in plan.views.items():
        frame = data[name]
        kernel = view.kernel if isinstance(view.kernel, str) else repr(view.kernel)
        row = (
            name,
            type(view).__name__.lower(),
            len(frame),
            frame.shape[1],
            f"{frame.isna().to_numpy().mean():.1%}",
            "output" if name in outputs else "",
            "–" if view.kernel is None else kernel,
            plan.sources[name].name,
        )
        for column, cell in zip(columns.values(), row, strict=True):
            column.append(str(cell))
    names = fitting(columns, width)
    rows = list(zip(*(columns[one] for one in names), strict=True))
    return table(names, rows, ("samples", "columns", "missing"))


def _foot(parameters: Parameters) -> str:
    most = "as many factors as the data support"
    if parameters.n_factors is not None:
        most = f"at most {counted(parameters.n_factors, 'factor')}"
    outputs = listed(parameters.outputs or ())
    predicting = f", to predict {outputs} from the others" if outputs else ""
    starts = f", the best of {parameters.n_init} starts" if parameters.n_init > 1 else ""
    return f"\nkofa fit would look for {most}{starts}{predicting}; nothing is fitted yet"
