"""Kernels as users declare them: checked, and named by view."""

from __future__ import annotations

from typing import Any

from kofa.checks import is_among, is_number, is_whole, nearest, shown
from kofa.errors import DeclarationError
from kofa.kernels.diffusion import Diffusion
from kofa.kernels.formulas import Custom, Kernel, Polynomial, Precomputed, Radial, Weighted
from kofa.kernels.mixture import _ALSO, _BY_NAME, Mixture, kernel_name


def as_kernels(kernel: Any, view: str) -> dict[str, Kernel]:
    """The kernels of one view by the names under which each explains it."""
    if not isinstance(kernel, list | tuple):
        return {view: as_kernel(kernel, view)}
    if not kernel:
        raise DeclarationError(f"View {view!r}: expected at least one kernel but got none.")
    named: dict[str, Kernel] = {}
    n_seen: dict[str, int] = {}
    for one in kernel:
        formula = as_kernel(one, view)
        kind = kernel_name(formula)
        n = n_seen[kind] = n_seen.get(kind, 0) + 1
        named[f"{view}[{kind}]" if n == 1 else f"{view}[{kind} {n}]"] = formula
    return named


def as_kernel(kernel: Any, view: str) -> Kernel:
    """A kernel from whatever a user may write for one."""
    if isinstance(kernel, Kernel):
        _check(kernel, view)
        return kernel
    if isinstance(kernel, str):
        if kernel not in _BY_NAME:
            meant = _ALSO.get(kernel.lower())
            hint = f"; did you mean {meant!r}?" if meant else nearest(kernel, _BY_NAME)
            raise DeclarationError(
                f"View {view!r}: expected a kernel among {', '.join(map(repr, _BY_NAME))} "
                f"but got {kernel!r}{hint or '.'}"
            )
        return _BY_NAME[kernel]()
    if isinstance(kernel, type):
        return _of_class(kernel, view)
    if callable(kernel):
        return Custom(kernel)
    raise DeclarationError(
        f"View {view!r}: expected a kernel, its name or a callable but got {shown(kernel)}."
    )


def _of_class(kernel: type, view: str) -> Kernel:
    """The kernel of a class where its parameters all have defaults."""
    if issubclass(kernel, Kernel) and kernel not in (Mixture, Custom):
        return kernel()
    raise DeclarationError(
        f"View {view!r}: expected a kernel but got the class {kernel.__name__}; write "
        f"{kernel.__name__}(…) with what it needs."
    )


def _check(kernel: Kernel, view: str) -> None:
    if isinstance(kernel, Radial):
        width: Any = kernel.width
        number = is_number(width) and 1e-100 < width < 1e100
        if not (number or is_among(width, ("auto", "median"))):
            raise DeclarationError(
                f"View {view!r}: expected a positive width, 'auto' or 'median' "
                f"but got {shown(width)}."
            )
    if isinstance(kernel, Weighted):
        _check_weighted(kernel, view)
    if isinstance(kernel, Diffusion):
        _check_diffusion(kernel, view)
    if isinstance(kernel, Mixture):
        _check_mixture(kernel, view)
    if isinstance(kernel, Polynomial):
        degree, offset = kernel.degree, kernel.offset
        if not (is_number(degree) and degree == int(degree) >= 1):
            raise DeclarationError(
                f"View {view!r}: expected a whole degree of at least 1 but got {shown(degree)}."
            )
        if not is_number(offset):
            raise DeclarationError(
                f"View {view!r}: expected a number as offset but got {shown(offset)}."
            )


