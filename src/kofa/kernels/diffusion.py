"""A kernel that spreads along the rows of a fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from kofa import tuning
from kofa.checks import hinting
from kofa.errors import DeclarationError
from kofa.kernels.base import Kernel
from kofa.kernels.graphs import Graph
from kofa.linalg import Array, inner


@hinting()
@dataclass(frozen=True)
class Diffusion(Kernel):
    """How alike x and v are to something that spreads along the rows of a fit.

    k(x, v) = s(x)ᵀ G s(v), brought to k(x, x) = 1. G = exp(−time (I − S)) is how it spreads over
    the graph that joins each row of the fit to its nearest; s(x) are the weights of the rows
    nearest to x. So two rows are alike if others lie in a row between them, and not across a gap.
    It is what samples without a label tell about those with one. Far from all rows it is zero.

    Parameters
    ----------
    neighbours : int
        How many others each row is joined to.
    time : float or "auto"
        How far it spreads. "auto" is learnt from the output views where there are some, else 5.
    graph : None
        The rows that are joined, as `of` finds them; fit does it by itself.

    Examples
    --------
    Two arcs around each other. The end of one is nearer to the other arc than to its own
    beginning, but something spreads along the arc and not across the gap.

    >>> import numpy as np, kofa
    >>> angle = np.linspace(0, np.pi, 60)
    >>> arc = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X = np.concatenate([arc, [1, 0.4] - arc])
    >>> beginning, end, other = X[[0]], X[[59]], X[[60]]
    >>> bool(np.linalg.norm(end - other) < np.linalg.norm(end - beginning))
    True
    >>> kernel = kofa.Diffusion(time=100).of(X)
    >>> kernel(end, np.concatenate([beginning, other])).round(2)
    array([[0.21, 0.  ]])
    """

    neighbours: int = 10
    time: float | Literal["auto"] = "auto"
    graph: Graph | None = field(default=None, repr=False, compare=False, kw_only=True)

    @property
    def ignores_shift(self) -> bool:
        return True

    @property
    def needs_rows(self) -> bool:
        return self.graph is None

    @property
    def learns_time(self) -> bool:
        return self.time == "auto"

    def of(self, rows: Any) -> Diffusion:
        """The kernel on the graph of some rows."""
        return replace(self, graph=Graph.of(np.asarray(rows, dtype=float), int(self.neighbours)))

    def on(self, X: Array) -> Diffusion:
        return self.of(X)

    def resolve(self, V: Array) -> Diffusion:
        kernel = self.of(V) if self.needs_rows else self
        return replace(kernel, time=tuning.DIFFUSION_TIME) if isinstance(self.time, str) else kernel

    def spread(self, X: Array) -> tuple[Array, Array]:
        """What rows put on the directions of the graph, and how near they are to its rows."""
        if self.graph is None:
            what, cure = f"the graph of {self!r} is left to the data", f"call {self!r}.of(rows)"
            raise DeclarationError(what, option="graph", cure=cure)
        return self.graph.spread(X, int(self.neighbours))

    def after(self, time: float, along: Array, near: Array) -> Array:
        """φ with k(x, v) = φ(x)·φ(v), from what `spread` finds."""
        assert self.graph is not None
        left = along * np.exp(-0.5 * time * self.graph.rates)
        length = np.sqrt(np.maximum((left**2).sum(axis=1), np.finfo(float).tiny))
        left *= (near / length)[:, None]
        return np.asarray(left)

    def features(self, X: Array) -> Array:
        """φ of rows."""
        if isinstance(self.time, str):
            what, cure = f"the time of {self!r} is left to the data", "set a number to call it"
            raise DeclarationError(what, option="time", cure=cure)
        return self.after(self.time, *self.spread(X))

    def __call__(self, X: Array, V: Array) -> Array:
        left = self.features(X)
        return inner(left, left if X is V else self.features(V))

    def diagonal(self, X: Array) -> Array:
        return np.ones(len(X))
