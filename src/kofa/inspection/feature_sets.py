"""Named sets of features, such as the genes of pathways."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from kofa.checks import check_path, listed
from kofa.data.reading import check_collected, is_polars
from kofa.errors import DataError, FileError
from kofa.linalg import IntArray

Sets = dict[Hashable, list[Hashable]]
_FORMS = "pass a dict of name → list of features, a DataFrame, or the path of a GMT file"


def read_gmt(path: str | PathLike[str]) -> dict[str, list[str]]:
    r"""Feature sets of a GMT file, as those of MSigDB: one set in a line.

    Columns are separated by tabs: the name, a description, which is left out, and the features.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    dict of str → list of str
        The features of each set.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "sets.gmt"
    ...     _ = path.write_text("REPAIR\thttps://a.org\tBRCA1\tATM\n", encoding="utf-8")
    ...     read_gmt(path)
    {'REPAIR': ['BRCA1', 'ATM']}
    """
    check_path(path)
    sets: dict[str, list[str]] = {}
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        name, *others = line.split("\t")
        if len(others) < 2:
            what = "expected a name, a description and features, separated by tabs"
            raise FileError(what, path, number, got=line)
        if name in sets:
            what = f"the set {name!r} occurs more than once"
            raise FileError(what, path, number, cure="rename one of them")
        sets[name] = _unique(part.strip() for part in others[1:] if part.strip())
    if not sets:
        raise FileError("there is no feature set in it", path)
    return sets


def _lines(path: str | PathLike[str]) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise FileError(f"it cannot be read ({error.strerror})", path) from error
    except UnicodeDecodeError:
        raise FileError("it is not text in UTF-8", path, cure="save it as UTF-8") from None


def as_sets(given: Any) -> Sets:
    """Sets in any of their forms as a dict; each feature counts once."""
    if isinstance(given, str | PathLike):
        return {name: list(features) for name, features in read_gmt(given).items()}
    if isinstance(given, Mapping):
        return {name: _features(name, features) for name, features in given.items()}
    check_collected(given, source="sets")
    if is_polars(given) or hasattr(given, "iloc"):
        return _of_pairs(given)
    raise DataError("expected feature sets", got=given, cure=_FORMS, source="sets")


def _features(name: Hashable, features: Any) -> list[Hashable]:
    if isinstance(features, str) or not isinstance(features, Iterable):
        what = f"expected the features of {name!r} as a list"
        raise DataError(what, got=features, cure=_FORMS, source="sets")
    return _unique(features.tolist() if isinstance(features, np.ndarray) else features)


def _of_pairs(table: Any) -> Sets:
    """A table with a row for each feature of each set."""
    columns = list(getattr(table, "columns", ()))
    for name in ("set", "feature"):
        if name not in columns:
            what = f"expected columns 'set' and 'feature' but there are {listed(columns) or 'none'}"
            raise DataError(what, column=name, cure="rename the columns", source="sets")
    sets: Sets = {}
    for name, feature in zip(table["set"].to_list(), table["feature"].to_list(), strict=True):
        sets.setdefault(name, []).append(feature)
    return {name: _unique(features) for name, features in sets.items()}


def _unique(features: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(features))


@dataclass(frozen=True, eq=False)
class FoundSets:
    """Sets of which enough features have weights."""

    names: list[Hashable]
    size: list[int]
    members: list[IntArray]  # where their features stand among those with weights
    n_features: int

    @property
    def matrix(self) -> csr_array:
        """A row for each set, with ones for its features."""
        ends = np.cumsum([0, *map(len, self.members)])
        columns = np.concatenate(self.members)
        shape = (len(self.members), self.n_features)
        return csr_array((np.ones(len(columns)), columns, ends), shape=shape)


def found_among(
    sets: Sets, features: Sequence[Hashable], least: int, most: int | None
) -> FoundSets:
    """The sets of which enough, and not too many, features are known."""
    place = {feature: j for j, feature in enumerate(features)}
    members = {
        name: np.array([place[f] for f in wanted if f in place], dtype=np.intp)
        for name, wanted in sets.items()
    }
    limit = len(features) - 1  # there has to be another feature
    limit = limit if most is None else min(most, limit)
    kept = [name for name, inside in members.items() if least <= len(inside) <= limit]
    if not kept:
        raise _none_left(sets, members, features)
    found = [members[name] for name in kept]
    return FoundSets(kept, [len(sets[name]) for name in kept], found, len(features))


def _none_left(sets: Sets, members: dict[Hashable, IntArray], features: Sequence[Any]) -> DataError:
    largest = max(map(len, members.values()), default=0)
    if largest:
        what = f"no set has a number of features within the limits: at most {largest} are found"
        return DataError(what, source="sets", cure="set min_size and max_size")
    theirs = next((f for wanted in sets.values() for f in wanted), None)
    what = (
        f"no feature of the sets has a weight: weights have names such as {features[0]!r}, the "
        f"sets such as {theirs!r}"
    )
    return DataError(what, source="sets", cure="give both the same names of features")
