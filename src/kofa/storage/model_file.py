"""Fitted models in files; and any object that `codec` can convert, in a file of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kofa.errors import FileError
from kofa.inference.posterior import n_factors_of
from kofa.inference.predictive import as_found
from kofa.kernels.declared import as_kernels
from kofa.kernels.mixture import Mixture
from kofa.linalg import Array, BoolArray
from kofa.preparation.fitted import Fitted
from kofa.preparation.parameters import Parameters
from kofa.preparation.questions import Question, Questions
from kofa.storage import archive
from kofa.storage.codec import OTHERWISE, from_json, to_json
from kofa.storage.damage import require
from kofa.storage.fields import read_fields
from kofa.storage.manifest import MemoryBudget
from kofa.storage.npy import NamedArrays
from kofa.storage.schema import MODEL, PARAMETERS, PATH, SAVED_KERNELS
from kofa.storage.validation import (
    by_name,
    check_explained,
    check_model,
    check_question,
    check_rows,
    check_seen,
)

# The parts of a model are checked when it is read. What is wrong with a checkpoint would not show
# before the fit goes on, so that its file has a checksum and is read only as it was written.
_WITH_CHECKSUM = {"checkpoint"}


def write_object(
    path: archive.StrPath,
    contents: str,
    value: Any,
    about: Mapping[str, Any] | None = None,
    check: Callable[[Any], Any] = lambda _: None,
    otherwise: str = OTHERWISE,
    only_try: bool = False,
) -> None:
    """Write an object, or with `only_try` raise if no file can hold it.

    `about` is for people who open the file, and is not read again. `check` gets what the file will
    give back, and raises if it cannot be used. `otherwise` is what the user can do then.
    """
    tree, arrays = to_json(value, otherwise)
    manifest = {"contents": contents, "about": dict(about or {}), "tree": tree}
    if contents in _WITH_CHECKSUM:
        manifest["seal"] = _checksum(tree, arrays)
    budget = MemoryBudget()
    with archive.must_be_readable(path, otherwise):
        check(from_json(tree, arrays, budget))
    use = archive.encode_manifest if only_try else archive.write_archive
    use(path, manifest, arrays, budget)


def read_object(path: archive.StrPath, contents: str) -> Any:
    """The object in a file of these contents."""
    with archive.open_archive(path, contents) as (manifest, arrays, budget):
        tree = manifest.get("tree")
        value = from_json(tree, arrays, budget)
        require(len(arrays.in_memory) == len(arrays), "it has arrays that nothing refers to")
        same = contents not in _WITH_CHECKSUM or manifest.get("seal") == _checksum(tree, arrays)
        require(same, "it is not what was written")
    return value


def _checksum(tree: Any, arrays: NamedArrays) -> str:
    """Differs wherever the contents do."""
    digest = hashlib.blake2b(json.dumps(tree).encode())
    for name, array in sorted(arrays.items()):
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f"{name} {plain.dtype.str} {array.shape} ".encode())
        digest.update(plain.reshape(-1).view(np.uint8).data if plain.size else b"")
    return digest.hexdigest()


def check_kernels(kernels: Mapping[str, Any], otherwise: str = OTHERWISE) -> None:
    """Raise for a kernel that is a function: no file can hold it without holding code."""
    for name, kernel in kernels.items():
        for part in kernel.kernels if isinstance(kernel, Mixture) else (kernel,):
            if type(part) not in SAVED_KERNELS:
                raise FileError(
                    f"View {name!r}: a kernel of your own ({part!r:.80}) is code, which a file "
                    f"never holds; {otherwise}, or fit with one of kofa's kernels or with "
                    f"kernel='precomputed'."
                )


def write_model(
    path: archive.StrPath,
    parameters: Parameters,
    fitted: Fitted,
    samples: bool = True,
    rows: bool = True,
) -> None:
    """Write a fitted model, or raise if no file can hold it.

    `samples`: with the factors of its samples; `rows`: with the rows from which views are asked.
    """
    check_kernels(fitted.kernels)
    held = {
        "parameters": _saved_parameters(parameters),
        "views": fitted.views,
        "posterior": tuple(fitted.posterior.values()),
        "basis": fitted.basis,
        "factor_names": fitted.names,
        "samples": fitted.samples if samples else None,
        "explained": dict(fitted.explained),
        "rows": _saved_rows(fitted.questions) if rows else None,
        "questions": {
            name: _saved_question(asked, rows) for name, asked in fitted.questions.asked.items()
        },
        "converged": bool(fitted.converged),
        "path": _bounds_as_table(fitted),
    }
    about = {
        "views": {name: f"{view!r:.2000}" for name, view in (parameters.views or {}).items()},
        "outputs": fitted.outputs,
        "n_factors": fitted.n_factors,
    }
    write_object(path, "model", held, about, check=_model_of)


def read_model(path: archive.StrPath) -> tuple[Parameters, Fitted]:
    """What `write_model` was given."""
    held = read_object(path, "model")
    with archive.naming_file(path):
        return _model_of(held)


def _model_of(held: Any) -> tuple[Parameters, Fitted]:
    """Parameters and all that was found, checked one by one and all together."""
    require(isinstance(held, dict), "parts of the model are missing")
    held = read_fields("model", MODEL, held)
    _check_parameters(held["parameters"])
    views = held["views"]
    posterior = by_name(views, held["posterior"])
    check_model(views, posterior)
    check_rows(held["rows"], views)
    for name, question in held["questions"].items():
        check_question(name, question, views)
    questions = Questions(held["rows"], held["questions"])
    samples, names, n_factors = held["samples"], held["factor_names"], n_factors_of(posterior)
    basis = held["basis"] or as_found(n_factors)
    check_seen(basis, names, samples, views, n_factors)
    check_explained(held["explained"], posterior, basis)
    bounds = _bounds(held["path"])
    kept = (*bounds, samples, names, held["explained"])
    parameters = Parameters(**held["parameters"])
    alone = parameters.as_published
    fitted = Fitted(views, posterior, basis, questions, held["converged"], *kept, alone)
    parameters.check(views)
    return parameters, fitted


def _saved_parameters(parameters: Parameters) -> dict[str, Any]:
    saved = vars(parameters) | {"callback": None, "checkpoint": None}
    del saved["n_jobs"]  # that of a machine, not of a model
    seed = parameters.random_state
    saved["random_state"] = int(seed) if isinstance(seed, int | np.integer) else None
    if not isinstance(parameters.engine, str):  # a cluster is not for ever
        saved["engine"] = "auto"
    saved["views"] = None if parameters.views is None else dict(parameters.views)
    saved["outputs"] = None if parameters.outputs is None else list(parameters.outputs)
    return saved


def _saved_rows(questions: Questions) -> dict[str, Array] | None:
    return None if questions.rows is None else dict(questions.rows)


def _saved_question(asked: Question, rows: bool) -> Question:
    """With the residuals of rows or, where no row is to be in the file, of the factors alone."""
    found = asked.found
    if not rows:
        found = replace(found, residuals=found.residuals.of_factors())
    state, bases, compared = dict(asked.state), dict(asked.bases), dict(asked.compared)
    return Question(state, dict(asked.scalings), bases, compared, found)


def _check_parameters(given: dict[str, Any]) -> None:
    """Raise unless the constructor of a model could have got them."""
    read_fields("FactorModel", PARAMETERS, given)
    for name, view in (given.get("views") or {}).items():
        kernels = {} if view.kernel is None else as_kernels(view.kernel, name)
        require(
            all(type(k) in SAVED_KERNELS for k in kernels.values()), "a kernel is not one of kofa's"
        )


def _bounds_as_table(fitted: Fitted) -> dict[str, Any]:
    """A bound and its terms after each iteration, as a list of names and one table."""
    values = np.column_stack([fitted.bounds, *fitted.terms.values()])
    return {
        "terms": list(fitted.terms),
        "values": values,
        "factors_changed": fitted.factors_changed,
    }


def _bounds(path: dict[str, Any]) -> tuple[Array, dict[str, Array], BoolArray | None]:
    """Of what `_bounds_as_table` made."""
    names, values, changed = read_fields("bound", PATH, path).values()
    require(np.ndim(values) == 2 and len(values) > 0, "its bound has no values")
    require(values.shape[1] == 1 + len(set(names)), "its bound has not one value for each term")
    require(len(set(names)) == len(names), "a term of its bound occurs twice")
    whole = changed is None or changed.shape == (len(values),)
    require(whole, "it does not say of each iteration whether factors changed")
    return values[:, 0], dict(zip(names, values[:, 1:].T, strict=True)), changed
