"""Whether the parts of a model that was read from a file fit together.

A file may be edited such that each part is what it should be by itself. Shapes and limits are
those of `schema`; here are the rules that involve several parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kofa import kernels
from kofa.data.tables import Table
from kofa.errors import DataError, DeclarationError
from kofa.inference.explained import Explained
from kofa.inference.posterior import State, ViewPosterior, Weights, n_factors_of
from kofa.inference.predictive import Basis
from kofa.kernels.base import Radial
from kofa.kernels.declared import as_kernel, check_features
from kofa.kernels.kernel_map import KernelMap
from kofa.linalg import Array, pieces
from kofa.predictive.view import FACTORS
from kofa.preparation.fitted import FitSamples
from kofa.preparation.prepare import FittedView
from kofa.preparation.questions import Question
from kofa.storage.damage import DamageError, excerpt, require
from kofa.storage.dtypes import longest_word_type, with_pandas
from kofa.storage.fields import check_entries
from kofa.storage.schema import check_fields

_LARGEST_PRECISION = 1e14
_MOST_CLASSES = 2**16  # each of which becomes an object several times its size
_CHUNK = 2**14  # rows that are looked at at a time

# ---------------------------------------------------------------- a model as a whole


def by_name(views: Iterable[str], state: tuple[ViewPosterior, ...]) -> dict[str, ViewPosterior]:
    """The posteriors, which files have in the order of the views."""
    names = list(views)
    require(0 < len(names) == len(state), "it has not one posterior for each view")
    return dict(zip(names, state, strict=True))


def check_model(views: Mapping[str, FittedView], state: State) -> None:
    """Raise unless the parts of a model fit together, so that none fails where it is used."""
    n_factors = _n_factors(state)
    with_outputs = any(view.role.output for view in views.values())
    for name, view in views.items():
        try:
            _check_origin(name, view, views)
            _check_encoder(name, view)
            _check_view(view, n_factors, gives_energy=with_outputs and not view.role.output)
            check_fields(state[name], {**_sizes(view), "K": n_factors})
        except (DamageError, DeclarationError) as error:
            raise DamageError(f"view {excerpt(name)}: {error}") from None
    _check_total_precision(state)


def check_seen(
    basis: Basis,
    names: tuple[str, ...] | None,
    samples: FitSamples | None,
    views: Mapping[str, FittedView],
    n_factors: int,
) -> None:
    """Raise unless the factors that users see, their names and their samples fit the model."""
    n_sources = len({view.source for view in views.values()})
    sizes = {"F": basis.n_factors, "K": n_factors, "M": n_sources}
    check_fields(basis, sizes)
    own = names is None or len(set(names)) == basis.n_factors
    require(own, "it has not one name for each factor")
    require(0 <= basis.n_predictive <= basis.n_factors, "it has other predictive factors")
    fits = basis.n_factors <= n_factors  # of more, Q Qᵀ would be larger than Q
    fits = fits and np.allclose(basis.Q @ basis.Q.T, np.eye(basis.n_factors), atol=1e-6)
    require(fits, "its basis is no rotation")
    if samples is not None:
        check_fields(samples, {**sizes, "N": len(samples.factors)})


def check_explained(explained: Mapping[str, Explained], state: State, basis: Basis) -> None:
    """Raise unless what was explained is that of the model's views and factors."""
    require(not explained or set(explained) == set(state), "it explains other views")
    for name, sums in explained.items():
        check_fields(sums, {"D": state[name].n_columns, "F": basis.n_factors})
        require(bool(np.isfinite(sums.shared)), "what its factors share is not finite")


def check_rows(rows: Any, views: Mapping[str, FittedView]) -> None:
    """Raise unless the rows of the fit are rows of its views."""
    if rows is None:
        return
    sources = {view.source: view for view in views.values()}
    require(set(rows) == set(sources), "it has rows of other views")
    n = {np.shape(one)[:1] for one in rows.values()}
    require(len(n) == 1 and min(n) > (0,), "its views have not the same rows")
    for source, view in sources.items():
        values = rows[source]
        require(values.shape[1:] == (view.n_inputs,), f"its rows of {excerpt(source)} are others")
        require(not np.isinf(values).any(), f"its rows of {excerpt(source)} are not finite")
        try:
            _check_values(view, values)
        except DataError as error:
            raise DamageError(str(error)) from None


def _check_values(view: FittedView, values: Array) -> None:
    """Raise unless a user could have given the rows of a view."""
    if view.classes is not None:
        known = values[~np.isnan(values)]
        whole = bool((known % 1 == 0).all() and (known >= 0).all())
        require(whole and bool((known < len(view.classes)).all()), "its labels are no classes")
    elif isinstance(view.encoder, KernelMap) and isinstance(
        view.encoder.kernel, kernels.Precomputed
    ):
        require(view.landmarks.max(initial=-1) < len(values), "its landmarks are no rows")
        require(view.landmarks.min(initial=0) >= 0, "its landmarks are no rows")
    else:
        view.kind.check(Table(view.source, values))


