"""Whether the parts of a model that was read from a file fit together.

A file may be edited such that each part is what it should be by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kofa.encoding import FittedView
from kofa.errors import DeclarationError
from kofa.graphs import Graph
from kofa.kernels import (
    Diffusion,
    Kernel,
    KernelMap,
    Mixture,
    Precomputed,
    Radial,
    Weighted,
    as_kernel,
    check_features,
)
from kofa.likelihoods import Bernoulli, Gaussian, Likelihood, Multinomial, Poisson
from kofa.linalg import Array
from kofa.posterior import Gamma, Known, State, ViewPosterior, Weights
from kofa.regression import ReadOut
from kofa.scaling import Scaling
from kofa.storage.dtypes import with_pandas
from kofa.storage.members import DamageError, require, shown
from kofa.storage.schema import KERNELS, an, dict_of, tuple_of
from kofa.vectors import Vectors

_LARGEST_PRECISION = 1e14
_MOST_CLASSES = 2**16  # each of which becomes an object several times its size
_CHUNK = 2**14  # rows that are looked at at a time
_LONGEST_WORD = 1024  # letters for which a type of labels makes room, unless a label has more

# ---------------------------------------------------------------- a model as a whole


def check_model(views: Any, state: Any) -> None:
    """Raise unless the parts of a model fit together, so that none fails where it is used.

    All sizes are compared, all indices checked, and what must be positive, or finite, must be so.
    """
    require(
        dict_of(an(FittedView))(views) and tuple_of(an(ViewPosterior))(state),
        "its views are missing",
    )
    require(0 < len(views) == len(state), "it has not one posterior for each view")
    require(np.ndim(state[0].weights.mean) == 2, "its weights are no table")
    n_factors = state[0].weights.mean.shape[1]
    supervised = any(view.role.output for view in views.values())
    for (name, view), posterior in zip(views.items(), state, strict=True):
        try:
            _check_source(name, view, views)
            n_columns = _check_encoder(name, view)
            _check_names(view, n_columns)
            _check_posterior(posterior, n_columns, n_factors)
            _check_energy(view, n_factors, supervised)
            shape = (1,) if np.shape(view.holes_in_fit) == (1,) else (n_columns,)
            _check_array(view.holes_in_fit, shape, least=0.0)
            _check_vectors(view.vectors)
        except (DamageError, DeclarationError) as error:
            raise DamageError(f"view {shown(name)}: {error}") from None
    _check_size(state)


def _check_size(state: State) -> None:
    """Of Σ_d τ_d ⟨w_d·w_d⟩, which is what can make the precision of a sample singular."""
    with np.errstate(over="ignore", invalid="ignore"):
        size = sum(float(q.precision @ _squares(q.weights)) for q in state)
    require(size < _LARGEST_PRECISION, "its weights are larger than any that could be found")


def check_readouts(views: Mapping[str, FittedView], readouts: Any) -> None:
    """Raise unless each is a model of some of the views, the one it is for at the end."""
    require(dict_of(an(ReadOut))(readouts), "its read-outs are none")
    for name, found in readouts.items():
        held = found.views
        require(
            len(set(held)) == len(held) > 1 and held[-1] == name and set(held) <= set(views),
            f"the read-out of view {shown(name)} is of other views",
        )
        require(not any(views[n].role.output for n in held), "an output is read out")
        _check_calibration(found, views[name])
        require(len(found.state) == len(held), "it has not one posterior for each view")
        require(np.ndim(found.state[0].weights.mean) == 2, "its weights are no table")
        n_factors = found.state[0].weights.mean.shape[1]
        for other, posterior in zip(held, found.state, strict=True):
            _check_posterior(posterior, _check_encoder(other, views[other]), n_factors)
        _check_size(found.state)


def _check_calibration(found: ReadOut | FittedView, view: FittedView) -> None:
    require(0.0 <= found.sharpness < math.inf, "its sharpness is negative")
    if found.centre is not None:
        require(view.kind is Bernoulli, "it has a centre of ones and zeros, and none of these")
        _check_array(found.centre, (view.n_inputs,))


def _squares(w: Weights) -> Array:
    """⟨w_d·w_d⟩ = |⟨w_d⟩|² + Σ_l scale_dl |b_gl|²: (D,), without a copy of the weights."""
    square: Array = np.einsum("dk,dk->d", w.mean, w.mean)
    lengths = np.einsum("gkl,gkl->gl", w.basis, w.basis)
    for at in range(0, len(square), _CHUNK):
        rows = slice(at, at + _CHUNK)
        square[rows] += np.einsum("dl,dl->d", w.scales[rows], lengths[w.columns.label[rows]])
    return square


def _check_source(name: str, view: FittedView, views: Mapping[str, FittedView]) -> None:
    """A view of several kernels is named after its source, every other is its own."""
    kernelized = isinstance(view.encoder, KernelMap)
    part = kernelized and name.startswith(f"{view.source}[") and view.source not in views
    require(view.source == name or part, "it comes from another view")
    require(
        view.role.name == name and view.role.kernelized == kernelized, "its role is another view's"
    )


def _check_encoder(name: str, view: FittedView) -> int:
    """Number of columns of the view's Gaussian layer."""
    encoder, n = view.encoder, view.n_inputs
    require((view.classes is not None) == (view.kind is Multinomial), "its labels are not its own")
    _check_calibration(view, view)
    if isinstance(encoder, KernelMap):
        require(view.classes is None, "labels have no kernel")
        _check_kernel(name, encoder, view.kind, n)
        return len(encoder.V)
    require(type(encoder) is view.kind, "it is of two kinds")
    if isinstance(encoder, Gaussian):
        _check_scaling(encoder.scaling, n, encoder.unit)
    elif isinstance(encoder, Poisson):
        _check_array(encoder.rate, (n,), above=0.0)
        _check_array(encoder.most, (n,), above=0.0)
    elif isinstance(encoder, Multinomial):
        require(n == 1, "it has several columns of labels")
        _check_labels(view.classes, view.dtype, encoder.n_classes)
        return encoder.n_classes
    elif isinstance(encoder, Bernoulli):
        require(encoder.n_columns == n, "its columns are not those of the data")
    return n


