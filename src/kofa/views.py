"""What a user declares about each table: its kind, and how it is explained."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ClassVar, Literal, TypeVar, get_args

from kofa.checks import (
    check_word,
    hint,
    hinting,
    is_among,
    is_number,
    most_like,
    require,
    shown,
)
from kofa.errors import DeclarationError, warn
from kofa.kernels.landmarks import Landmarks, Number, as_landmarks
from kofa.kernels.mixture import is_kernel_name
from kofa.likelihoods.base import Likelihood
from kofa.likelihoods.bernoulli import Bernoulli
from kofa.likelihoods.gaussian import Gaussian
from kofa.likelihoods.log_normal import LogNormal
from kofa.likelihoods.multinomial import Multinomial
from kofa.likelihoods.poisson import Poisson

Noise = Literal["auto", "view", "column"]
_Kind = TypeVar("_Kind", bound="View")


@dataclass(frozen=True)
class View:
    """A table of one kind of values. Subclasses name the likelihood and list their options.

    An option that a kind of view does not list is not one of its parameters and keeps its value.
    """

    likelihood: ClassVar[type[Likelihood]]
    kernel: Any = field(default=None, init=False, repr=False)
    sparse: bool = field(default=False, init=False, repr=False)
    noise: Noise = field(default="auto", init=False, repr=False)
    scale: bool = field(default=True, init=False, repr=False)
    landmarks: Landmarks | Number = field(default="auto", init=False, repr=False)

    @property
    def chooses_landmarks(self) -> bool:
        """Whether relevance vectors are chosen before the fit."""
        return self.kernel is not None and self.sparse

    def check(self, name: str) -> None:
        """Raise if a parameter means nothing."""
        check_word("noise", self.noise, get_args(Noise), name)
        check_word("scale", self.scale, (True, False), name)
        check_word("sparse", self.sparse, (True, False), name)
        self._check_landmarks(name)

    def _check_landmarks(self, name: str) -> None:
        declared = as_landmarks(self.landmarks)
        declared.check(name)
        if declared.caps and not self.chooses_landmarks:
            what = (
                "keep in its landmarks limits the number of relevance vectors, which only a view "
                "with a kernel and sparse=True has"
            )
            cure = f"add {self._for_vectors}, or leave keep out: n alone says how many landmarks"
            raise DeclarationError(what, name, option="landmarks", cure=cure)

    @property
    def _for_vectors(self) -> str:
        """What has to be declared besides for a view to have relevance vectors."""
        return "sparse=True" if self.kernel is not None else "a kernel and sparse=True"

    def check_landmarks_used(self, name: str) -> None:
        """Raise for landmarks without a kernel, before a fit; models with such views are loaded."""
        if self.kernel is None and not is_among(self.landmarks, ("auto",)):
            what = "landmarks are for kernels, and this view has none"
            cure = "add a kernel such as kernel='rbf', or leave landmarks out"
            raise DeclarationError(what, name, option="landmarks", cure=cure)


# Options of landmarks that have become those of `Landmarks`, with their defaults, and when they go.
OLD_NAMES = {"landmarks_by": "random", "max_landmarks": None, "share": None}
OLD_NAMES_GO_IN = "0.3"


def in_one_option(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a view, with `landmarks` in place of the old names."""
    new = {name: value for name, value in options.items() if name not in OLD_NAMES}
    if len(new) == len(options):
        return new
    declared = as_landmarks(new.get("landmarks", "auto"))
    by = options.get("landmarks_by", declared.by)
    share: Any = options.get("share")
    share = float(share) if is_number(share) else share  # an integer would be a number of landmarks
    caps = [cap for cap in (share, options.get("max_landmarks")) if cap is not None]
    keep: Any = caps[0] if len(caps) == 1 else tuple(caps) or declared.keep
    plain = is_among(by, ("random",)) and keep is None
    new["landmarks"] = declared.n if plain else Landmarks(declared.n, by=by, keep=keep)
    return new