def check_question(name: str, asked: Question, views: Mapping[str, FittedView]) -> None:
    """Raise unless it asks for a view of the model, from other views of it."""
    found, others = asked.found, set(asked.state)
    require(name in views, "a question is for another view")
    view = views[name]
    own = view.likelihood is not None and name not in others and others <= set(views)
    require(own, f"the question for view {excerpt(name)} is of other views")
    sizes, features = _sizes(view), _check_others(name, asked, views) if others else {}
    require(np.ndim(found.regression.e) == 1, "the shape of its spectrum is not (R,)")
    sizes["R"] = len(found.regression.e)
    require(set(found.map.sources) == set(features), "a question has other sources")
    require(set(found.map.weights) == set(features), "a question weighs other sources")
    weights = list(found.map.weights.values())
    require(all(0.0 <= one <= _LARGEST_PRECISION for one in weights), "a weight is none")
    for name, source in found.map.sources.items():
        check_fields(source, {"p": features[name]})
    check_fields(found, {**sizes, "P": sum(features.values())})
    require(set(asked.compared) <= set(asked.bases), "a question compares other views")
    for name, one in asked.compared.items():
        require(np.ndim(one.rows) == 2, "the shape of its rows is not (n, C)")
        shape = {"n": len(one.rows), "C": views[name].n_inputs, "p": features[name]}
        check_fields(one, {**sizes, **shape})
    require(found.regression.n_rows > 0, "a question has no rows")
    n_factors = found.residuals.n_factors
    require(0 <= n_factors <= found.residuals.loadings.shape[1], "it has other factors")
    gaussian = view.layer.curvature is None
    require(gaussian == (found.calibration is None), "it is calibrated as another view")


def _check_others(
    asked_for: str, asked: Question, views: Mapping[str, FittedView]
) -> dict[str, int]:
    """The number of features of each source."""
    mine, state = {n: views[n] for n in asked.state}, asked.state
    n_factors = _n_factors(state)
    for name, posterior in state.items():
        both = views[name].role.output and views[asked_for].role.output
        require(not both, "an output tells about an output")
        check_fields(posterior, {**_sizes(views[name]), "K": n_factors})
    _check_total_precision(state)
    kernelized = {n for n, view in mine.items() if view.likelihood is None}
    scaled = {
        n for n, view in mine.items() if n not in kernelized and view.layer.curvature is not None
    }
    require(set(asked.bases) == kernelized, "a question has other bases")
    require(set(asked.scalings) == scaled, "a question has other scalings")
    features = {}
    for name, view in mine.items():
        sizes = _sizes(view)
        if name in kernelized:
            basis = asked.bases[name]
            require(basis.ndim == 2 and len(basis) == sizes["D"], "a basis is of other landmarks")
            check_entries("basis", basis)
            features[name] = basis.shape[1]
        elif name in scaled:
            scaling = asked.scalings[name]
            n = sizes["D"] if view.layer.competing else view.n_inputs
            check_fields(scaling, {"C": n})
            require(scaling.unit == view.layer.unit, "a scaling is of another unit")
            require(bool((scaling.spread > 0).all()), "its spread is not positive")
            features[name] = n
        else:
            features[name] = sizes["D"]
    return features if len(kernelized) == len(mine) else features | {FACTORS: n_factors}


def _n_factors(state: State) -> int:
    require(np.ndim(next(iter(state.values())).weights.mean) == 2, "its weights are no table")
    return n_factors_of(state)


