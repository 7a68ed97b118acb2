"""Views as options of the command line: --view NAME=FILE[:COLUMNS][:KIND], --kernel NAME=KERNEL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kofa.cli import UsageError
from kofa.cli.plan import KINDS, STDIN, Plan, Source, declare, kind_cure, options_of, reading_of
from kofa.errors import DeclarationError
from kofa.files import hint
from kofa.kernels.declared import as_kernels
from kofa.views import View

_PART_KEYS = {".npz": "array", ".h5mu": "modality", ".h5ad": "layer"}


def parse_view(text: str, shared: Mapping[str, Any]) -> tuple[str, Source]:
    """The name of a view and where it is, from one option --view.

    >>> name, source = parse_view("stage=clinical.csv:stage:categorical", {})
    >>> name, str(source.file), source.reading.columns, source.kind
    ('stage', 'clinical.csv', ('stage',), 'categorical')
    """
    name, equals, rest = text.partition("=")
    if not (name and equals and rest):
        raise UsageError("expected --view NAME=FILE[:COLUMNS][:KIND]", got=text)
    file, parts = split_path(rest)
    options = dict(shared)
    key = _PART_KEYS.get(file.suffix.lower())
    kind = parts.pop() if parts and parts[-1] in KINDS else None
    if key is not None and parts:
        options[key] = parts.pop(0) or options.get(key)
        if options[key] == "obs" and key == "modality":
            options["layer"] = options.pop(key)
    if parts:
        columns = parts.pop(0)
        options |= {"columns": [one.strip() for one in columns.split(",")]} if columns else {}
    if parts:
        what, cure = f"{parts[-1]!r} is not a kind", kind_cure(parts[-1])
        raise UsageError(what, source=f"--view {text}", cure=cure)
    options = {key: value for key, value in options.items() if value is not None}
    return name, Source(file, reading_of(options, kind or "real"), kind)


def parse_views(
    options: Sequence[str], shared: Mapping[str, Any]
) -> Iterator[tuple[str, str, Source]]:
    """Name, text and source of each option --view."""
    named: set[str] = set()
    files: list[Path] = []
    for text in options:
        name, source = parse_view(text, shared)
        if name in named:
            raise UsageError(f"the view {name!r} is given twice", source=f"--view {text}")
        if source.file is STDIN and any(one is STDIN for one in files):
            what = "only one table can be read from stdin"
            raise UsageError(what, source=f"--view {text}")
        named.add(name)
        files.append(source.file)
        yield name, text, source


def split_path(text: str) -> tuple[Path, list[str]]:
    """A path, which may itself have colons if it exists, and what follows it; - is stdin."""
    pieces = text.split(":")
    if pieces[0] == "-":
        return STDIN, pieces[1:]
    for n in range(len(pieces), 0, -1):
        path = Path(":".join(pieces[:n]))
        if path.exists():
            return path, pieces[n:]
    drive = len(pieces) > 1 and len(pieces[0]) == 1 and pieces[1][:1] in ("/", "\\")
    return Path(":".join(pieces[: 1 + drive])), pieces[1 + drive :]


def plan_of_options(
    views: Sequence[str],
    kernel: Sequence[str],
    shared: Mapping[str, Any],
    base: Plan | None = None,
) -> Plan:
    """The plan of options --view and --kernel, on top of a study if there is one."""
    declared, sources = ({}, {}) if base is None else (dict(base.views), dict(base.sources))
    for name, _, source in parse_views(views, shared):
        old = sources.get(name)
        if old is not None and source.kind is None:
            sources[name] = old.replaced_by(source)
        else:
            declared[name] = declare(name, source.kind or "real", {})
            sources[name] = source
    for name, value in parse_kernels(kernel).items():
        _check_kernel(name, value, declared)
        declared[name] = replace(declared[name], kernel=value)
    if base is None:
        return Plan(declared, sources, {})
    return Plan(declared, sources, dict(base.model), base.located)


def _check_kernel(name: str, value: Any, views: Mapping[str, View]) -> None:
    """Raise unless a view can have this kernel."""
    where = f"--kernel {name}"
    if name not in views:
        cure = hint(name, views, "the views are")
        raise UsageError(f"there is no view {name!r}", source=where, cure=cure)
    kind = type(views[name]).__name__.lower()
    if "kernel" not in options_of(kind):
        raise UsageError(f"a view of kind {kind} has no kernel", source=where)
    try:
        as_kernels(value, name)
    except DeclarationError as error:
        raise error.as_error(UsageError, source=where) from None


def parse_kernels(options: Sequence[str]) -> dict[str, Any]:
    """Kernels by view from options --kernel NAME=KERNEL[,KERNEL].

    >>> parse_kernels(["x=rbf", "y=rbf,linear"])
    {'x': 'rbf', 'y': ['rbf', 'linear']}
    """
    found: dict[str, Any] = {}
    for text in options:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError("expected --kernel NAME=KERNEL", got=text)
        words = value.split(",")
        found[name] = words if len(words) > 1 else value
    return found