def _check_weighted(kernel: Weighted, view: str) -> None:
    given: Any = kernel.relevance
    numbers = isinstance(given, tuple) and all(is_number(x) and x >= 0 for x in given)
    if not (given is None or kernel.learns_relevance or numbers):
        raise DeclarationError(
            f"View {view!r}: expected relevance None, 'learn', 'auto' or numbers of at least 0 "
            f"but got {shown(given)}."
        )
    if not (kernel.groups is None or _are_labels(kernel.groups)):
        raise DeclarationError(
            f"View {view!r}: expected groups None or a label for each feature "
            f"but got {shown(kernel.groups)}."
        )
    if not (kernel.sparsity is None or (is_number(kernel.sparsity) and kernel.sparsity >= 0)):
        raise DeclarationError(
            f"View {view!r}: expected a sparsity of at least 0 but got {shown(kernel.sparsity)}."
        )
    if not is_among(kernel.objective, ("evidence", "reconstruction")):
        raise DeclarationError(
            f"View {view!r}: expected objective 'evidence' or 'reconstruction' "
            f"but got {shown(kernel.objective)}."
        )


def _check_diffusion(kernel: Diffusion, view: str) -> None:
    time: Any = kernel.time
    if not is_whole(kernel.neighbours, 1):
        raise DeclarationError(
            f"View {view!r}: expected a whole number of neighbours, at least 1, "
            f"but got {shown(kernel.neighbours)}."
        )
    if not (is_among(time, ("auto",)) or (is_number(time) and 0 < time < 1e9)):
        raise DeclarationError(
            f"View {view!r}: expected a positive time or 'auto' but got {shown(time)}."
        )
    if kernel.graph is not None:
        raise DeclarationError(
            f"View {view!r}: expected a diffusion without a graph, which fit makes of its rows, "
            f"but got one; write {kernel!r}."
        )


def _are_labels(groups: Any) -> bool:
    """Whether these are labels that can be told apart, each equal to itself."""
    return isinstance(groups, tuple) and all(is_among(g, [g]) and g == g for g in groups)


def _check_mixture(kernel: Mixture, view: str) -> None:
    if not isinstance(kernel.kernels, tuple):
        raise DeclarationError(
            f"View {view!r}: expected a mixture of a list of kernels "
            f"but got {shown(kernel.kernels)}; write kofa.Mixture(['linear', 'rbf'])."
        )
    for part in kernel.kernels:
        if not isinstance(part, Kernel) or isinstance(part, Mixture | Precomputed):
            hint = nearest(part, _BY_NAME) if isinstance(part, str) else ""
            raise DeclarationError(
                f"View {view!r}: expected a mixture of kernels such as kofa.RBF() "
                f"but got {shown(part)}{hint or '.'}"
            )
        _check(part, view)
        if not isinstance(part, Weighted) or not part.needs_outputs:
            continue
        if not isinstance(kernel.weights, str) or part.objective != "evidence":
            raise DeclarationError(
                f"View {view!r}: in a mixture relevance='learn' needs weights='learn' and "
                f"objective='evidence'."
            )
    weights: Any = kernel.weights
    learnt = is_among(weights, ("learn",))
    fits = isinstance(weights, tuple) and len(weights) == len(kernel.kernels)
    numbers = fits and all(is_number(w) and w >= 0 for w in weights)
    if not kernel.kernels or not (learnt or fits):
        raise DeclarationError(
            f"View {view!r}: expected weights 'learn' or one for each of the "
            f"{len(kernel.kernels)} kernels of a mixture but got {shown(weights)}."
        )
    if not (learnt or numbers):
        raise DeclarationError(
            f"View {view!r}: expected weights of at least 0 but got {shown(weights)}."
        )


def check_features(kernel: Kernel, view: str, n_features: int) -> None:
    """Raise unless what a kernel says about single features fits their number."""
    for part in kernel.kernels if isinstance(kernel, Mixture) else ():
        check_features(part, view, n_features)
    if isinstance(kernel, Weighted):
        for option in ("relevance", "groups"):
            given = getattr(kernel, option)
            if isinstance(given, tuple) and len(given) != n_features:
                raise DeclarationError(
                    f"View {view!r}: expected {option} with an entry for each of its {n_features} "
                    f"columns but got {len(given)}."
                )
