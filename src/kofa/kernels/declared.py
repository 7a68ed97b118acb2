"""Kernels as users declare them: checked, and named by view."""

from __future__ import annotations

from typing import Any

from kofa.checks import check_number, hint, is_among, is_number, listed, require
from kofa.errors import DeclarationError
from kofa.kernels.base import Kernel, Radial, Weighted
from kofa.kernels.diffusion import Diffusion
from kofa.kernels.formulas import Custom, Polynomial, Precomputed
from kofa.kernels.mixture import _ALSO, _BY_NAME, Mixture, kernel_name


def as_kernels(kernel: Any, view: str) -> dict[str, Kernel]:
    """The kernels of one view by the names under which each explains it."""
    if not isinstance(kernel, list | tuple):
        return {view: as_kernel(kernel, view)}
    if not kernel:
        what, cure = "expected at least one kernel", "write None to explain the columns themselves"
        raise DeclarationError(what, view, got=kernel, option="kernel", cure=cure)
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
        return _by_name(kernel, view)
    if isinstance(kernel, type):
        return _of_class(kernel, view)
    if callable(kernel):
        return Custom(kernel)
    what, cure = "expected a kernel, its name or a callable", "write such as kernel='rbf'"
    raise DeclarationError(what, view, got=kernel, option="kernel", cure=cure)


def _by_name(name: str, view: str) -> Kernel:
    if name in _BY_NAME:
        return _BY_NAME[name]()
    meant = _ALSO.get(name.lower())
    cure = f"did you mean {meant!r}?" if meant else hint(name, _BY_NAME)
    raise DeclarationError(
        f"expected a kernel among {listed(_BY_NAME, 99)}", view, got=name, cure=cure
    )


def _of_class(kernel: type, view: str) -> Kernel:
    """The kernel of a class where its parameters all have defaults."""
    if issubclass(kernel, Kernel) and kernel not in (Mixture, Custom):
        return kernel()
    name = kernel.__name__
    raise DeclarationError(
        f"expected a kernel but got the class {name}",
        view,
        cure=f"write {name}(…) with what it needs",
    )


def _check(kernel: Kernel, view: str) -> None:
    """Raise unless all parameters of a kernel have values that they can have."""
    if isinstance(kernel, Radial):
        width: Any = kernel.width
        fine = is_number(width) and 1e-100 < width < 1e100
        words = ("auto", "median")
        require(
            fine or is_among(width, words), "width", "positive, 'auto' or 'median'", width, view
        )
    if isinstance(kernel, Weighted):
        _check_weighted(kernel, view)
    if isinstance(kernel, Diffusion):
        _check_diffusion(kernel, view)
    if isinstance(kernel, Mixture):
        _check_mixture(kernel, view)
    if isinstance(kernel, Polynomial):
        degree = kernel.degree
        whole = is_number(degree) and degree == int(degree) >= 1
        require(whole, "degree", "a whole number of at least 1", degree, view)
        check_number("offset", kernel.offset, view=view)


def _check_weighted(kernel: Weighted, view: str) -> None:
    given: Any = kernel.relevance
    fine = given is None or kernel.learns_relevance or _are_weights(given)
    require(fine, "relevance", "None, 'learn', 'auto' or numbers of at least 0", given, view)
    fine = kernel.groups is None or _are_labels(kernel.groups)
    require(fine, "groups", "None or a label for each feature", kernel.groups, view)
    check_number("sparsity", kernel.sparsity, [None], view, least=0)


def _check_diffusion(kernel: Diffusion, view: str) -> None:
    check_number("neighbours", kernel.neighbours, view=view, whole=True, least=1)
    check_number("time", kernel.time, ["auto"], view, above=0, most=1e9)
    if kernel.graph is not None:
        raise DeclarationError(
            "expected a diffusion without a graph, which fit makes of its rows, but got one",
            view,
            cure=f"write {kernel!r}",
        )


def _are_labels(groups: Any) -> bool:
    """Whether these are labels that can be compared, each equal to itself."""
    return isinstance(groups, tuple) and all(is_among(g, [g]) and g == g for g in groups)


def _are_weights(given: Any) -> bool:
    return isinstance(given, tuple) and all(is_number(x) and x >= 0 for x in given)


def _check_mixture(kernel: Mixture, view: str) -> None:
    if not isinstance(kernel.kernels, tuple):
        cure = "write kofa.Mixture(['linear', 'rbf'])"
        raise DeclarationError(
            "expected a mixture of a list of kernels", view, got=kernel.kernels, cure=cure
        )
    for part in kernel.kernels:
        _check_part(part, kernel, view)
    weights, n = kernel.weights, len(kernel.kernels)
    learnt = is_among(weights, ("learn",))
    fits = isinstance(weights, tuple) and len(weights) == n
    expected = f"'learn' or one for each of the {n} kernels of a mixture"
    require(n > 0 and (learnt or fits), "weights", expected, weights, view)
    fine = learnt or _are_weights(weights)
    require(fine, "weights", "numbers of at least 0", weights, view)


def _check_part(part: Any, mixture: Mixture, view: str) -> None:
    if not isinstance(part, Kernel) or isinstance(part, Mixture | Precomputed):
        cure = hint(part, _BY_NAME) if isinstance(part, str) else ""
        what = "expected a mixture of kernels such as kofa.RBF()"
        raise DeclarationError(what, view, got=part, cure=cure)
    _check(part, view)
    if not isinstance(part, Weighted) or not part.needs_outputs:
        return
    if not isinstance(mixture.weights, str):
        raise DeclarationError(
            "in a mixture relevance='learn' needs weights='learn'",
            view,
            option="relevance",
            cure="set it, or give relevance as numbers",
        )


def check_features(kernel: Kernel, view: str, n_features: int) -> None:
    """Raise unless options with an entry for each feature have as many as there are features."""
    for part in kernel.kernels if isinstance(kernel, Mixture) else ():
        check_features(part, view, n_features)
    for option in ("relevance", "groups") if isinstance(kernel, Weighted) else ():
        given = getattr(kernel, option)
        if isinstance(given, tuple) and len(given) != n_features:
            what = f"expected {option} with an entry for each of its {n_features} columns"
            raise DeclarationError(what, view, got=len(given), option=option)