def _check_total_precision(state: State) -> None:
    """Of Σ_d τ_d ⟨w_d·w_d⟩, which is what can make the precision of a sample singular."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = sum(float(q.precision @ _squares(q.weights)) for q in state.values())
    require(total < _LARGEST_PRECISION, "its weights are larger than any that could be found")


def _squares(w: Weights) -> Array:
    """⟨w_d·w_d⟩ = |⟨w_d⟩|² + Σ_l scale_dl |b_gl|²: (D,), without a copy of the weights."""
    square: Array = np.einsum("dk,dk->d", w.mean, w.mean)
    lengths = np.einsum("gkl,gkl->gl", w.basis, w.basis)
    for rows in pieces(len(square), w.scales.shape[1]):
        square[rows] += np.einsum("dl,dl->d", w.scales[rows], lengths[w.columns.label[rows]])
    return square


# ---------------------------------------------------------------- one view


def _check_origin(name: str, view: FittedView, views: Mapping[str, FittedView]) -> None:
    """A view of several kernels is named after its source, every other is its own."""
    kernelized = isinstance(view.encoder, KernelMap)
    part = kernelized and name.startswith(f"{view.source}[") and view.source not in views
    require(view.source == name or part, "it comes from another view")
    same = view.role.name == name and view.role.kernelized == kernelized
    require(same, "its role is another view's")


def _check_view(view: FittedView, n_factors: int, gives_energy: bool) -> None:
    """Shapes and limits, with the energy that each kernel of an input gives to outputs."""
    kernel = getattr(view.encoder, "kernel", None)
    n_parts = len(kernel.kernels) if isinstance(kernel, kernels.Mixture) else 1
    energy = {"P": n_parts, "E": n_factors} if gives_energy else {"P": 1, "E": 1}
    check_fields(view, _sizes(view) | energy)
    require(gives_energy or not view.energy.any(), "it gives energy to no output")


def _sizes(view: FittedView) -> dict[str, int]:
    """The number C of columns of the data, O of those predicted, and D of the Gaussian layer's."""
    encoder, n = view.encoder, view.n_inputs
    if isinstance(encoder, KernelMap):
        return {"C": n, "O": len(encoder.V), "D": len(encoder.V)}
    predicted, seen = encoder.widths(n)
    return {"C": n, "O": predicted, "D": seen}


def _check_encoder(name: str, view: FittedView) -> None:
    encoder, labelled = view.encoder, view.classes is not None
    require(labelled == view.kind.reads_labels, "its labels are not its own")
    if isinstance(encoder, KernelMap):
        require(not labelled, "labels have no kernel")
        _check_kernel(name, encoder, view)
        return
    require(type(encoder) is view.kind, "it is of two kinds")
    fault = encoder.fault(view.n_inputs)
    require(not fault, fault)
    if labelled:
        _check_labels(view.classes, view.dtype, encoder.widths(1)[0])


def _check_kernel(name: str, encoder: KernelMap, view: FittedView) -> None:
    """A kernel that could be declared, and landmarks that fit the data."""
    kernel, V, n = encoder.kernel, encoder.V, view.n_inputs
    as_kernel(_declared(kernel), name)
    check_features(kernel, name, n)
    precomputed = isinstance(kernel, kernels.Precomputed)
    unit = "value" if precomputed else view.kind.unit
    require(encoder.scaling.unit == unit, "it is on another scale")
    require(bool((encoder.scaling.spread > 0).all()), "its spread is not positive")
    require(V.ndim == (1 if precomputed else 2) and len(V) > 0, "it has no landmarks")
    check_entries("landmarks", V)
    if precomputed:
        whole = all((V[at : at + _CHUNK] % 1 == 0).all() for at in range(0, len(V), _CHUNK))
        inside = whole and V.min() >= 0 and V.max() < n
        require(bool(inside), "its landmarks are not samples of the fit")
    else:
        require(V.shape[1] == n, "its landmarks have other columns")


def _declared(kernel: kernels.Kernel) -> kernels.Kernel:
    """The kernel as it could be declared. Widths that are learnt go beyond those of people."""
    if isinstance(kernel, kernels.Mixture):
        return replace(kernel, kernels=tuple(map(_declared, kernel.kernels)))
    if isinstance(kernel, kernels.Diffusion):
        return replace(kernel, graph=None)
    return replace(kernel, width=1.0) if isinstance(kernel, Radial) else kernel


def _check_labels(classes: Any, dtype: Any, n_classes: int) -> None:
    plain = isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.dtype.kind in "biufUO"
    require(plain, "its classes are not labels")
    require(len(classes) == n_classes >= 2, "its classes are not as many")
    require(n_classes <= _MOST_CLASSES, "it has more classes than kofa writes")
    require(len(set(classes.tolist())) == len(classes), "a class occurs twice")
    try:
        _convert_labels(classes, dtype)
    except DamageError:
        raise
    except (TypeError, ValueError):
        pass  # labels then stay as they are
    except (ArithmeticError, ImportError) as error:
        raise DamageError(f"its labels are of another type ({error})") from None


def _convert_labels(classes: Any, dtype: Any) -> None:
    """Give the labels their type, as predictions will."""
    if isinstance(dtype, np.dtype) and dtype.kind == "U":  # needs memory, and takes any label
        fits = dtype.itemsize <= longest_word_type(classes).itemsize
        require(fits, "its labels are too long")
    elif isinstance(dtype, np.dtype | type):
        classes.astype(dtype)
    else:
        require(dtype is not None and hasattr(dtype, "name"), "its labels have no type")
        with with_pandas("a label") as pd:
            pd.Series(classes, dtype=classes.dtype).astype(dtype)