def as_python(options: Mapping[str, Any]) -> str:
    """Options of a view as they are written in Python."""
    return ", ".join(f"{name}={_in_python(value)}" for name, value in options.items())


def _in_python(value: Any) -> str:
    if not isinstance(value, Landmarks):
        return shown(value)
    said = value.said()
    first = [shown(said.pop("n"))] if "n" in said else []
    return f"kofa.Landmarks({', '.join([*first, as_python(said)] if said else first)})"


def instead_of_old_names(
    old: Collection[str], view: View, written: Callable[[Mapping[str, Any]], str] = as_python
) -> str:
    """A warning of old names of options, with what to write instead, such that fit takes it."""
    one = len(old) == 1
    gone = f"{'option' if one else 'options'} {', '.join(old)} will be removed in kofa "
    gone = f"the {gone}{OLD_NAMES_GO_IN}"
    leave = f"leave {'it' if one else 'them'} out"
    if view.kernel is None:
        return f"{gone}, and {'has' if one else 'have'} no effect without a kernel; {leave}."
    if is_among(view.landmarks, ("auto",)):
        return f"{gone}; {leave}."
    declared = as_landmarks(view.landmarks)
    try:
        declared.check("")
    except DeclarationError:  # fit will say what is wrong
        return f"{gone}; write landmarks instead."
    needed = {"sparse": True} if declared.caps and not view.chooses_landmarks else {}
    return f"{gone}; write {written({**needed, 'landmarks': view.landmarks})}."


def _with_old_names(cls: type[_Kind]) -> type[_Kind]:
    """A kind of view that still takes the old names, with a warning."""
    init = hinting()(cls).__init__

    @wraps(init)
    def renaming(self: Any, *args: Any, **options: Any) -> None:
        old = {name: options.pop(name) for name in OLD_NAMES if name in options}
        init(self, *args, **options)
        if old:
            landmarks = in_one_option({"landmarks": self.landmarks, **old})["landmarks"]
            if self.kernel is not None or as_landmarks(landmarks).caps:  # else without effect
                object.__setattr__(self, "landmarks", landmarks)
            warn(f"{cls.__name__}: {instead_of_old_names(old, self)}", FutureWarning)

    setattr(cls, "__init__", renaming)  # noqa: B010
    return cls


@_with_old_names
@dataclass(frozen=True)
class Real(View):
    """A view of real numbers, explained directly or through a kernel.

    Parameters
    ----------
    kernel : None, str, kernel, callable, or a list of these
        None explains the columns themselves. A kernel (``kofa.RBF()``, ``kofa.Linear()``, …, a
        string such as ``"rbf"``, or any callable ``k(X, V)`` that returns an array of shape
        (rows of X, rows of V)) explains each sample's similarities to the landmarks instead.
        A list makes one view of each kernel, named such as ``x[RBF]``; ``"bank"`` is one view
        with a weighted sum of Linear, RBF and Laplacian (with a relevance of each feature; where
        most samples have no class, Diffusion too if it helps), and `kofa.Mixture` any such sum.
    sparse : bool
        Without a kernel: give each column its own ARD precision, so that useless columns are
        switched off. With a kernel: keep few landmarks, those that add to the evidence of the
        outputs (without outputs, those that span the kernel).
    noise : {"auto", "view", "column"}
        One noise variance for the view or one per column. "auto" is one per column, except
        for a kernelized input, which has one for the view.
    scale : bool
        Standardise the columns. Without it a primal view is only centred and divided by one
        number, and a kernel sees the columns as they are.
    landmarks : {"auto", "all"}, int, or `kofa.Landmarks`
        How many samples a kernelized view compares each sample with: "auto" is all that
        qualify up to 2,000, beside which predictions compare with all others. With outputs,
        samples that have an output qualify. `kofa.Landmarks` also says how they are chosen, and
        how many a sparse view keeps of them.

    Examples
    --------
    >>> import kofa
    >>> kofa.Real(kernel="rbf", sparse=True)
    Real(kernel='rbf', sparse=True, noise='auto', scale=True, landmarks='auto')
    """

    likelihood: ClassVar[type[Likelihood]] = Gaussian
    kernel: Any = None
    sparse: bool = False
    noise: Noise = "auto"
    scale: bool = True
    landmarks: Landmarks | Number = "auto"