def _check_scaling(scaling: Scaling, n_columns: int, unit: str, endless: bool = False) -> None:
    """With `endless`, the spread may be infinite: the column does not count."""
    _check_array(scaling.centre, (n_columns,))
    _check_array(scaling.spread, (n_columns,), above=0.0, endless=endless)
    require(scaling.unit == unit, "it is on another scale")
    if scaling.typical is not None:
        _check_array(scaling.typical, (n_columns,))


def _check_kernel(name: str, encoder: KernelMap, kind: type[Likelihood], n_inputs: int) -> None:
    """Landmarks that fit the data, and a kernel with nothing left to be found."""
    kernel, V = encoder.kernel, encoder.V
    parts = kernel.kernels if isinstance(kernel, Mixture) else (kernel,)
    for part in parts:
        require(type(part) in KERNELS, "its kernel is not resolved")
        if isinstance(part, Radial):
            width: Any = part.width
            require(not isinstance(width, str), "its kernel is not resolved")
            require(0.0 < width < math.inf, "its kernel has no positive width")
        if isinstance(part, Weighted):
            require(not part.learns_relevance, "its kernel is not resolved")
        if isinstance(part, Diffusion):
            require(not part.learns_time, "its kernel is not resolved")
            _check_graph(part.graph, n_inputs)
    as_kernel(_declared(kernel), name)
    check_features(kernel, name, n_inputs)
    require(not isinstance(getattr(kernel, "weights", None), str), "its kernel is not resolved")
    precomputed = isinstance(kernel, Precomputed)
    _check_scaling(encoder.scaling, n_inputs, "value" if precomputed else kind.unit, endless=True)
    require(V.ndim == (1 if precomputed else 2) and len(V) > 0, "it has no landmarks")
    if precomputed:
        whole = all((V[at : at + _CHUNK] % 1 == 0).all() for at in range(0, len(V), _CHUNK))
        inside = whole and V.min() >= 0 and V.max() < n_inputs
        require(bool(inside), "its landmarks are not samples of the fit")
    else:
        require(V.shape[1] == n_inputs, "its landmarks have other columns")
        require(_finite(V), "its landmarks are not finite")
    _check_array(encoder.column_mean, (len(V),))
    require(0.0 < encoder.scale < math.inf, "its scale is not positive")


def _check_graph(graph: Graph | None, n_inputs: int) -> None:
    if graph is None:
        raise DamageError("its kernel is not resolved")
    n_rows, n_directions = np.shape(graph.rows)[:1], np.shape(graph.rates)[:1]
    require(n_rows > (0,), "its graph has no rows")
    _check_array(graph.rows, (*n_rows, n_inputs))
    _check_array(graph.scale, n_rows, above=0.0)
    _check_array(graph.directions, (*n_rows, *n_directions))
    _check_array(graph.rates, n_directions, least=0.0)


def _declared(kernel: Kernel) -> Kernel:
    """The kernel as it could be declared. Widths that are learnt go beyond those of people."""
    if isinstance(kernel, Mixture):
        return replace(kernel, kernels=tuple(map(_declared, kernel.kernels)))
    if isinstance(kernel, Diffusion):
        return replace(kernel, graph=None)
    return replace(kernel, width=1.0) if isinstance(kernel, Radial) else kernel


def _check_labels(classes: Any, dtype: Any, n_classes: int) -> None:
    require(
        isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.dtype.kind in "biufUO",
        "its classes are not labels",
    )
    require(len(classes) == n_classes >= 2, "its classes are not as many")
    require(n_classes <= _MOST_CLASSES, "it has more classes than kofa writes")
    require(len(set(classes.tolist())) == len(classes), "a class occurs twice")
    try:
        _typed_labels(classes, dtype)
    except DamageError:
        raise
    except (TypeError, ValueError):
        pass  # labels then stay as they are
    except (ArithmeticError, ImportError) as error:
        raise DamageError(f"its labels are of another type ({error})") from None


