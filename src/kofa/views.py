"""What a user declares about each table: its kind, and how it is explained."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from kofa.checks import is_among, is_number, is_whole, nearest, shown
from kofa.errors import DeclarationError
from kofa.kernels.landmarks import Choice
from kofa.kernels.mixture import is_kernel_name
from kofa.likelihoods.base import Likelihood
from kofa.likelihoods.bernoulli import Bernoulli
from kofa.likelihoods.gaussian import Gaussian
from kofa.likelihoods.log_normal import LogNormal
from kofa.likelihoods.multinomial import Multinomial
from kofa.likelihoods.poisson import Poisson

Noise = Literal["auto", "view", "column"]
Landmarks = Literal["auto", "all"] | int
Sparse = bool | Literal["ard"]


@dataclass(frozen=True)
class View:
    """A table of one kind of values. Subclasses name the likelihood and list their options.

    An option that a kind of view does not list is not one of its parameters and keeps its value.
    """

    likelihood: ClassVar[type[Likelihood]]
    kernel: Any = field(default=None, init=False, repr=False)
    sparse: Sparse = field(default=False, init=False, repr=False)
    noise: Noise = field(default="auto", init=False, repr=False)
    scale: bool = field(default=True, init=False, repr=False)
    landmarks: Landmarks = field(default="auto", init=False, repr=False)
    landmarks_by: Choice = field(default="random", init=False, repr=False)
    max_landmarks: int | None = field(default=None, init=False, repr=False)
    share: float | None = field(default=None, init=False, repr=False)

    @property
    def chooses_landmarks(self) -> bool:
        """Whether relevance vectors are chosen before the fit."""
        return self.kernel is not None and bool(self.sparse) and self.sparse != "ard"

    def check(self, name: str) -> None:
        """Raise if a parameter means nothing."""
        if not is_among(self.noise, get_args(Noise)):
            raise DeclarationError(
                f"View {name!r}: expected noise 'auto', 'view' or 'column' "
                f"but got {shown(self.noise)}."
            )
        if not isinstance(self.scale, bool | np.bool_):
            raise DeclarationError(
                f"View {name!r}: expected scale True or False but got {shown(self.scale)}."
            )
        ard = isinstance(self.sparse, str) and self.sparse == "ard"
        if not (isinstance(self.sparse, bool | np.bool_) or ard):
            raise DeclarationError(
                f"View {name!r}: expected sparse True, False or 'ard' but got {shown(self.sparse)}."
            )
        if ard and self.kernel is None:
            raise DeclarationError(
                f"View {name!r}: sparse='ard' is a choice of landmarks, for a view with a kernel; "
                f"write sparse=True."
            )
        self._check_landmarks(name)

    def _check_landmarks(self, name: str) -> None:
        if not (is_among(self.landmarks, ("auto", "all")) or is_whole(self.landmarks, 2)):
            raise DeclarationError(
                f"View {name!r}: expected landmarks 'auto', 'all' or a number of at least 2 "
                f"but got {shown(self.landmarks)}."
            )
        if not is_among(self.landmarks_by, get_args(Choice)):
            raise DeclarationError(
                f"View {name!r}: expected landmarks_by {' or '.join(map(repr, get_args(Choice)))} "
                f"but got {shown(self.landmarks_by)}{nearest(self.landmarks_by, get_args(Choice))}."
            )
        if not (self.max_landmarks is None or is_whole(self.max_landmarks, 2)):
            raise DeclarationError(
                f"View {name!r}: expected max_landmarks None or a number of at least 2 "
                f"but got {shown(self.max_landmarks)}."
            )
        if not (self.share is None or (is_number(self.share) and 0.0 < self.share <= 1.0)):
            raise DeclarationError(
                f"View {name!r}: expected share None, or above 0 and at most 1, "
                f"but got {shown(self.share)}."
            )
        capped = [o for o in ("max_landmarks", "share") if getattr(self, o) is not None]
        if capped and not self.chooses_landmarks:
            raise DeclarationError(
                f"View {name!r}: {capped[0]} is a cap on relevance vectors, which a view has with "
                f"a kernel and sparse=True; landmarks= sets the number without a choice."
            )


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
    sparse : bool or "ard"
        Without a kernel: give each column its own ARD precision, so that useless columns are
        switched off. With a kernel: keep few landmarks. True takes those that add to the
        evidence of the outputs (without outputs, those that span the kernel); "ard" is the
        published choice, those whose ARD precision stays small.
    noise : {"auto", "view", "column"}
        One noise variance for the view or one per column. "auto" is one per column, except
        for a kernelized input, which has one for the view.
    scale : bool
        Standardise the columns. Without it a primal view is only centred and divided by one
        number, and a kernel sees the columns as they are.
    landmarks : {"auto", "all"} or int
        How many samples a kernelized view compares each sample with: "auto" is all that
        qualify up to 2,000. With outputs, samples that have an output qualify.
    landmarks_by : {"random", "kmeans++", "cholesky"}
        How they are chosen where more qualify: any, those far from the others, or those that the
        kernels of the others explain least.
    max_landmarks : None or int
        The most that a kernelized view with ``sparse=True`` keeps.
    share : None or float
        The same as a share of the samples it chooses from. None is .18 of them, or 40 if that
        is more.

    Examples
    --------
    >>> import kofa
    >>> kofa.Real(kernel="rbf", sparse=True)  # doctest: +NORMALIZE_WHITESPACE
    Real(kernel='rbf', sparse=True, noise='auto', scale=True, landmarks='auto',
         landmarks_by='random', max_landmarks=None, share=None)
    """

    likelihood: ClassVar[type[Likelihood]] = Gaussian
    kernel: Any = None
    sparse: Sparse = False
    noise: Noise = "auto"
    scale: bool = True
    landmarks: Landmarks = "auto"
    landmarks_by: Choice = "random"
    max_landmarks: int | None = None
    share: float | None = None