@_with_old_names
@dataclass(frozen=True)
class Positive(View):
    """A view of positive numbers, whose logarithms are explained.

    Predictions are means of log-normal distributions, in the user's units; quantiles are there too.

    Parameters
    ----------
    kernel : None, str, kernel, callable, or a list of these
        As for `Real`: kernels of the standardised logarithms.
    sparse : bool
        As for `Real`: useless columns are switched off; with a kernel, few landmarks are kept.
    noise : {"auto", "view", "column"}
        As for `Real`, of the logarithms.
    scale : bool
        Standardise the logarithms.
    landmarks : {"auto", "all"}, int, or `kofa.Landmarks`
        As for `Real`.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(200, 1))
    >>> x = z + 0.1 * rng.normal(size=(200, 4))
    >>> dose = np.exp(1 + 2 * z + 0.1 * rng.normal(size=(200, 1)))
    >>> model = kofa.FactorModel({"x": kofa.Real(), "dose": kofa.Positive()})
    >>> model = model.fit({"x": x, "dose": dose})
    >>> bool((model.predict({"x": x}, "dose") > 0).all())
    True
    """

    likelihood: ClassVar[type[Likelihood]] = LogNormal
    kernel: Any = None
    sparse: bool = False
    noise: Noise = "auto"
    scale: bool = True
    landmarks: Landmarks | Number = "auto"


@_with_old_names
@dataclass(frozen=True)
class Binary(View):
    """A view of zeros and ones: one column, or many (multi-label). Probit model.

    Parameters
    ----------
    kernel : None, str, kernel, callable, or a list of these
        As for `Real`: kernels of the standardised zeros and ones.
    sparse : bool
        As for `Real`: useless columns are switched off; with a kernel, few landmarks are kept.
    scale : bool
        Standardise the columns for the kernel.
    landmarks : {"auto", "all"}, int, or `kofa.Landmarks`
        As for `Real`.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 3))
    >>> sick = (x.sum(axis=1) > 0).astype(float)
    >>> sick[:50] = np.nan                                      # not known
    >>> model = kofa.FactorModel({"x": kofa.Real(), "sick": kofa.Binary()}, outputs=["sick"])
    >>> model = model.fit({"x": x, "sick": sick})
    >>> model.predict_proba({"x": [[2.0, 2.0, 2.0], [-2.0, -2.0, -2.0]]}, "sick").round(1)
    array([[1.],
           [0.]])
    """

    likelihood: ClassVar[type[Likelihood]] = Bernoulli
    kernel: Any = None
    sparse: bool = False
    scale: bool = True
    landmarks: Landmarks | Number = "auto"


@hinting()
@dataclass(frozen=True)
class Categorical(View):
    """A view of one column of labels of any type, two classes or more. Multinomial probit model.

    Examples
    --------
    >>> import kofa
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> species = load_iris().target_names[y]
    >>> views = {"flower": kofa.Real(kernel="rbf"), "species": kofa.Categorical()}
    >>> model = kofa.FactorModel(views, outputs=["species"])
    >>> model = model.fit({"flower": X, "species": species})
    >>> model.predict({"flower": X[[0, 60, 120]]}, "species").tolist()
    ['setosa', 'versicolor', 'virginica']
    >>> model.predict_proba({"flower": X[:2]}, "species").shape
    (2, 3)
    """

    likelihood: ClassVar[type[Likelihood]] = Multinomial