def _typed_labels(classes: Any, dtype: Any) -> None:
    """Give the labels their type, as predictions will."""
    if isinstance(dtype, np.dtype) and dtype.kind == "U":  # takes room, and takes all
        require(dtype.itemsize <= most_room(classes).itemsize, "its labels are too long")
    elif isinstance(dtype, np.dtype | type):
        classes.astype(dtype)
    else:
        require(dtype is not None and hasattr(dtype, "name"), "its labels have no type")
        with with_pandas("a label") as pd:
            pd.Series(classes, dtype=classes.dtype).astype(dtype)


def most_room(classes: Any) -> np.dtype[Any]:
    """The longest words that a type of these labels makes room for in a file."""
    longest = max((len(str(label)) for label in classes.tolist()), default=0)
    return np.dtype(f"U{max(_LONGEST_WORD, longest)}")


def _check_names(view: FittedView, n_columns: int) -> None:
    for names, n in ((view.inputs, view.n_inputs), (view.outputs, n_columns)):
        require(names is None or len(names) == n, "it has not one name for each column")
        if names is not None and any(isinstance(name, tuple) for name in names):
            with with_pandas("a name") as pd:
                pd.Index(list(names))


def _check_posterior(q: ViewPosterior, n_columns: int, n_factors: int) -> None:
    w = q.weights
    n_groups, n_axes = w.columns.size, np.shape(w.basis)[-1] if np.ndim(w.basis) else 0
    _check_array(w.mean, (n_columns, n_factors))
    _check_array(w.basis, (n_groups, n_factors, n_axes))
    _check_array(w.scales, (n_columns, n_axes), least=0.0)
    _check_array(w.y_mean, (n_columns,))
    _check_array(w.z_mean, (n_groups, n_factors))
    _check_array(w.bias_variance, (n_columns,), least=0.0)
    label = w.columns.label
    require(label.shape == (n_columns,), "its groups are not of its columns")
    inside = np.min(label, initial=0) >= 0 and np.max(label, initial=-1) < n_groups
    require(bool(inside), "a column is in no group")
    for precision in (q.alpha, q.alpha_prior):
        _check_precision(precision, ((n_factors,),))
    for precision in (q.tau, q.tau_prior):
        _check_precision(precision, ((n_columns,), (1,)))
    _check_precision(q.gamma_prior, ((), (1,), (n_columns,)))
    if q.gamma is not None:
        _check_precision(q.gamma, ((n_columns,),))
    if q.energy is not None:
        _check_array(q.energy, (n_factors,), least=0.0)
    for variance in (q.blurred, q.overdispersion):
        if variance is not None:
            _check_array(variance, (n_columns,), least=0.0)
    require(0.0 < q.rho <= 1.0, "its curvature is not a share")


def _check_precision(q: Gamma | Known, shapes: Sequence[tuple[int, ...]]) -> None:
    held = (q.mean,) if isinstance(q, Known) else (q.shape, q.rate)
    for array in held:
        _check_array(array, np.shape(array), above=0.0)
    try:
        shape = np.broadcast_shapes(*map(np.shape, held))
    except ValueError:
        raise DamageError("a precision has two sizes") from None
    require(shape in shapes and np.shape(held[-1]) == shape, "a precision is of another size")


def _check_energy(view: FittedView, n_factors: int, supervised: bool) -> None:
    """Of each kernel of an input by factor, where there are outputs to which it is given."""
    energy, kernel = view.energy, getattr(view.encoder, "kernel", None)
    n_parts = len(kernel.kernels) if isinstance(kernel, Mixture) else 1
    input_of_outputs = supervised and not view.role.output
    _check_array(energy, (n_parts, n_factors) if input_of_outputs else (1, 1), least=0.0)
    require(input_of_outputs or not energy.any(), "it gives energy to no output")
    require(0.0 <= view.amplitude < math.inf, "the variance that it gives outputs is none")


def _check_vectors(vectors: Vectors | None) -> None:
    if vectors is not None:
        held = (vectors.samples, vectors.rows, vectors.relevance, vectors.order)
        shapes = {np.shape(array) for array in held}
        require(len(shapes) == 1 and len(shapes.pop()) == 1, "its samples are not as many")
        require(isinstance(vectors.samples, np.ndarray), "its samples have no names")


def _check_array(
    array: Any,
    shape: tuple[int, ...],
    least: float = -math.inf,
    above: float = -math.inf,
    endless: bool = False,
) -> None:
    require(np.shape(array) == shape, f"expected an array of shape {shape}, not {np.shape(array)}")
    require(_finite(array, endless), "an array has entries that are not finite")
    lowest = float(np.min(array, initial=math.inf))
    require(lowest >= least and lowest > above, "an array has entries that are too small")


def _finite(array: Any, endless: bool = False) -> bool:
    """Whether all entries are; by their extremes, which take no memory as masks do."""
    lowest, largest = float(np.min(array, initial=0.0)), float(np.max(array, initial=0.0))
    return math.isfinite(lowest) and (math.isfinite(largest) or (endless and largest > 0))
