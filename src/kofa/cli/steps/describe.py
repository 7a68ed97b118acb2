"""`kofa info`: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kofa.cli.display import counted, table
from kofa.errors import FileError
from kofa.files import check_exists, listed
from kofa.model import FactorModel
from kofa.model import load as load_model
from kofa.report.repeat import few_digits
from kofa.storage.archive import open_archive


def load(path: Path) -> FactorModel:
    """A model from its file, or an error that says which command writes one."""
    check_exists(path)
    if not is_archive(path):
        raise FileError("this is not a kofa model", path, cure="kofa fit writes one")
    return load_model(path)


def is_archive(path: Path) -> bool:
    """Whether a file may be one of kofa's own."""
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04" and path.suffix.lower() != ".npz"


def describe(model: FactorModel) -> dict[str, Any]:
    """What there is to know about a model, in plain values."""
    weights = model.kernel_weights().groupby("view")["weight"].sum()
    return {
        "factors": int(model.n_factors_),
        "bound": float(model.lower_bound_),
        "iterations": int(model.n_iter_),
        "converged": bool(model.converged_),
        "views": {
            name: {
                "source": view.source,
                "kind": view.declared.lower(),
                "kernel": repr(model.kernels_[name]) if name in model.kernels_ else None,
                "columns": int(view.n_inputs),
                "landmarks": len(view.landmarks) if name in model.kernels_ else None,
                "classes": None if view.classes is None else view.classes.tolist(),
                "output": bool(view.role.output),
                "share": float(weights.get(name, 0.0)),
            }
            for name, view in model.views_.items()
        },
    }


def info(path: Path) -> dict[str, Any]:
    """The description of a model file, with the versions that wrote it."""
    model = load(path)
    with open_archive(path, "model") as (manifest, *_):
        versions = {key: manifest[key] for key in ("kofa_version", "format_version")}
    return {"file": str(path), "bytes": path.stat().st_size, **versions, **describe(model)}


def show_info(path: Path) -> list[Any]:
    """The description of a model file, for people."""
    found = info(path)
    state = "converged" if found["converged"] else "not converged"
    head = (
        f"{found['file']}: {counted(found['factors'], 'factor')}, "
        f"{counted(len(found['views']), 'view')}, {state} after "
        f"{counted(found['iterations'], 'iteration')}, bound {found['bound']:.6g}\n"
        f"written by kofa {found['kofa_version']}, format {found['format_version']}, "
        f"{found['bytes'] / 1024:,.0f} KiB\n"
    )
    rows = []
    for name, one in found["views"].items():
        kernel, landmarks = short_kernel(one["kernel"]), one["landmarks"] or "–"
        role = "output" if one["output"] else ""
        share = f"{one['share']:.0%}"
        rows.append((name, one["kind"], one["columns"], share, landmarks, role, kernel))
    names = ("view", "kind", "columns", "share", "landmarks", "role", "kernel")
    labels = [
        f"classes of {name}: {listed(one['classes'])}"
        for name, one in found["views"].items()
        if one["classes"] is not None
    ]
    below = "\n".join(["", "share: of what is known about the factors", *labels])
    return [head, table(names, rows, ("columns", "share", "landmarks")), below]


def short_kernel(kernel: str | None) -> str:
    """A kernel as it fits into a table."""
    return "–" if kernel is None else few_digits(kernel)