@_with_old_names
@dataclass(frozen=True)
class Count(View):
    """A view of counts 0, 1, 2, …. Poisson model, rate s·log(1 + e^η).

    Parameters
    ----------
    kernel : None, str, kernel, callable, or a list of these
        As for `Real`: kernels of the standardised log(1 + count).
    sparse : bool
        As for `Real`: useless columns are switched off; with a kernel, few landmarks are kept.
    scale : bool
        Standardise the columns for the kernel.
    landmarks : {"auto", "all"}, int, or `kofa.Landmarks`
        As for `Real`.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(300, 1))
    >>> reads = rng.poisson(np.exp(1 + 0.5 * z @ rng.normal(size=(1, 20))))
    >>> model = kofa.FactorModel({"reads": kofa.Count()}).fit({"reads": reads})
    >>> model.n_factors_
    1
    """

    likelihood: ClassVar[type[Likelihood]] = Poisson
    kernel: Any = None
    sparse: bool = False
    scale: bool = True
    landmarks: Landmarks | Number = "auto"


# The kinds by what other tools call them or their distributions.
DISTRIBUTIONS = {
    "gaussian": "Real",
    "normal": "Real",
    "continuous": "Real",
    "numeric": "Real",
    "lognormal": "Positive",
    "bernoulli": "Binary",
    "boolean": "Binary",
    "poisson": "Count",
    "multinomial": "Categorical",
    "nominal": "Categorical",
}
_KINDS = ("Real", "Positive", "Binary", "Categorical", "Count")
_ANY_KIND = " or ".join(f"kofa.{kind}()" for kind in _KINDS)


def check_views(views: Any, data: Any) -> dict[str, View]:
    """The declared views, or a `Real` for each table where nothing was declared."""
    if views is None:
        return {name: Real() for name in data} if isinstance(data, Mapping) else {}
    declares = isinstance(views, Mapping) and len(views) > 0
    cure = "write such as {'x': kofa.Real()}, or None for real numbers in every table"
    require(declares, "views", "a dict of name → view", views, cure=cure)
    for name, view in views.items():
        if not isinstance(view, View):
            what = "expected a view such as kofa.Real()"
            raise DeclarationError(what, name, got=view, option="views", cure=_cure(view))
        view.check(name)
    return dict(views)


def _cure(given: Any) -> str:
    """What to write instead of something that is no view."""
    if isinstance(given, type) and issubclass(given, View):
        return f"write kofa.{given.__name__}()"
    if given is None:
        return "write kofa.Real(), or leave the view out"
    if hasattr(given, "__array__") or isinstance(given, list | tuple):
        return "declare the kind of the table here, and pass the table itself to fit"
    if not isinstance(given, str):
        return f"write {_ANY_KIND}"
    word = given.lower().replace("-", "").replace("_", "").rstrip("s")
    by_name = {kind.lower(): kind for kind in _KINDS} | DISTRIBUTIONS
    if word not in by_name and is_kernel_name(given.lower()):
        return f"write kofa.Real(kernel={given.lower()!r})"
    meant = most_like(word, by_name)
    return f"write {_ANY_KIND if meant is None else f'kofa.{by_name[meant]}()'}"


def check_outputs(outputs: Any, views: Mapping[str, View]) -> None:
    """Raise unless the outputs are some, but not all, of the views."""
    if outputs is None:
        return
    try:
        several = isinstance(outputs, Collection) and not isinstance(outputs, str)
        names = list(outputs) if several else None
    except TypeError:  # an array without dimensions
        names = None
    cure = f"write outputs=[{outputs!r}]" if isinstance(outputs, str) else ""
    require(names is not None, "outputs", "a list of names of views, or None", outputs, cure=cure)
    for name in names or ():
        if not is_among(name, views):
            cure = hint(name, views, "the views are")
            raise DeclarationError(f"unknown output {shown(name)}", option="outputs", cure=cure)
    if views and len(set(names or ())) == len(views):
        what = "expected at least one view that is not an output, to predict the outputs from"
        cure = "leave a view out of outputs"
        raise DeclarationError(what, option="outputs", cure=cure)
