"""Which samples are left out together."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, check_cv

from kofa.checks import is_whole, require
from kofa.errors import DeclarationError
from kofa.linalg import IntArray


class Fold(NamedTuple):
    """Positions of the samples of a fit, and of those that are predicted; both in order."""

    train: IntArray
    test: IntArray


def split(cv: Any, n: int, labels: Any = None, groups: Any = None) -> list[Fold]:
    """The folds of n samples; `labels` are of the only output, where these are classes."""
    if is_whole(cv, 2) and cv > n:
        what = f"expected at most as many folds as samples ({n})"
        raise DeclarationError(what, got=cv, option="cv")
    splitter = _splitter(cv, labels, groups)
    with warnings.catch_warnings():
        # Classes that are in no training set are warned of later, by their names.
        warnings.filterwarnings("ignore", "The least populated class")
        try:
            parts = list(splitter.split(np.zeros((n, 1)), labels, groups))
        except (ValueError, TypeError) as error:
            what = f"the samples cannot be split: {str(error).rstrip('.')}"
            raise DeclarationError(what, option="cv") from error
    folds = [_checked(k, part, n) for k, part in enumerate(parts)]
    require(bool(folds), "cv", "a splitter with at least one fold", cv)
    return folds


def _splitter(cv: Any, labels: Any, groups: Any) -> Any:
    if is_whole(cv, 2):
        if groups is not None:
            return GroupKFold(int(cv))
        kind = KFold if labels is None else StratifiedKFold
        return kind(int(cv), shuffle=True, random_state=0)
    several = hasattr(cv, "split") or isinstance(cv, Iterable)
    expected = "a number of folds of at least 2, a splitter of scikit-learn or pairs of positions"
    require(several and not isinstance(cv, str | type), "cv", expected, cv)
    return check_cv(cv)


def _checked(k: int, part: Any, n: int) -> Fold:
    """The positions of a fold, which may not be in both of its parts."""
    try:
        train, test = (_positions(positions, n) for positions in part)
    except (TypeError, ValueError, IndexError):
        what = f"fold {k}: expected positions of training and test samples below {n}"
        raise DeclarationError(what, got=part, option="cv") from None
    shared = np.intersect1d(train, test)
    if len(shared):
        what = f"fold {k}: sample number {int(shared[0])} is both in the fit and predicted"
        raise DeclarationError(what, option="cv")
    if not (len(train) and len(test)):
        which = "test" if len(train) else "training"
        raise DeclarationError(f"fold {k} has no {which} samples", option="cv")
    return Fold(train, test)


def _positions(positions: Any, n: int) -> IntArray:
    """In order, each once; a mask is taken as well."""
    given = np.asarray(positions)
    return np.unique(np.arange(n)[given if given.size else []])
