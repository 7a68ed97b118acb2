"""Tables in a folder that hold new samples of others."""

from __future__ import annotations

from collections.abc import Sequence

from kofa.cli.cells import Cells


def without_new_samples(tables: Sequence[Cells]) -> tuple[list[Cells], list[str]]:
    """Tables without those that have the columns of another and other samples, and remarks."""
    main = _connected(tables)
    kept, remarks = [], []
    for table in tables:
        alike = [one for one in main if table not in main and _is_more_of(table, one)]
        if not alike:
            kept.append(table)
            continue
        old = max(alike, key=lambda one: one.path.stem in table.path.stem)
        remarks.append(
            f"left out {table.path.name}: new samples, with the columns of {old.path.name}; "
            f"kofa predict and kofa transform take them"
        )
    return kept, remarks


def _is_more_of(table: Cells, old: Cells) -> bool:
    """Whether a table has the columns of another, and other samples."""
    if table.path == old.path or set(table.columns) != set(old.columns):
        return False
    nameless = table.options.get("index") is False and old.options.get("index") is False
    return len(table.ids) != len(old.ids) if nameless else set(old.ids).isdisjoint(table.ids)


def _connected(tables: Sequence[Cells]) -> list[Cells]:
    """The largest set of tables that share samples, directly or through others.

    It has the most different columns, then the most samples, then the most tables.
    """
    groups: list[tuple[list[Cells], set[str]]] = []
    for table in tables:
        ids = set() if table.options.get("index") is False else set(table.ids)
        linked = [group for group in groups if not group[1].isdisjoint(ids)]
        members = [one for group in linked for one in group[0]]
        groups = [group for group in groups if group not in linked]
        groups.append(([*members, table], ids.union(*(group[1] for group in linked))))

    def size(group: tuple[list[Cells], set[str]]) -> tuple[int, int, int]:
        names = {name for table in group[0] for name in table.columns}
        return len(names), max(len(table.ids) for table in group[0]), len(group[0])

    return max(groups, key=size)[0] if groups else []