@dataclass(frozen=True)
class Positive(View):
    """A view of positive numbers, whose logarithms are explained.

    The parameters are those of `Real`, of the logarithms; kernels see logarithms too. Predictions
    are means of log-normal distributions, in the user's units; quantiles are there too.

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
    sparse: Sparse = False
    noise: Noise = "auto"
    scale: bool = True
    landmarks: Landmarks = "auto"
    landmarks_by: Choice = "random"
    max_landmarks: int | None = None
    share: float | None = None


@dataclass(frozen=True)
class Binary(View):
    """A view of zeros and ones: one column, or many (multi-label). Probit model.

    Parameters
    ----------
    kernel : None, str, kernel, callable, or a list of these
        As for `Real`: kernels of the standardised zeros and ones.
    sparse : bool or "ard"
        As for `Real`: useless columns are switched off; with a kernel, few landmarks are kept.
    scale : bool
        Standardise the columns for the kernel.
    landmarks, landmarks_by, max_landmarks, share
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
    sparse: Sparse = False
    scale: bool = True
    landmarks: Landmarks = "auto"
    landmarks_by: Choice = "random"
    max_landmarks: int | None = None
    share: float | None = None


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


@dataclass(frozen=True)
class Count(View):
    """A view of counts 0, 1, 2, …. Poisson model, rate s·log(1 + e^η).

    Parameters
    ----------
    kernel : None, str, kernel, callable, or a list of these
        As for `Real`: kernels of the standardised log(1 + count).
    sparse : bool or "ard"
        As for `Real`: useless columns are switched off; with a kernel, few landmarks are kept.
    scale : bool
        Standardise the columns for the kernel.
    landmarks, landmarks_by, max_landmarks, share
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
    sparse: Sparse = False
    scale: bool = True
    landmarks: Landmarks = "auto"
    landmarks_by: Choice = "random"
    max_landmarks: int | None = None
    share: float | None = None


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


def check_views(views: Any, data: Any) -> dict[str, View]:
    """The declared views, or a `Real` for each table where nothing was declared."""
    if views is None:
        return {name: Real() for name in data} if isinstance(data, Mapping) else {}
    if not isinstance(views, Mapping):
        raise DeclarationError(
            f"Expected views as a dict of name → view but got {type(views).__name__}."
        )
    if not views:
        raise DeclarationError("Expected at least one view but got an empty dict.")
    for name, view in views.items():
        if not isinstance(view, View):
            raise DeclarationError(
                f"View {name!r}: expected a view such as kofa.Real() but got {shown(view)}"
                f"{_cure(view)}."
            )
        view.check(name)
    return dict(views)


def _cure(given: Any) -> str:
    """What to write instead of something that is no view."""
    if isinstance(given, type) and issubclass(given, View):
        return f": write {given.__name__}()"
    if given is None:
        return ": write kofa.Real(), or leave the view out"
    if not isinstance(given, str):
        return ""
    word = given.lower().replace("-", "").replace("_", "").rstrip("s")
    by_name = {kind.lower(): kind for kind in _KINDS} | DISTRIBUTIONS
    if word in by_name:
        return f": write kofa.{by_name[word]}()"
    if is_kernel_name(given.lower()):
        return f": write kofa.Real(kernel={given.lower()!r})"
    return nearest(word, by_name).rstrip("?")


def check_outputs(outputs: Any, views: Mapping[str, View]) -> None:
    """Raise unless the outputs are some, but not all, of the views."""
    if outputs is None:
        return
    if isinstance(outputs, str):
        raise DeclarationError(f"Expected outputs as a list: write [{outputs!r}].")
    try:
        names = list(outputs) if isinstance(outputs, Collection) else None
    except TypeError:  # an array without dimensions
        names = None
    if names is None:
        raise DeclarationError(
            f"Expected outputs as a list of names of views, or None, but got {shown(outputs)}."
        )
    known = ", ".join(map(repr, views))
    for name in names:
        if not is_among(name, views):
            hint = nearest(name, views) if isinstance(name, str) else ""
            raise DeclarationError(f"Unknown output {shown(name)}; the views are {known}{hint}.")
    if views and len(set(names)) == len(views):
        raise DeclarationError("Expected at least one view that is not an output.")
