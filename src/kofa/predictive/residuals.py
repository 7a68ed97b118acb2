"""What a regression leaves of a view: how its columns vary together, and what known ones tell.

C = (ν F + Σ_n r_n r_nᵀ) / (ν + n), the posterior mean of a covariance under an inverse-Wishart
prior around a factor model F = ΛΛᵀ + Ψ of the same residuals. How much the prior counts, ν, is
found by cells that are left out. C is a diagonal and a product, diag(δ) + B Bᵀ, with a column of B
for each factor and each row; it is never formed where a view has more columns than that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType

import numpy as np

from kofa.linalg import Array, BoolArray, Groups, IntArray, by_rows, inverse_and_logdet
from kofa.predictive.keys import first

_ROUNDS = 8  # of noise and factors in turn, and of what stands in holes
_LEAST_NOISE = 1e-3  # of a column, relative to its variance
_CLOSE = 1e-3  # a relative change that ends the rounds
_SHARES = np.geomspace(0.03, 30.0, 7)  # ν / n that are compared
_SHARE_SPREAD = 1.5  # of log ν/n below the largest of them, a priori
_FOLDS = 4
_FOUND_ON = 300  # columns from which ν is found, at most
_MOST_ROWS = 2000  # whose residuals count
_TINY = float(np.finfo(float).tiny)

Product = Callable[[Array], Array]  # of rows with a matrix
Shared = Mapping[int, Array]  # by row
NOTHING: Shared = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Covariance:
    """diag(δ) + B Bᵀ of the columns of a view."""

    noise: Array  # (D,): δ
    loadings: Array  # (D, L): B
    n_factors: int = 0  # the first so many columns of B are the factors of F
    n: float = np.inf  # ν and the rows that count, of which each is r rᵀ / n of C

    @cached_property
    def diagonal(self) -> Array:
        return np.asarray(self.noise + (self.loadings**2).sum(axis=1))

    @cached_property
    def dense(self) -> Array | None:
        """The matrix itself, where it is the smaller one."""
        B = self.loadings
        return B @ B.T + np.diag(self.noise) if B.shape[0] <= B.shape[1] else None

    def conditional(
        self, r: Array, known: BoolArray, shared: Shared = NOTHING
    ) -> tuple[Array, Array]:
        """Means and variances of residuals (m, D) given those known, which stay as they are.

        `shared`: A (D, k) of some rows, whose covariance is C + A Aᵀ.
        """
        mean, variance = np.where(known, r, 0.0), np.where(known, 0.0, self.diagonal)
        for has, rows in by_pattern(known):
            mine = [n for n in rows if n in shared]
            if not has.any():
                for n in mine:
                    variance[n] += (shared[n] ** 2).sum(axis=1)
            elif not has.all():
                expect, rest = self._given(has)
                own = np.ix_(rows, ~has)
                mean[own], variance[own] = expect(r[np.ix_(rows, has)]), rest
                times, _ = self._inverse_of(has) if mine else (expect, rest)
                for n in mine:
                    A = shared[n]
                    PA, W = _told(times, A[has])
                    beyond = A[~has] - expect(A[has].T).T
                    mean[n, ~has] += beyond @ (W @ (PA @ r[n, has]))
                    variance[n, ~has] += ((beyond @ W) * beyond).sum(axis=1)
        return mean, variance

    def _given(self, known: BoolArray) -> tuple[Product, Array]:
        """What rows of known columns say of unknown ones, and the variance these keep."""
        if self.dense is None:
            return self._by_loadings(known)
        gain, rest = self._gain(known)
        return partial(by_rows, B=gain), np.diagonal(rest)

    def _gain(self, known: BoolArray) -> tuple[Array, Array]:
        """How unknown columns follow from known ones (o, u), and what covariance they keep."""
        assert self.dense is not None
        if 2 * known.sum() > len(known):  # the unknown ones are fewer: C_u|o = (P_uu)^-1
            P = self.inverse
            rest = symmetric_inverse(P[np.ix_(~known, ~known)])
            return -P[np.ix_(known, ~known)] @ rest, rest
        oo, ou = np.ix_(known, known), np.ix_(known, ~known)
        gain: Array = np.linalg.solve(self.dense[oo], self.dense[ou]).astype(float)
        return gain, self.dense[np.ix_(~known, ~known)] - self.dense[ou].T @ gain

    @cached_property
    def inverse(self) -> Array:
        """P = C^-1."""
        assert self.dense is not None
        return symmetric_inverse(self.dense)

    def _by_loadings(self, known: BoolArray) -> tuple[Product, Array]:
        """The same where C is never formed."""
        B, u = self.loadings, ~known
        if u.sum() < B.shape[1]:
            left, right = self.of_inverse
            rest = symmetric_inverse(np.diag(1.0 / self.noise[u]) - left[u] @ right[u].T)
            first, second, variance = right[known], (rest @ left[u]).T, np.diagonal(rest)
        else:
            fewer = u if u.sum() < known.sum() else known
            part = (B[fewer] / self.noise[fewer, None]).T @ B[fewer]
            inner = self.precision - part if fewer is u else part
            M: Array = np.linalg.inv(np.eye(B.shape[1]) + inner).astype(float)
            first, second = (B[known] / self.noise[known, None]) @ M, B[u].T
            variance = self.noise[u] + ((B[u] @ M) * B[u]).sum(axis=1)
        return lambda r: by_rows(by_rows(r, first), second), variance

    def each_given_rest(
        self, r: Array, known: BoolArray, counted: BoolArray, shared: Shared = NOTHING
    ) -> tuple[Array, Array]:
        """Means and variances of known residuals (m, D), each given the others that its row has.

        With P = C^-1 of the known columns they are r_j − [P r]_j / P_jj and 1 / P_jj. Rows that are
        `counted` in C are taken out of it: (n C − r rᵀ) / (n − 1), with a = P r of the inverse
        (P + a aᵀ / (n − rᵀa)) (n − 1) / n. `shared`: A of some rows, whose covariance is C + A Aᵀ.
        """
        mean, variance = np.zeros(known.shape), np.broadcast_to(self.diagonal, known.shape).copy()
        for has, rows in by_pattern(known):
            if has.any():
                own = np.ix_(rows, has)
                times, diagonal = self._inverse_of(has)
                a, precision = times(r[own]), np.tile(diagonal, (len(rows), 1))
                for i, n in enumerate(rows):
                    if n in shared:
                        PA, W = _told(times, shared[n][has])
                        a[i] -= (W @ (PA @ r[n, has])) @ PA
                        precision[i] -= ((W @ PA) * PA).sum(axis=0)
                size, itself = (r[own] * a).sum(axis=1, keepdims=True), counted[rows, None]
                back = itself / (self.n - size)
                precision += back * a**2
                mean[own] = r[own] - a * (1.0 + back * size) / precision
                variance[own] = 1.0 / precision / (1.0 - itself / self.n)
        return mean, variance

    def _inverse_of(self, known: BoolArray) -> tuple[Product, Array]:
        """The product of rows with P of the known columns, and the diagonal of P."""
        B, u = self.loadings, ~known
        if u.sum() >= known.sum():
            P = symmetric_inverse(B[known] @ B[known].T + np.diag(self.noise[known]))
            return partial(by_rows, B=P), np.diagonal(P)
        left, right = self.of_inverse
        noise, first, second = self.noise[known], left[known], right[known].T
        diagonal = 1.0 / noise - (first * right[known]).sum(axis=1)
        # P_kk − P_ku P_uu^-1 P_uk
        P_ku = -first @ right[u].T
        gain = P_ku @ symmetric_inverse(np.diag(1.0 / self.noise[u]) - left[u] @ right[u].T)

        def times(r: Array) -> Array:
            along = by_rows(r, first)
            return r / noise - by_rows(along, second) + by_rows(by_rows(along, right[u].T), gain.T)

        return times, diagonal - (gain * P_ku).sum(axis=1)

    @cached_property
    def of_inverse(self) -> tuple[Array, Array]:
        """G and H (D, L) of C^-1 = diag(1/δ) − G Hᵀ."""
        H = self.loadings / self.noise[:, None]
        return H @ symmetric_inverse(np.eye(H.shape[1]) + self.precision), H

    @cached_property
    def overlap(self) -> float:
        """Mean squared correlation of what any two columns have beside what all others say."""
        G, H = self.of_inverse
        D = len(G)
        diagonal = 1.0 / self.noise - (G * H).sum(axis=1)
        G, H = (one / np.sqrt(diagonal)[:, None] for one in (G, H))
        own = 1.0 / (self.noise * diagonal)
        total = (own**2).sum() - 2.0 * own @ (G * H).sum(axis=1) + ((G.T @ G) * (H.T @ H)).sum()
        return float(max(total - D, 0.0) / max(D * (D - 1.0), 1.0))

    @cached_property
    def precision(self) -> Array:
        """Bᵀ diag(1/δ) B."""
        return np.asarray((self.loadings / self.noise[:, None]).T @ self.loadings)

    def left_open(self, known: BoolArray) -> Covariance:
        """What rows are expected to have beside their conditional means, averaged over the rows.

        Of columns that are too many for the matrix, only the variances.
        """
        if self.dense is None:
            _, variance = self.conditional(np.zeros(known.shape), known)
            return Covariance(variance.mean(axis=0), np.zeros((len(self.noise), 0)))
        total = np.zeros_like(self.dense)
        for has, rows in by_pattern(known):
            if not has.all():
                total[np.ix_(~has, ~has)] += len(rows) * self._gain(has)[1]
        e, V = np.linalg.eigh(total / len(known))
        return Covariance(np.zeros(len(e)), V * np.sqrt(np.maximum(e, 0.0)))

    def of_factors(self) -> Covariance:
        """The same without residuals of rows: variances, and what factors have in common.

        Where the matrix is the smaller one, no row can be told from it, and it stays.
        """
        if self.dense is not None:
            return self
        B = self.loadings[:, : self.n_factors]
        return Covariance(self.diagonal - (B**2).sum(axis=1), B, self.n_factors)

    def compact(self) -> Covariance:
        """The same with no more columns of B than there are columns of the view."""
        if self.dense is None:
            return self
        e, V = np.linalg.eigh(self.loadings @ self.loadings.T)
        return Covariance(self.noise, V * np.sqrt(np.maximum(e, 0.0)), n=self.n)


def _told(times: Product, A: Array) -> tuple[Array, Array]:
    """AᵀP of known columns, and (I + AᵀPA)^-1: what they leave open of factors with loadings A."""
    PA = times(A.T)
    return PA, symmetric_inverse(np.eye(len(PA)) + PA @ A)


def symmetric_inverse(A: Array) -> Array:
    """Of a positive definite matrix."""
    return np.asarray(inverse_and_logdet(A[None])[0][0])


def by_pattern(known: BoolArray) -> Iterator[tuple[BoolArray, IntArray]]:
    """Each pattern of what is known in a row, and the rows that have it."""
    groups = Groups.by_pattern(known)
    for g, row in enumerate(groups.first):
        yield known[row], np.flatnonzero(groups.label == g)


def fit(r: Array, seen: BoolArray, rows: IntArray, columns: IntArray) -> Covariance:
    """The covariance of residuals (n, D), of which only some are seen.

    `rows`, `columns`: their ranks, by which some are drawn where they are many.
    """
    some = counted(rows)
    r, seen, rows = np.where(seen, r, 0.0)[some], seen[some], rows[some]
    of_all = first(columns, _FOUND_ON)
    share = _prior_share(r[:, of_all], seen[:, of_all], rows, columns[of_all])
    return _with_share(r, seen, share, _ROUNDS).compact()


def counted(rows: IntArray) -> IntArray:
    """Of rows with these ranks those whose residuals count."""
    return first(rows, _MOST_ROWS)


def _with_share(r: Array, seen: BoolArray, share: float, rounds: int) -> Covariance:
    """C with ν = share · n; what is not seen is as it is expected to be given the rest (EM)."""
    filled, none = r, Covariance(np.zeros(r.shape[1]), np.zeros((r.shape[1], 0)))
    found = _posterior(filled, none, share)
    for _ in range(0 if seen.all() else rounds):
        after, _ = found.conditional(r, seen)
        change = np.abs(after - filled).max()
        filled, found = after, _posterior(after, found.left_open(seen), share)
        if change < _CLOSE * max(float(np.abs(filled).max()), _TINY):
            break
    return found


def _posterior(r: Array, unsure: Covariance, share: float) -> Covariance:
    """(ν F + Σ r rᵀ + n · unsure) / (ν + n), the factors of F first."""
    data = np.concatenate([r.T / np.sqrt(len(r)), unsure.loadings], axis=1)
    loadings, psi = factor_model(data, unsure.noise, len(r))
    B = np.concatenate([np.sqrt(share) * loadings, data], axis=1) / np.sqrt(1.0 + share)
    noise = (share * psi + unsure.noise) / (1.0 + share)
    return Covariance(noise, B, loadings.shape[1], len(r) * (1.0 + share))


def factor_model(X: Array, unsure: Array, n: float) -> tuple[Array, Array]:
    """Λ (D, K) and Ψ (D,) of a covariance X Xᵀ + diag(unsure): what stands out of the noise.

    In units of the noise a direction of strength d shows as an eigenvalue (1 + d)(1 + γ/d),
    γ = D/n, with a squared cosine of (1 − γ/d²)/(1 + γ/d) to the true one; eigenvalues up to
    (1 + √γ)² are noise.
    """
    gamma = len(X) / n
    variance = np.maximum((X**2).sum(axis=1) + unsure, 1e-12)
    psi, loadings = variance, np.zeros((len(X), 0))
    for _ in range(_ROUNDS):
        root = np.sqrt(psi)
        e, V = _eigen(X / root[:, None], unsure / psi)
        above = e > (1.0 + np.sqrt(gamma)) ** 2
        away, V = e[above] - 1.0 - gamma, V[:, above]
        d = 0.5 * (away + np.sqrt(np.maximum(away**2 - 4.0 * gamma, 0.0)))
        strength = d * np.maximum((1.0 - gamma / d**2) / (1.0 + gamma / d), 0.0)
        loadings = root[:, None] * V * np.sqrt(strength)
        after = np.maximum(variance - (loadings**2).sum(axis=1), _LEAST_NOISE * variance)
        close = bool((np.abs(after - psi) < _CLOSE * variance).all())
        psi = after
        if close:
            break
    return loadings, psi


def _eigen(X: Array, unsure: Array) -> tuple[Array, Array]:
    """Eigenvalues and vectors of X Xᵀ + diag(unsure); where X is tall, unsure is small."""
    if X.shape[0] <= X.shape[1]:
        found = np.linalg.eigh(X @ X.T + np.diag(unsure))
        return found[0], found[1]
    e, U = np.linalg.eigh(X.T @ X)
    keep = e > 1e-10 * max(float(e[-1]), _TINY)
    V = X @ (U[:, keep] / np.sqrt(e[keep]))
    return e[keep] + (V**2).T @ unsure, V


def _prior_share(r: Array, seen: BoolArray, rows: IntArray, columns: IntArray) -> float:
    """ν / n that fills left-out cells of left-out rows best, by a parabola through three values.

    Far-out cells count linearly (√(1 + error²)).
    """
    n, D = r.shape
    if n < 2 * _FOLDS or D < 2:
        return float(np.median(_SHARES))
    fold, quarter = rows % _FOLDS, columns % 4
    loss = np.zeros(len(_SHARES))
    for f in range(_FOLDS):
        rest, mine = fold != f, fold == f
        whole = _with_share(
            r[rest], seen[rest], 1.0, 3
        )  # which has F and the data, as much of each
        for i, share in enumerate(_SHARES):
            C = _reweighted(whole, share)
            for hidden in (quarter == f % 4, quarter != f % 4):
                asked = seen[mine] & hidden
                mean, _ = C.conditional(r[mine], seen[mine] & ~hidden)
                loss[i] += float(np.sqrt(1.0 + ((r[mine] - mean)[asked]) ** 2).sum())
    loss += 0.5 * (np.log(_SHARES / _SHARES[-1]) / _SHARE_SPREAD) ** 2
    i = int(np.argmin(loss))
    shift = 0.0
    if 0 < i < len(loss) - 1:
        a, b, c = loss[i - 1 : i + 2]
        shift = 0.5 * (a - c) / max(a - 2.0 * b + c, _TINY)
    return float(_SHARES[i] * (_SHARES[1] / _SHARES[0]) ** shift)


def _reweighted(C: Covariance, share: float) -> Covariance:
    """C found with ν = n, with another ν: its first columns are those of F."""
    of_prior, of_data = 2.0 * share / (1.0 + share), 2.0 / (1.0 + share)
    first = np.arange(C.loadings.shape[1]) < C.n_factors
    B = C.loadings * np.sqrt(np.where(first, of_prior, of_data))
    return Covariance(C.noise * of_prior, B, C.n_factors)
