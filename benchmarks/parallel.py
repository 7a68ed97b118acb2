"""Several fits at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from joblib import Parallel, parallel_config

PROCESSES = 2


def in_parallel(calls: Iterable[Any]) -> list[Any]:
    """Results of `joblib.delayed` calls in their order, each call with one thread."""
    with parallel_config("loky", n_jobs=PROCESSES, inner_max_num_threads=1):
        return list(Parallel()(calls))
