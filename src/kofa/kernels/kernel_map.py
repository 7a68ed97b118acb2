"""The frozen map from rows to similarities with landmarks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kofa import tuning
from kofa.ahead import in_threads
from kofa.data.scaling import REACH, Scaling
from kofa.errors import DataError, warn
from kofa.kernels.base import Kernel
from kofa.kernels.formulas import LARGEST, Precomputed
from kofa.kernels.mixture import components, kernel_name
from kofa.linalg import Array, BoolArray, IntArray, centre, n_blas_threads

_BLOCK = 2**20  # entries of a kernel that are computed at a time
ROUNDING = 1e-9  # of a similarity: what less of it is left unexplained may be rounding


# What centring leaves of a kernel, relative to its values: below, it is rounding, or that shows.
_CONSTANT, _HARDLY_VARIES = 1e-12, 1e-7


Unseen = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class KernelMap:
    """Rows x to k̃(x, v) = (k(x, v) − mean k(x, ·) − column mean(v) + grand mean) / scale.

    Of very few landmarks only the columns are centred: k̃(x, v) = (k(x, v) − column mean(v)) /
    scale.

    Everything on the right is fixed in fit, so a row's image never depends on its batch.
    """

    view: str  # for messages
    kernel: Kernel
    scaling: Scaling  # of the input columns
    V: Array  # landmarks, scaled
    column_mean: Array  # (R,)
    scale: float
    # Mean over the landmarks of the centred k(v, v). NaN where not known, 0 of a kernel that says
    # nothing: one that is constant up to rounding, or that the outputs switched off.
    mean_self: float
    by_row: bool = True  # whether rows are centred too, which costs one of R directions

    @classmethod
    def fit(
        cls,
        view: str,
        kernel: Kernel,
        scaling: Scaling,
        X: Array,
        index: IntArray,
        by_row: bool = True,
    ) -> KernelMap:
        """Resolve landmarks X[index] (already scaled), width, centring and scale."""
        V = kernel.landmarks(X, index)
        kernel = kernel.resolve(V)
        plain = cls(view, kernel, scaling, V, np.zeros(len(index)), 1.0, np.nan, by_row)
        total, square, largest = np.zeros(len(index)), 0.0, 0.0
        for where in _row_blocks(len(index), len(index)):
            k = plain.evaluate(X[index[where]])
            total += k.sum(axis=0)
            largest = max(largest, float(k.max()), -float(k.min()))
        column_mean = total / len(index)
        centred = replace(plain, column_mean=column_mean)
        for where in _row_blocks(len(index), len(index)):
            k = centred.centre(plain.evaluate(X[index[where]]))
            square += float(np.vdot(k, k))
        size = float(np.sqrt(square)) / len(index)
        if by_row and 0 < size < _HARDLY_VARIES * largest and (V[0] != V).any():
            warn(
                f"View {view!r}: the {kernel_name(kernel)} kernel is all but constant, so that "
                f"rounding shows in it; use scale=True, or another width or offset."
            )
        if size <= _CONSTANT * largest:
            centred = replace(centred, scale=largest or 1.0)
            return centred.switched_off() if by_row else centred
        diagonal = kernel.diagonal(X[index])
        mean = column_mean.mean() if by_row else 0.0
        mean_self = np.nan if diagonal is None else float(diagonal.mean() - mean)
        return replace(centred, scale=size, mean_self=mean_self)

    def switched_off(self) -> KernelMap:
        """The map of a kernel that says nothing."""
        return replace(self, mean_self=0.0)

    @property
    def says_nothing(self) -> bool:
        return self.mean_self == 0.0

    def grams(self, X: Array) -> list[Array]:
        """The landmarks X among themselves, as `encode` has them, (R, R), for each kernel in it."""
        return [
            weight / self.scale * (centre(K) if self.by_row else K)
            for weight, part in components(self.kernel)
            for K in [part(X, self.V)]
        ]

    def evaluate(self, X: Array) -> Array:
        """k(x, v) of scaled rows, as the formula has it."""
        with np.errstate(over="ignore", invalid="ignore"):  # found out below, by name
            k = self._of_formula(X)
        if k.shape != (len(X), len(self.V)):
            shape = (len(X), len(self.V))
            what = f"expected the {kernel_name(self.kernel)} kernel to return an array of shape"
            cure = "return one number for each row of X and each row of V"
            raise DataError(f"{what} {shape}", self.view, got=k.shape, cure=cure)
        if not (np.abs(k) < LARGEST).all():
            raise DataError(
                f"expected finite values of the {kernel_name(self.kernel)} kernel but got NaN, "
                f"infinity or more than {LARGEST:g}",
                self.view,
                cure="scale the columns or choose another kernel",
            )
        return np.ascontiguousarray(k)  # sums over rows are rounded by how they lie in memory

    def _of_formula(self, X: Array) -> Array:
        try:
            return self.kernel(X, self.V)
        except DataError as error:  # of a user's function, which does not know the view
            raise error.as_error(DataError, view=self.view) from None

    def centre(self, k: Array) -> Array:
        """Centre and scale rows of the kernel, in place."""
        if self.says_nothing:
            k[...] = 0.0
            return k
        if self.by_row:
            k -= k.mean(axis=1, keepdims=True)
            k += self.column_mean.mean()
        k -= self.column_mean
        k /= self.scale
        return k

    @cached_property
    def furthest(self) -> float:
        """The largest scaled value that counts as it is."""
        if isinstance(self.kernel, Precomputed):
            return REACH * max(float(np.abs(self.column_mean).max()), self.scale)
        size = max(1.0, float(np.abs(self.V).max()))
        return max(size, min(REACH * size, self.kernel.reach / size))

    def scaled(self, values: Array) -> Array:
        """Rows as the kernel sees them: scaled, without holes and within reach."""
        return np.clip(self.scaling.complete(values), -self.furthest, self.furthest)

    def beyond(self, values: Array) -> BoolArray:
        """Rows with values out of reach, which count as less far."""
        far = np.abs(self.scaling.complete(values)) > self.furthest
        return np.asarray(far.any(axis=1))

    def encode(self, values: Array) -> Array:
        """Kernelized observations of rows in the user's units; a row without data is NaN."""
        out = np.empty((len(values), len(self.V)))
        blocks = [(values[i], out[i]) for i in _row_blocks(len(values), len(self.V))]
        n_threads = n_blas_threads() if len(blocks) > 1 else 1
        deque(in_threads(self._encode_into, blocks, n_threads), maxlen=0)
        return out

    def _encode_into(self, block: tuple[Array, Array]) -> None:
        """Of a block of rows, and where their observations are to be written."""
        values, out = block
        present = self.scaling.seen(values)
        if present.any():  # one row stands for those that are not, so that no shape changes
            rows = np.where(present, np.arange(len(present)), np.argmax(present))
            out[:] = self.centre(self.evaluate(self.scaled(values)[rows]))
        out[~present] = np.nan

    def means(self, X: Array) -> Array:
        """The mean similarity of scaled rows to the landmarks: (n,)."""
        mean = np.empty(len(X))
        for where in _row_blocks(len(X), len(self.V)):
            mean[where] = self.evaluate(X[where]).mean(axis=1)
        return mean

    def between(self, X: Array, others: KernelMap) -> Iterator[tuple[slice, Array]]:
        """k̃ of scaled rows, some at a time, with `others`, both centred as by the landmarks."""
        mean, grand = self.means(X), self.column_mean.mean()
        for where in _row_blocks(len(X), len(others.V)):
            k = others.evaluate(X[where])
            k -= (mean[where] - grand)[:, None]
            k -= others.column_mean
            k /= self.scale
            yield where, k

    def compared_with(self, X: Array) -> KernelMap:
        """The same with scaled rows in place of the landmarks."""
        return replace(self, V=X, column_mean=self.means(X))

    def self_similarity(self, values: Array) -> Array:
        """Centred k(x, x) of rows relative to its mean over the landmarks; NaN where not known."""
        present, relative = self.scaling.seen(values), np.full(len(values), np.nan)
        X = self.scaled(values[present])
        diagonal = self.kernel.diagonal(X)
        if diagonal is None or not self.mean_self > 0:
            return relative
        if self.by_row:
            diagonal = diagonal - 2.0 * self.means(X) + self.column_mean.mean()
        relative[present] = diagonal / self.mean_self
        return relative

    @cached_property
    def _donors(self) -> Array:
        """Landmarks whose values may stand in a hole: some of those with the fewest holes."""
        fills = (self.scaling.fill == self.V).sum(axis=1)
        most = np.sort(fills)[: tuning.HOLE_DONORS][-1]
        complete = self.V[fills <= most]
        return np.asarray(complete[_evenly(complete, tuning.HOLE_DONORS)])

    def for_other_values(self, values: Array) -> Iterator[tuple[IntArray, Array]]:
        """Rows with holes, and how their similarities change with other values in the holes.

        These values are those of landmarks, all holes of a row from the same one: (h,), (h, ·, R).
        """
        present = self.scaling.seen(values)
        missing = np.isnan(values) & np.isfinite(self.scaling.spread)
        holed = np.flatnonzero(missing.any(axis=1) & present)
        if not len(holed) or isinstance(self.kernel, Precomputed):
            return
        donors = self._donors
        n = len(donors)
        for where in _row_blocks(len(holed), n * max(self.V.shape)):
            rows = holed[where]
            X = self.scaled(values[rows])
            other = np.where(missing[rows][:, None, :], donors, X[:, None, :])
            k = self.centre(self.evaluate(other.reshape(-1, X.shape[1])))
            yield rows, k.reshape(len(rows), n, -1) - self.centre(self.evaluate(X))[:, None, :]


def _evenly(V: Array, n: int) -> IntArray:
    """At most n rows, evenly spaced in the order of their values: the same in any order of rows."""
    order = np.lexsort(V.T[::-1])
    return np.asarray(np.sort(order[np.linspace(0, len(V) - 1, min(n, len(V))).astype(np.intp)]))


def _row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    step = max(1, _BLOCK // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
