"""All experiments by name, and which of them a user asks for."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module

import experiments
from experiments.baselines.mrd import has_gpy
from experiments.experiment import Benchmark, Experiment, Measurement
from experiments.tasks import Options, Task
from kofa.errors import DeclarationError

GROUPS = {
    "paper": "tables and figures of the paper",
    "bench": "speed, memory and accuracy of kofa",
    "tuning": "what half and twice of each number of kofa.tuning do",
    "peers": "other packages on the same data; they have to be installed",
}
NEED_GPY = ("MRD", "MRD (GPy)")


@dataclass(frozen=True)
class Named:
    """An experiment with its name and group."""

    name: str
    group: str
    experiment: Experiment | Benchmark | Measurement


def find() -> tuple[dict[str, Named], dict[str, str]]:
    """Experiments by name; and modules that cannot be imported, with the package they need."""
    found, missing = {}, {}
    prefix = f"{experiments.__name__}."
    for module in pkgutil.walk_packages(experiments.__path__, prefix):
        if module.name.endswith("__main__"):
            continue
        try:
            names = getattr(import_module(module.name), "EXPERIMENTS", {})
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] in ("kofa", "experiments"):
                raise
            missing[module.name.removeprefix(prefix)] = str(error.name)
            continue
        group = "peers" if ".peers." in module.name else "bench"
        for name, experiment in names.items():
            found[name] = Named(name, getattr(experiment, "group", group), experiment)
    return found, missing


def chosen(names: Iterable[str], known: Mapping[str, Named]) -> list[Named]:
    """Those with these names, or in groups of these names, in this order; "all" is every one."""
    wanted = list(names)
    refuse_unknown("experiment", wanted, [*known, *GROUPS, "all"])
    found = {
        one.name: one
        for name in wanted
        for one in known.values()
        if name in (one.name, one.group, "all")
    }
    return list(found.values())


def check(asked: Sequence[Experiment], options: Options) -> None:
    """Sets and methods that were asked for are there in at least one of the experiments."""
    whole = replace(options, sets=(), methods=(), quick=False)

    def tasks_of(options: Options) -> list[Task]:
        return [task for experiment in asked for task in experiment.tasks(options)]

    tasks = tasks_of(whole)
    rows = dict.fromkeys(task.row for task in tasks)
    needs = {} if has_gpy() else dict.fromkeys(NEED_GPY, "it needs GPy: pip install GPy")
    needs |= {
        task.row: "it needs --as-published" for task in tasks_of(replace(whole, as_published=True))
    }
    refuse_unknown("data set", options.sets, dict.fromkeys(task.dataset for task in tasks))
    for method in options.methods:
        if method not in rows and method in needs:
            raise DeclarationError(f"The method {method!r} cannot be run: {needs[method]}.")
    refuse_unknown("method", options.methods, rows)


def refuse_unknown(what: str, asked: Iterable[str], known: Iterable[str]) -> None:
    """An error that suggests the nearest name, where one is asked for that is not there."""
    known = list(known)
    for name in asked:
        if name not in known:
            near = get_close_matches(name, known, 1)
            listed = f" Known: {'; '.join(known)}." if len(known) < 40 else ""
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise DeclarationError(f"There is no {what} {name!r}{hint}{listed}")
