"""Which objects a file may hold, and what each of their fields may be.

It is stated here and not taken from the annotations of the classes. Those are for readers and for
the type checker; what a program finds in them differs between versions of Python and NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np

from kofa.encoding import FittedView
from kofa.graphs import Graph
from kofa.inference import Iteration, Run, Settings
from kofa.kernels import (
    RBF,
    Diffusion,
    Kernel,
    KernelMap,
    Laplacian,
    Linear,
    Mixture,
    Polynomial,
    Precomputed,
)
from kofa.landmarks import Choice
from kofa.likelihoods import Bernoulli, Gaussian, Likelihood, LogNormal, Multinomial, Poisson
from kofa.linalg import Groups
from kofa.posterior import Gamma, Known, ViewPosterior, Weights
from kofa.regression import ReadOut
from kofa.scaling import Scaling, Unit
from kofa.start import Role
from kofa.vectors import Vectors
from kofa.views import Binary, Categorical, Count, Noise, Positive, Real

KERNELS = (RBF, Linear, Polynomial, Laplacian, Diffusion, Precomputed, Mixture)
LIKELIHOODS = (Gaussian, LogNormal, Bernoulli, Multinomial, Poisson)

_MOST_LEVELS = 64  # of names that are tuples; pandas makes an index of each

Check = Callable[[Any], bool]
Fields = dict[str, Check]

# ---------------------------------------------------------------- what a value may be


def anything(value: Any) -> bool:  # noqa: ARG001
    """For what is checked elsewhere, with the parts around it."""
    return True


def truth(value: Any) -> bool:
    return isinstance(value, bool)


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole(value: Any) -> bool:
    """A whole number, however it was written."""
    return number(value) and (isinstance(value, int) or value.is_integer())


def text(value: Any) -> bool:
    return isinstance(value, str)


def is_name(value: Any) -> bool:
    """Whether a value can be the name of a column or a label."""
    if isinstance(value, tuple):
        return len(value) <= _MOST_LEVELS and all(is_name(item) for item in value)
    plain = value is None or isinstance(value, bool | int | float | str)
    return plain or type(value).__name__ == "Timestamp"


def reals(value: Any) -> bool:
    """An array of numbers, or one number that stands for such an array."""
    return isinstance(value, np.ndarray | np.float64) and value.dtype == np.float64


def places(value: Any) -> bool:
    """An array of indices."""
    return isinstance(value, np.ndarray) and value.dtype == np.intp


def kind(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Likelihood)


def one_of(*choices: Any) -> Check:
    return lambda value: any(type(value) is type(choice) and value == choice for choice in choices)


def an(*classes: type[Any]) -> Check:
    return lambda value: isinstance(value, classes)


def either(*checks: Check) -> Check:
    return lambda value: any(check(value) for check in checks)


def maybe(check: Check) -> Check:
    return lambda value: value is None or check(value)


def tuple_of(check: Check) -> Check:
    return lambda value: isinstance(value, tuple) and all(map(check, value))


def list_of(check: Check) -> Check:
    """A list or a tuple."""
    return lambda value: isinstance(value, list | tuple) and all(map(check, value))


def dict_of(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


# ---------------------------------------------------------------- the classes

_width = either(number, one_of("auto", "median"))
_names = maybe(tuple_of(is_name))
_precision = an(Gamma, Known)
_weighted: Fields = {
    "relevance": maybe(either(one_of("learn", "auto"), tuple_of(number))),
    "groups": _names,
    "sparsity": maybe(number),
    "objective": one_of("evidence", "reconstruction"),
}
_gaussian: Fields = {"scaling": an(Scaling)}
_view: Fields = {
    "kernel": anything,
    "sparse": either(truth, one_of("ard")),
    "scale": truth,
    "landmarks": either(whole, one_of("auto", "all")),
    "landmarks_by": one_of(*get_args(Choice)),
    "max_landmarks": maybe(whole),
    "share": maybe(number),
}
_noisy: Fields = {**_view, "noise": one_of(*get_args(Noise))}

SCHEMA: dict[type[Any], Fields] = {
    RBF: {"width": _width, **_weighted},
    Linear: _weighted,
    Polynomial: {"degree": whole, "offset": number},
    Laplacian: {"width": _width, **_weighted},
    Diffusion: {
        "neighbours": whole,
        "time": either(number, one_of("auto")),
        "graph": maybe(an(Graph)),
    },
    Graph: {"rows": reals, "scale": reals, "directions": reals, "rates": reals},
    Precomputed: {},
    Mixture: {
        "kernels": tuple_of(an(Kernel)),
        "weights": either(one_of("learn"), tuple_of(number)),
    },
    Gaussian: _gaussian,
    LogNormal: _gaussian,
    Bernoulli: {"n_columns": whole},
    Multinomial: {"n_classes": whole},
    Poisson: {"rate": reals, "most": reals},
    KernelMap: {
        "view": text,
        "kernel": an(Kernel),
        "scaling": an(Scaling),
        "V": reals,
        "column_mean": reals,
        "scale": number,
        "mean_self": number,
        "by_row": truth,
    },
    Scaling: {
        "centre": reals,
        "spread": reals,
        "unit": one_of(*get_args(Unit)),
        "typical": maybe(reals),
    },
    Real: _noisy,
    Positive: _noisy,
    Binary: _view,
    Categorical: {},
    Count: _view,
    FittedView: {
        "role": an(Role),
        "declared": text,
        "kind": kind,
        "encoder": an(Likelihood, KernelMap),
        "source": text,
        "inputs": _names,
        "n_inputs": whole,
        "outputs": _names,
        "classes": anything,
        "dtype": anything,
        "sharpness": number,
        "centre": maybe(reals),
        "landmarks": places,
        "vectors": maybe(an(Vectors)),
        "energy": reals,
        "amplitude": number,
        "holes_in_fit": reals,
    },
    Role: {
        "name": text,
        "kernelized": truth,
        "output": truth,
        "sparse": truth,
        "noise_per_column": truth,
        "exact": truth,
        "weight": number,
        "grams": list_of(reals),
    },
    Vectors: {
        "samples": anything,
        "rows": places,
        "relevance": reals,
        "order": places,
        "silent": truth,
    },
    Groups: {"label": places, "size": whole},
    Gamma: {"shape": reals, "rate": reals},
    Known: {"mean": reals},
    Weights: {
        "mean": reals,
        "basis": reals,
        "scales": reals,
        "columns": an(Groups),
        "y_mean": reals,
        "z_mean": reals,
        "bias_variance": reals,
    },
    ViewPosterior: {
        "weights": an(Weights),
        "alpha": _precision,
        "gamma": maybe(an(Gamma)),
        "tau": _precision,
        "alpha_prior": _precision,
        "gamma_prior": an(Gamma),
        "tau_prior": _precision,
        "energy": maybe(reals),
        "rho": number,
        "blurred": maybe(reals),
        "overdispersion": maybe(reals),
    },
    Iteration: {
        "n_iter": whole,
        "lower_bound": number,
        "terms": dict_of(number),
        "n_factors": whole,
        "pruned": truth,
        "start": whole,
    },
    Run: {
        "state": tuple_of(an(ViewPosterior)),
        "Z": reals,
        "history": tuple_of(an(Iteration)),
        "watched": number,
        "quiet": whole,
        "turn": number,
        "converged": truth,
        "stopped": truth,
        "ended": truth,
        "hit_ceiling": truth,
    },
    Settings: {
        "n_factors": whole,
        "max_iter": whole,
        "tol": number,
        "rotate": truth,
        "free": truth,
    },
    ReadOut: {
        "views": tuple_of(text),
        "state": tuple_of(an(ViewPosterior)),
        "sharpness": number,
        "centre": maybe(reals),
    },
}

PARAMETERS: Fields = {  # of FactorModel
    "views": maybe(dict_of(anything)),
    "n_factors": maybe(whole),
    "outputs": maybe(list_of(text)),
    "n_init": whole,
    "max_iter": whole,
    "tol": maybe(number),
    "random_state": either(one_of(None), lambda value: type(value) is int),
    "callback": one_of(None),
    "checkpoint": one_of(None),
    "checkpoint_every": number,
    "progress": truth,
}
