"""Each number of `kofa.tuning` at half and at twice its value: what becomes of small problems.

A problem is run with another number only if it reads that number.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from fnmatch import fnmatch
from functools import cache, partial
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np

from experiments.experiment import Experiment, Shown, Table
from experiments.tasks import FOLDS, Options, Result, Results, Task
from experiments.tuning.changes import Changes, figure
from experiments.tuning.numbers import changed, names, recorded, shown
from experiments.tuning.problems import PROBLEMS, Problem
from kofa import tuning

SEEDS = 2
AS_IT_IS = "as it is"
TIMES = {"at half": 0.5, "at twice": 2.0}
Before = dict[tuple[str, int], Result]


@cache
def reads(problem: Problem) -> list[str]:
    """The numbers with which a problem is run."""
    meant = [name for name in names() if any(fnmatch(name, one) for one in problem.only)]
    if problem.takes_long:
        return meant
    with recorded() as read, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(0)
    return [name for name in meant if name in read]


# ---------------------------------------------------------------- tasks


def measured(problem: str, seed: int, numbers: Mapping[str, Any]) -> Result:
    """Scores and CPU seconds with other numbers."""
    with ExitStack() as stack:
        for name, value in numbers.items():
            stack.enter_context(patch.object(tuning, name, value))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        begin = process_time()
        scores = PROBLEMS[problem].solve(seed)
        return {**scores, "cpu": process_time() - begin}


def seeds(options: Options) -> range:
    """Two, or as many as --folds says."""
    return range(1 if options.quick else SEEDS if options.folds == FOLDS else options.folds)


def task(problem: str, method: str, row: str, seed: int, numbers: Mapping[str, Any]) -> Task:
    work = partial(measured, problem, seed, numbers)
    settings = {"numbers": numbers, "what": PROBLEMS[problem].what}
    return Task("tuning", problem, method, seed, work, settings, row)


def tasks(options: Options) -> list[Task]:
    """Each problem as it is, and with each number that it reads changed."""
    found = []
    for problem in options.chosen(PROBLEMS):
        asked = [name for name in options.asked(names()) if name in reads(PROBLEMS[problem])]
        first = [*options.methods, AS_IT_IS][0]  # every row needs it: it comes with the first
        for seed in seeds(options) if asked else ():
            found.append(task(problem, AS_IT_IS, first, seed, {}))
            found += [
                task(problem, f"{name} {how}", name, seed, {name: changed(name, times)})
                for name in asked
                for how, times in TIMES.items()
            ]
    return found


# ---------------------------------------------------------------- the table


def show(results: Results, options: Options) -> Shown:
    """A row for each number, and one for each problem."""
    asked, before = tasks(options), as_they_are(results)
    found = {
        name: {how: changes(before, results, asked, f"{name} {how}") for how in TIMES}
        for name in options.asked(names())
    }
    title = "Each number at half and at twice its value"
    header = ["number", "value", "problems", "at half", "CPU", "at twice", "CPU"]
    rows = [row(name, of, asked) for name, of in found.items()]
    table = Table("tuning", title, header, rows, notes(found))
    return Shown([table, problems(results, options)])


def changes(before: Before, results: Results, asked: list[Task], method: str) -> Changes:
    """Of one number at half or at twice."""
    pairs: dict[str, list[tuple[Result, Result] | None]] = {}
    for one in asked:
        if one.method == method:
            old, new = before.get((one.dataset, one.fold)), results.get(one)
            pair = None if old is None or new is None else (old, new)
            pairs.setdefault(one.dataset, []).append(pair)
    return Changes.of(pairs)


def as_they_are(results: Results) -> Before:
    """Results by problem and seed, with the median CPU time of all runs, whatever was changed.

    Most numbers hardly change it, and a single run may have been disturbed.
    """
    cpu: dict[tuple[str, int], list[float]] = {}
    for one, result in results.items():
        cpu.setdefault((one.dataset, one.fold), []).append(float(result["cpu"]))
    return {
        key: {**result, "cpu": float(np.median(cpu[key]))}
        for one, result in results.items()
        if one.method == AS_IT_IS
        for key in [(one.dataset, one.fold)]
    }


def row(name: str, found: Mapping[str, Changes], asked: list[Task]) -> list[str]:
    start = [f"`{name}`", shown(getattr(tuning, name))]
    used = {one.dataset for one in asked if one.row == name and one.method != AS_IT_IS}
    if not used:
        return [*start, "0", "not used in any of these problems", "–", "", "–"]
    return [*start, str(len(used)), *(cell for how in TIMES for cell in cells(name, how, found))]


def cells(name: str, how: str, found: Mapping[str, Changes]) -> list[str]:
    """What changes; with the value where it is not simply half or twice."""
    text, time = found[how].cells()
    value, new = getattr(tuning, name), changed(name, TIMES[how])
    odd = isinstance(value, float) and not np.isclose(new, TIMES[how] * value)
    return [f"({shown(new)}) {text}" if odd else text, time]


def notes(found: Mapping[str, Mapping[str, Changes]]) -> list[str]:
    """Numbers that are clearly better otherwise."""
    return [
        f"Better, `{name}` {how}: {'; '.join(map(str, of.better))}."
        for name, both in found.items()
        for how, of in both.items()
        if of.better
    ]


def problems(results: Results, options: Options) -> Table:
    """What the problems are, and their scores with all numbers as they are."""
    means = {name: scores_of(results, name) for name in options.chosen(PROBLEMS)}
    rows = [[name, PROBLEMS[name].what, ", ".join(of)] for name, of in means.items() if of]
    title = "The problems, and their scores with the numbers as they are"
    return Table("tuning-problems", title, ["problem", "what", "scores"], rows)


def scores_of(results: Results, problem: str) -> list[str]:
    """Means over seeds."""
    mine = [r for t, r in results.items() if (t.dataset, t.method) == (problem, AS_IT_IS)]
    scores = [score for score in (mine[0] if mine else ()) if score != "cpu"]
    return [figure(s, float(np.mean([float(one[s]) for one in mine]))) for s in scores]


EXPERIMENTS = {"tuning": Experiment(tasks, show, group="tuning", own_data=True)}
