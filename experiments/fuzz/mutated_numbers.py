"""Model files in which one number of the manifest was replaced: nothing falls, and what it takes.

Each number in the manifest of each of many models, of every kind of view and every kernel, becomes
each of `INSTEAD`, one at a time. Most of these files are refused. Where another number could have
been found, declared or taken as a name (`VALUES`), the model is read, and applied to the data of
its fit: these may be refused then, in kofa's words. KOFA_SEED gives other models.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np

import kofa
from experiments.experiment import Mark, Measurement, Row
from experiments.fuzz.model_files import members, originals, tables, zipped
from experiments.fuzz.mutated_files import MOST_MEMORY, MOST_SECONDS, memory, outcome

INSTEAD: tuple[Any, ...] = (0, -1, 3.0, 10**9, 1e9, 10**18, 1e18, "3")
# The last key before a number that may be another, within limits that `storage.schema` has.
VALUES = {
    # what a fit finds
    "amplitude", "mean_self", "n_predictive", "n_rows", "rate", "rho", "scale", "shape", "shared",
    "slope", "unit", "weight",
    # what users declare, or what is learnt in its place
    "checkpoint_every", "degree", "keep", "max_iter", "n", "n_factors", "n_init", "neighbours",
    "offset", "relevance", "time", "weights", "width",
    # names
    "groups", "inputs", "objects", "outputs", "timestamp",
}  # fmt: skip


def numbers(tree: Any, path: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Each number of a JSON value: what holds it, its key, and all keys that lead there."""
    for key, value in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        if isinstance(value, dict | list):
            yield from numbers(value, f"{path}/{key}")
        elif type(value) in (int, float):
            yield tree, key, f"{path}/{key}"


def changed(which: int) -> Iterator[tuple[str, Any, bytes]]:
    """Files of a model with one number replaced: which, by what, and the bytes."""
    (name, text), *others = members(which)
    manifest = json.loads(text)
    for holder, key, path in numbers(manifest):
        number = holder[key]
        for value in INSTEAD:
            holder[key] = value
            yield path, value, zipped([(name, json.dumps(manifest).encode()), *others])
        holder[key] = number


def check(which: int, where: str, path: Path) -> str:
    """What becomes of a file: "refused" or "applied", or what is wrong."""
    used = memory(path)
    began = process_time()
    what = outcome(path)
    took = process_time() - began
    if used > MOST_MEMORY or took > MOST_SECONDS:
        return f"{what}, {used:.0f} MiB, {took:.1f} s"
    if what != "loaded":
        return what
    named = [key for key in where.split("/") if not key.isdigit() and key not in ("tuple", "dict")]
    about = where.startswith("/about/")  # which nobody reads
    by_source = named[-2:-1] == ["weights"]  # and then the name of a view
    known = about or by_source or named[-1] in VALUES
    return applied(which, path) if known else "loaded, and no such value"


def applied(which: int, path: Path) -> str:
    """ "applied", or the foreign error that a call of the model ends with."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for call in calls(kofa.load(path), tables()[which]):
            try:
                call()
            except kofa.KofaError:
                continue
            except Exception as error:
                return repr(error)
    return "applied"


def calls(model: Any, data: dict[str, Any]) -> list[Callable[[], Any]]:
    """What a model is asked for."""
    outputs = [name for name in data if name in (model.outputs or [])]
    inputs = {name: table for name, table in data.items() if name not in outputs}
    return [
        lambda: model.transform(inputs),
        lambda: model.reconstruct(inputs),
        lambda: [model.predict(inputs, name, return_std=True) for name in outputs],
        lambda: [model.predict({n: t for n, t in data.items() if n != one}, one) for one in data],
        lambda: model.impute(data),
        lambda: model.score(data),
        lambda: model.outliers(data),
        model.factors,
        model.variance_explained,
        model.bound_terms,
        model._repr_html_,
        lambda: repr(model),
    ]


def mutated_numbers() -> Row:
    found: Counter[str] = Counter()
    failures: list[str] = []
    with TemporaryDirectory() as place:
        path = Path(place, "model.kofa")
        for which in range(len(originals())):
            for where, value, data in changed(which):
                path.write_bytes(data)
                what = check(which, where, path)
                found[what if what in ("applied", "refused") else "wrong"] += 1
                if what not in ("applied", "refused"):
                    failures.append(f"{which}{where} = {value!r}: {what}")
    text = f"{len(failures)} ({found['refused']} refused; {found['applied']} read and applied)"
    what = (
        f"of {found.total()} model files with another number, read though it is no possible "
        f"value, foreign errors, more than {MOST_MEMORY:.0f} MiB beyond the size of the file, or "
        f"more than {MOST_SECONDS:.0f} s"
    )
    return Row(what, len(failures), Mark(high=0), "; ".join([text, *failures[:20]]))


EXPERIMENTS: dict[str, Measurement] = {"mutated-numbers": mutated_numbers}
