"""A function of one item after the other, computed ahead in other threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from kofa.linalg import threads_for

In = TypeVar("In")
Out = TypeVar("Out")


def in_threads(function: Callable[[In], Out], items: Iterable[In], n_threads: int) -> Iterator[Out]:
    """The results in the order of the items; in several threads with one thread of BLAS each."""
    if n_threads == 1:
        yield from map(function, items)
        return
    with threads_for(0.0):
        yield from ahead(function, items, n_threads)


def ahead(function: Callable[[In], Out], items: Iterable[In], n_threads: int) -> Iterator[Out]:
    """The results in the order of the items; no more than a few wait to be asked for."""
    waiting: deque[Future[Out]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for one in waiting:
                one.cancel()
