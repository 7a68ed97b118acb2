"""What a user declares about each table: its kind, and how it is explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from kofa.errors import DeclarationError
from kofa.landmarks import Choice
from kofa.likelihoods import Bernoulli, Gaussian, Likelihood, LogNormal, Multinomial, Poisson

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
        if self.noise not in ("auto", "view", "column"):
            raise DeclarationError(
                f"View {name!r}: expected noise 'auto', 'view' or 'column' but got {self.noise!r}."
            )
        if not isinstance(self.scale, bool | np.bool_):
            raise DeclarationError(
                f"View {name!r}: expected scale True or False but got {self.scale!r}."
            )
        ard = isinstance(self.sparse, str) and self.sparse == "ard"
        if not (isinstance(self.sparse, bool | np.bool_) or ard):
            raise DeclarationError(
                f"View {name!r}: expected sparse True, False or 'ard' but got {self.sparse!r}."
            )
        if ard and self.kernel is None:
            raise DeclarationError(
                f"View {name!r}: sparse='ard' is a choice of landmarks, for a view with a kernel; "
                f"write sparse=True."
            )
        self._check_landmarks(name)

    def _check_landmarks(self, name: str) -> None:
        named = isinstance(self.landmarks, str) and self.landmarks in ("auto", "all")
        if not (named or _is_whole(self.landmarks, 2)):
            raise DeclarationError(
                f"View {name!r}: expected landmarks 'auto', 'all' or a number of at least 2 "
                f"but got {self.landmarks!r}."
            )
        if self.landmarks_by not in get_args(Choice):
            raise DeclarationError(
                f"View {name!r}: expected landmarks_by {' or '.join(map(repr, get_args(Choice)))} "
                f"but got {self.landmarks_by!r}."
            )
        if not (self.max_landmarks is None or _is_whole(self.max_landmarks, 2)):
            raise DeclarationError(
                f"View {name!r}: expected max_landmarks None or a number of at least 2 "
                f"but got {self.max_landmarks!r}."
            )
        number = isinstance(self.share, int | float | np.number) and not isinstance(
            self.share, bool
        )
        if not (self.share is None or (number and 0.0 < self.share <= 1.0)):
            raise DeclarationError(
                f"View {name!r}: expected share None, or above 0 and at most 1, "
                f"but got {self.share!r}."
            )
        capped = [o for o in ("max_landmarks", "share") if getattr(self, o) is not None]
        if capped and not self.chooses_landmarks:
            raise DeclarationError(
                f"View {name!r}: {capped[0]} is a cap on relevance vectors, which a view has with "
                f"a kernel and sparse=True; landmarks= sets the number without a choice."
            )


def _is_whole(value: Any, least: int) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and int(value) >= least


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
        with a weighted sum of Linear, RBF and Laplacian, and `kofa.Mixture` any such sum.
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


def check_views(views: Any, data: Any) -> dict[str, View]:
    """The declared views, or a `Real` for each table where nothing was declared."""
    if views is None:
        tables = data if isinstance(data, Mapping) else {}
        return {name: Real() for name, table in tables.items() if table is not None}
    if not isinstance(views, Mapping):
        raise DeclarationError(
            f"Expected views as a dict of name → view but got {type(views).__name__}."
        )
    if not views:
        raise DeclarationError("Expected at least one view but got an empty dict.")
    for name, view in views.items():
        if not isinstance(view, View):
            called = isinstance(view, type) and issubclass(view, View)
            cure = f": write {view.__name__}()" if called else ""
            raise DeclarationError(
                f"View {name!r}: expected a view such as kofa.Real() but got {view!r}{cure}."
            )
        view.check(name)
    return dict(views)


def check_outputs(outputs: Any, views: Mapping[str, View]) -> None:
    """Raise unless the outputs are some, but not all, of the views."""
    if isinstance(outputs, str):
        raise DeclarationError(f"Expected outputs as a list: write [{outputs!r}].")
    names = [] if outputs is None else list(outputs)
    unknown = [name for name in names if name not in views]
    if unknown:
        raise DeclarationError(
            f"Unknown output {unknown[0]!r}; the views are {', '.join(map(repr, views))}."
        )
    if views and len(set(names)) == len(views):
        raise DeclarationError("Expected at least one view that is not an output.")
