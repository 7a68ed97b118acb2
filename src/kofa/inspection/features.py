"""Tables of what a fitted model found: relevance of features, samples and kernels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from scipy.special import chdtri

from kofa import tuning
from kofa.data.tables import import_pandas
from kofa.errors import DataError
from kofa.inference.posterior import ViewPosterior
from kofa.kernels.base import Kernel, Weighted
from kofa.kernels.kernel_map import KernelMap
from kofa.kernels.mixture import Mixture, kernel_name
from kofa.linalg import Array, BoolArray
from kofa.preparation.prepare import FittedView

# ---------------------------------------------------------------- samples


def relevance_vectors(name: str, view: FittedView) -> Any:
    """The candidates of a sparse kernelized view: those kept first, in their order."""
    if view.vectors is None:
        cure = "declare it with a kernel and sparse=True"
        raise DataError("it has no relevance vectors", name, cure=cure)
    order = view.vectors.order
    rank = np.lexsort((-view.vectors.relevance, np.where(order < 0, len(order), order)))
    return import_pandas().DataFrame(
        {
            "sample": view.vectors.samples[rank],
            "relevance": view.vectors.relevance[rank],
            "order": order[rank],
            "kept": order[rank] >= 0,
        }
    )


# ---------------------------------------------------------------- features


def weighted(kernel: Kernel) -> Weighted | None:
    """The kernel, or the part of a mixture, that knows the relevance of its features."""
    found = kernel.kernels if isinstance(kernel, Mixture) else (kernel,)
    return next((k for k in found if isinstance(k, Weighted) and k.relevance is not None), None)


def feature_names(view: FittedView) -> list[Hashable]:
    """The columns of the data."""
    return list(range(view.n_inputs) if view.inputs is None else view.inputs)


def column_names(view: FittedView) -> list[Hashable]:
    """What a view explains: columns of the data, classes, or similarities with landmarks."""
    if isinstance(view.encoder, KernelMap):
        return view.landmarks.tolist() if view.outputs is None else list(view.outputs)
    return feature_names(view) if view.classes is None else view.classes.tolist()


def relevances(name: str, view: FittedView, posterior: ViewPosterior) -> Array:
    """λ of an ARD kernel, or what the factors explain of the columns of a sparse primal view."""
    if isinstance(view.encoder, KernelMap):
        kernel = weighted(view.encoder.kernel)
        if kernel is None:
            what = f"the {kernel_name(view.encoder.kernel)} kernel has no relevance of features"
            cure = "declare kernel=kofa.RBF(relevance='learn'), or kernel='bank', and outputs"
            raise DataError(what, name, cure=cure)
        return np.array(kernel.relevance, dtype=float)
    if posterior.gamma is None or view.classes is not None:
        cure = "declare it with sparse=True, or with kernel=kofa.RBF(relevance='learn') and outputs"
        if view.classes is not None:
            cure = "ask for the views that are tables of numbers"
        raise DataError("it has no relevance of features", name, cure=cure)
    # Σ_k ⟨w_dk⟩² in units of the noise: the signal of a column whose factors have variance one
    signal = posterior.precision * (posterior.weights.mean**2).sum(axis=1)
    return view.layer.of_all_columns(signal)


def off_below(view: FittedView, posterior: ViewPosterior, relevance: Array) -> Array | float:
    """The relevance below which a feature is switched off.

    A column without signal has weights of variance 1/(nτ) by chance, hence a relevance of χ²_K/n:
    the mark is what the largest of all columns exceeds with a probability of 5 %.
    """
    if isinstance(view.encoder, KernelMap):
        return _relevant_from(relevance[np.ptp(view.encoder.V, axis=0) > 0])
    n_columns, n_factors = posterior.weights.mean.shape
    n = 1.0 / (posterior.weights.bias_variance * posterior.precision)
    return view.layer.of_all_columns(chdtri(n_factors, tuning.FEATURE_CHANCE / n_columns) / n)


def _relevant_from(relevance: Array) -> float:
    """The least λ that counts, of features that are not constant.

    Where none of them is off, nothing may be known of any. Then only those count that stand out.
    """
    off = tuning.FEATURE_OFF * float(relevance.max(initial=0.0))
    if off > 0 and relevance.min() >= off:
        return tuning.FEATURE_STANDS_OUT * float(np.exp(np.log(relevance).mean()))
    return off


def selected(relevance: Array, top: int | None, threshold: Array | float) -> BoolArray:
    """Which features count: the first of them, or those above a mark."""
    if top is None:
        return np.asarray((relevance >= threshold) & (relevance > 0))
    chosen = np.zeros(len(relevance), dtype=bool)
    chosen[np.argsort(-relevance, kind="stable")[:top]] = True
    return chosen & (relevance > 0)


def feature_relevance(name: str, view: FittedView, posterior: ViewPosterior) -> Any:
    """The features of a view, the most relevant first."""
    relevance = relevances(name, view, posterior)
    rank = np.argsort(-relevance, kind="stable")
    columns = {
        "feature": [feature_names(view)[j] for j in rank],
        "relevance": relevance[rank],
        "selected": selected(relevance, None, off_below(view, posterior, relevance))[rank],
    }
    kernel = weighted(view.encoder.kernel) if isinstance(view.encoder, KernelMap) else None
    if kernel is not None and kernel.groups is not None:
        columns["group"] = [kernel.groups[j] for j in rank]
    return import_pandas().DataFrame(columns)


# ---------------------------------------------------------------- kernels


def kernel_weights(
    views: Mapping[str, FittedView], state: Mapping[str, ViewPosterior], output: str | None
) -> Any:
    """The share of each input, and of each kernel of a mixture, in z or in an output."""
    inputs = {name: view for name, view in views.items() if not view.role.output}
    if output is None:
        size = {name: _in_factors(views[name], state[name]) for name in inputs}
    else:
        size = _in_output(inputs, state[output])
    weight = np.array([value for parts in size.values() for value in parts])
    labels = [(name, part) for name in inputs for part in part_names(views[name].encoder)]
    return import_pandas().DataFrame(
        {
            "view": [name for name, _ in labels],
            "kernel": [part for _, part in labels],
            "weight": weight / max(float(weight.sum()), np.finfo(float).tiny),
        }
    )


def part_names(encoder: Any) -> list[str]:
    """What each kernel of a view is called."""
    if not isinstance(encoder, KernelMap):
        return ["none"]
    kernel = encoder.kernel
    return [kernel_name(k) for k in (kernel.kernels if isinstance(kernel, Mixture) else (kernel,))]


def _in_factors(view: FittedView, posterior: ViewPosterior) -> Array:
    """Trace of what a view adds to z's posterior precision, by part."""
    share = view.energy.sum(axis=1)
    if not share.sum() > 0:  # without outputs all kernels of a mixture have the same variance
        share = np.ones(len(part_names(view.encoder)))
    share = share / share.sum()
    return np.asarray(float(posterior.information.sum()) * share)


def _in_output(inputs: Mapping[str, FittedView], posterior: ViewPosterior) -> dict[str, Array]:
    """Variance of an output's prediction by each part.

    Of what a factor adds to it, each kernel is given its share in the factor's prior variance.
    """
    total = np.maximum(
        sum(view.energy.sum(axis=0) for view in inputs.values()), np.finfo(float).tiny
    )
    signal = (posterior.weights.mean**2).sum(axis=0)
    # Shares first: all there is may be next to nothing.
    return {name: np.asarray((view.energy / total) @ signal) for name, view in inputs.items()}
