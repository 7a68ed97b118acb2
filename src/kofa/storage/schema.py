"""Which objects a file may hold, and what each of their fields may be.

Writing, reading and checking follow from this list. It is not taken from the annotations of the
classes: what a program finds in those differs between versions of Python and NumPy.

The letters of shapes: K factors; C columns of the data; D columns of the Gaussian layer, which are
those of the data, landmarks or classes; G groups of columns that are observed in the same rows, L
directions of each; P kernels of a view, E factors that it gives energy to; S candidates for
relevance vectors; R rows of a graph, V its directions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np

from kofa import kernels, likelihoods, views
from kofa.data.scaling import Scaling, Unit
from kofa.inference.explained import Explained
from kofa.inference.posterior import Gamma, Known, ViewPosterior, Weights
from kofa.inference.predictive import Basis
from kofa.inference.role import Role
from kofa.inference.scales import Scales
from kofa.kernels.graphs import Graph
from kofa.kernels.kernel_map import KernelMap
from kofa.kernels.landmarks import Choice, Landmarks
from kofa.linalg import Groups
from kofa.predictive.calibration import Calibration
from kofa.predictive.inputs import Map, Source
from kofa.predictive.regression import Regression
from kofa.predictive.residuals import Covariance
from kofa.predictive.view import ViewFromOthers
from kofa.preparation.fitted import FitSamples
from kofa.preparation.parameters import DTYPES, ENGINES
from kofa.preparation.prepare import FittedView
from kofa.preparation.questions import Compared, Question
from kofa.preparation.relevance_vectors import Vectors
from kofa.storage import fields as f
from kofa.storage.damage import require
from kofa.storage.fields import Field, Fields, Sizes, maybe, number, reals, since_0_2, truth, whole

SAVED_KERNELS = (
    kernels.RBF, kernels.Linear, kernels.Polynomial, kernels.Laplacian, kernels.Diffusion,
    kernels.Precomputed, kernels.Mixture,
)  # fmt: skip
SAVED_LIKELIHOODS = (
    likelihoods.Gaussian, likelihoods.LogNormal, likelihoods.Bernoulli, likelihoods.Multinomial,
    likelihoods.Poisson,
)  # fmt: skip


def instance(*classes: type[Any]) -> Field:
    """An object of one of these classes, with its own fields."""
    return replace(f.of_type(*classes), check=lambda _, value, sizes: check_fields(value, sizes))


def check_fields(value: Any, sizes: Sizes) -> None:
    """Raise unless the fields of an object have the shapes and limits that are stated here."""
    sizes = {"0": 0, "1": 1, **sizes}
    for name, field in SCHEMA[type(value)].items():
        field.check(name, getattr(value, field.attribute_of(name)), sizes)


def _check_graph(_: str, graph: Any, sizes: Sizes) -> None:
    require(graph is not None, "its kernel is not resolved")
    require(np.shape(graph.rows)[:1] > (0,), "its graph has no rows")
    check_fields(graph, sizes)


def _check_scales(name: str, value: Any, sizes: Sizes) -> None:
    if isinstance(value, Scales):
        check_fields(value, sizes)
        # They are D × L numbers, and no array of that size was seen but the weights, D × K.
        require(sizes["L"] <= sizes["K"], f"its {name} have more directions than factors")
    else:  # in files of kofa 0.2 and before, and of columns that have holes of their own
        _scales.check(name, value, sizes)


# ---------------------------------------------------------------- what several classes share

STATE = f.tuple_of(f.of_type(ViewPosterior))  # one for each view, in their order

_kernel, _scaling = instance(*SAVED_KERNELS), instance(Scaling)
_width = f.resolved(f.limited("its kernel has no positive width", above=0.0), "auto", "median")
_weighted: Fields = {
    "relevance": maybe(f.resolved(f.tuple_of(number), "learn", "auto")),
    "groups": maybe(f.tuple_of(f.name)),
    "sparsity": maybe(number),
}
_weighted_since_0_2: Fields = {
    **{name: since_0_2(_weighted[name], None) for name in ("relevance", "groups", "sparsity")},
}
_n_landmarks = f.or_word(whole, "auto", "all")
_noisy: Fields = {  # in the order in which files have them
    "kernel": f.anything,
    "sparse": truth,
    "noise": f.one_of(*get_args(views.Noise)),
    "scale": truth,
    "landmarks": Field(lambda v: isinstance(v, Landmarks) or _n_landmarks.accepts(v)),
}
_declared: Fields = {name: field for name, field in _noisy.items() if name != "noise"}
_scales = reals("DL", least=0.0)

# ---------------------------------------------------------------- the classes

SCHEMA: dict[type[Any], Fields] = {
    kernels.RBF: {"width": _width, **_weighted},
    kernels.Linear: _weighted,
    kernels.Polynomial: {
        "degree": Field(lambda v: number.accepts(v) and v % 1 == 0),  # declared as 3 or 3.0
        "offset": number,
    },
    kernels.Laplacian: {"width": _width, **_weighted_since_0_2},
    kernels.Diffusion: {
        "neighbours": whole,
        "time": f.resolved(number, "auto"),
        "graph": replace(maybe(instance(Graph)), check=_check_graph),
    },
    Graph: {
        "rows": reals("RC"), "scale": reals("R", above=0.0),
        "directions": reals("RV"), "rates": reals("V", least=0.0),
    },
    kernels.Precomputed: {},
    kernels.Mixture: {
        "kernels": f.tuple_of(_kernel), "weights": f.resolved(f.tuple_of(number), "learn"),
    },
    KernelMap: {
        "view": f.text, "kernel": _kernel, "scaling": _scaling,
        "V": reals(),  # its shape depends on the kernel: see `validation`
        "column_mean": reals("D"), "scale": f.limited("its scale is not positive", above=0.0),
        "mean_self": number, "by_row": truth,
    },
    Scaling: {
        "centre": reals("C"), "spread": reals("C", least=0.0, infinite=True),
        "unit": f.one_of(*get_args(Unit)), "typical": maybe(reals("C")),
    },
    likelihoods.Gaussian: {"scaling": _scaling},
    likelihoods.LogNormal: {"scaling": _scaling},
    likelihoods.Bernoulli: {"n_columns": f.size("C")},
    likelihoods.Multinomial: {"n_classes": f.size("D")},
    likelihoods.Poisson: {"rate": reals("C", above=0.0), "most": reals("C", above=0.0)},
    Landmarks: {
        "n": _n_landmarks,
        "by": f.one_of(*get_args(Choice)),
        "keep": Field(lambda v: v is None or number.accepts(v) or f.tuple_of(number).accepts(v)),
    },
    views.Real: _noisy,
    views.Positive: _noisy,
    views.Binary: _declared,
    views.Categorical: {},
    views.Count: _declared,
    FittedView: {
        "role": instance(Role),
        "declared": f.text,
        "kind": Field(lambda value: isinstance(value, type) and value in SAVED_LIKELIHOODS),
        "encoder": instance(*SAVED_LIKELIHOODS, KernelMap),
        "source": f.text,
        "inputs": f.column_names("C"), "n_inputs": whole, "outputs": f.column_names("O"),
        "classes": f.anything, "dtype": f.anything,  # of labels: see `validation`
        "landmarks": f.indices(),
        "vectors": maybe(instance(Vectors)),
        "energy": reals("PE", least=0.0),
    },
    Basis: {"Q": reals("FK"), "n_predictive": whole},
    FitSamples: {
        "names": maybe(f.labels("N")), "factors": reals("NF"), "measured": reals("NM", least=0.0),
    },
    Explained: {
        "mean": reals("D"), "n": reals("D", least=0.0),
        "total": reals("D", least=0.0), "left": reals("D", least=0.0),
        "factors": reals("F"), "shared": number,
    },
    Role: {
        "name": f.text, "kernelized": truth, "output": truth, "sparse": truth,
        "noise_per_column": truth, "exact": since_0_2(truth, False),
        "weight": f.limited("its weight is negative", least=0.0),
        "grams": f.tuple_of(reals(), also=list),
    },
    Vectors: {
        "samples": f.labels("S"), "rows": f.indices("S"), "relevance": f.labels("S", reals()),
        "order": f.indices("S"), "silent": truth,
    },
    Weights: {
        "mean": reals("DK"), "basis": reals("GKL"),
        "scales": Field(lambda v: isinstance(v, Scales) or _scales.accepts(v), _check_scales),
        "columns": instance(Groups), "y_mean": reals("D"), "z_mean": reals("GK"),
        "bias_variance": reals("D", least=0.0),
    },
    Scales: {
        "gamma": reals("D", above=0.0), "tau": reals("D", above=0.0),
        "eigenvalues": reals("GL", least=0.0), "columns": instance(Groups),
    },
    Groups: {
        "label": f.indices("D", below="G", problem="a column is in no group"), "size": f.size("G"),
    },
    Gamma: {"shape": reals(), "rate": reals()},
    Known: {"mean": reals()},
    ViewPosterior: {
        "weights": instance(Weights),
        "alpha": f.precision("K"), "gamma": maybe(f.precision("D", classes=(Gamma,))),
        "tau": f.precision("D", "1"), "alpha_prior": f.precision("K"),
        "gamma_prior": f.precision("", "1", "D", classes=(Gamma,)),
        "tau_prior": f.precision("D", "1"),
        "rho": f.limited("its curvature is not a share", above=0.0, most=1.0),
        "blurred": maybe(reals("D", least=0.0)),
    },
    Question: {
        "state": f.dict_of(f.of_type(ViewPosterior)), "scalings": f.dict_of(f.of_type(Scaling)),
        "bases": f.dict_of(reals()), "compared": f.dict_of(f.of_type(Compared)),
        "found": instance(ViewFromOthers),
    },
    Compared: {
        "rows": reals("nC"), "mean": reals("n"), "weights": reals("nD"), "features": reals("pD"),
    },
    ViewFromOthers: {
        "map": instance(Map), "regression": instance(Regression),
        "residuals": instance(Covariance), "calibration": maybe(instance(Calibration)),
        "open_in_fit": reals("D", least=0.0),
    },
    Map: {
        "sources": f.dict_of(f.of_type(Source)), "weights": f.dict_of(number),
        "projection": reals("PR"),
    },
    Source: {
        "features": reals("0p"), "mean": reals("p"),
        "unit": f.limited("its unit is not positive", above=0.0),
    },
    Regression: {
        "e": reals("R", above=0.0), "n_rows": whole,
        "mean": reals("D"), "ratio": reals("D", above=0.0), "share": reals("D", above=0.0),
        "scale": reals("D", least=0.0), "coefficients": reals("RD"),
        "left_out": reals("00"), "left_out_std": reals("00"),
    },
    Covariance: {
        "noise": reals("D", least=0.0), "loadings": reals("DL"), "n_factors": whole, "n": number,
    },
    Calibration: {
        "slope": f.limited("its slope is negative", least=0.0),
        "centre": reals("D"), "bias": reals("D"), "extra": reals("D", least=0.0),
    },
}  # fmt: skip

# The names of classes in files. One that is renamed in Python keeps its name here.
NAMES_IN_FILES = {cls: cls.__name__ for cls in SCHEMA}

# ---------------------------------------------------------------- a model as a whole

PARAMETERS: Fields = {  # of FactorModel
    "views": maybe(f.dict_of(f.of_type(views.View))),
    "n_factors": maybe(whole),
    "outputs": maybe(f.tuple_of(f.text, also=list)),
    "n_init": whole,
    "max_iter": whole,
    "tol": maybe(number),
    "random_state": maybe(Field(lambda value: type(value) is int)),
    "callback": f.one_of(None),
    "checkpoint": f.one_of(None),
    "checkpoint_every": number,
    "progress": truth,
    "engine": since_0_2(f.one_of(*ENGINES), "auto"),
    "block_rows": since_0_2(f.or_word(whole, "auto"), "auto"),
    "dtype": since_0_2(f.one_of(*DTYPES), "float64"),
    "n_jobs": since_0_2(f.one_of(None), None),  # which no file has
    "as_published": since_0_2(truth, False),
}
MODEL: Fields = {
    "parameters": f.of_type(dict),
    "views": f.dict_of(f.of_type(FittedView)),
    "posterior": STATE,
    "rows": maybe(f.dict_of(reals())),
    "questions": f.dict_of(f.of_type(Question)),
    "basis": since_0_2(maybe(f.of_type(Basis)), None),
    "factor_names": since_0_2(maybe(f.tuple_of(f.text)), None),
    "samples": since_0_2(maybe(f.of_type(FitSamples)), None),
    "explained": since_0_2(f.dict_of(f.of_type(Explained)), {}),
    "converged": truth,
    "path": f.of_type(dict),
}
PATH: Fields = {  # of the bound
    "terms": f.tuple_of(f.text, also=list),
    "values": reals(),
    "factors_changed": since_0_2(maybe(f.truths()), None),
}
