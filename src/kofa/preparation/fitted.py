"""What a fit found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.utils.validation import check_is_fitted

from kofa.checks import hint, is_among, is_whole, listed, shown
from kofa.errors import DataError
from kofa.inference.explained import Explained
from kofa.inference.posterior import State, Weights
from kofa.inference.predictive import Basis
from kofa.kernels.base import Kernel
from kofa.kernels.kernel_map import KernelMap
from kofa.linalg import Array, BoolArray
from kofa.preparation.prepare import FittedView
from kofa.preparation.questions import Questions


@dataclass(frozen=True, eq=False)
class FitSamples:
    """What a model keeps of the samples that it was fitted to."""

    names: Any  # an array, or None for samples known by position
    factors: Array  # (N, L): their means
    measured: Array  # (N, M): the number of entries that each has of each declared view


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit found: all that a model predicts from, by name of the view."""

    views: Mapping[str, FittedView]
    posterior: State
    basis: Basis  # the factors that users see
    questions: Questions  # the views that it was asked for
    converged: bool
    bounds: Array  # after each iteration
    terms: Mapping[str, Array]  # the same, by named term
    # Which iterations have other factors than the one before; None in models of kofa 0.2.
    factors_changed: BoolArray | None = None
    samples: FitSamples | None = None
    names: tuple[str, ...] | None = None  # that a user gave the factors
    # What those factors explain of the samples of the fit; none in models of kofa 0.1.
    explained: Mapping[str, Explained] = field(default_factory=dict)
    by_factors: bool = False  # as published: all follows from z, and all views tell about z

    @property
    def n_factors(self) -> int:
        return self.basis.n_factors

    @property
    def factor_names(self) -> list[str]:
        return list(self.names or (f"factor{k + 1}" for k in range(self.n_factors)))

    def renamed(self, names: Any) -> Fitted:
        """With other names for some factors: by old name, or in their order."""
        old = self.factor_names
        if not isinstance(names, Mapping):
            if isinstance(names, str) or not isinstance(names, Iterable):
                raise DataError("expected a dict of old → new names, or a list", got=names)
            given = list(names)
            if len(given) > len(old):
                raise DataError(f"expected at most {len(old)} names of factors", got=len(given))
            names = dict(zip(old, given, strict=False))
        unknown = [name for name in names if name not in old]
        if unknown:
            cure = hint(unknown[0], old, "the model has")
            raise DataError(f"unknown factor {shown(unknown[0])}", option="names", cure=cure)
        new = tuple(names.get(name, name) for name in old)
        wrong = [name for name in new if not isinstance(name, str) or not name]
        if wrong:
            raise DataError("expected names of factors as text", got=wrong[0])
        if len(set(new)) < len(new):
            twice = next(name for name in new if new.count(name) > 1)
            what = f"expected a name of its own for every factor but {twice!r} is given twice"
            raise DataError(what, option="names")
        return replace(self, names=new)

    def place_of(self, factor: Any) -> int:
        """Where a factor stands that a user names, or gives by its position from zero."""
        names = self.factor_names
        if is_whole(factor, 0) and factor < len(names):
            return int(factor)
        if is_among(factor, names):
            return names.index(factor)
        cure = hint(factor, names, "there are") if isinstance(factor, str) else ""
        what = f"expected the name of a factor, or its position from 0 to {len(names) - 1},"
        raise DataError(what, got=factor, cure=cure or f"there are {listed(names)}")

    def weights(self, view: str) -> Weights:
        """q(w) of a view along the factors that users see."""
        return self.basis.of_weights(self.posterior[view].weights)

    @property
    def kernels(self) -> dict[str, Kernel]:
        """The kernel of each kernelized view, as fit resolved it."""
        encoders = {name: view.encoder for name, view in self.views.items()}
        return {n: one.kernel for n, one in encoders.items() if isinstance(one, KernelMap)}

    @property
    def classes(self) -> dict[str, Any]:
        """The classes of each view of labels."""
        return {n: view.classes for n, view in self.views.items() if view.classes is not None}

    @property
    def outputs(self) -> list[str]:
        return [name for name, view in self.views.items() if view.role.output]

    @property
    def sources(self) -> list[str]:
        """The declared views, of which each may stand here as several, one for each kernel."""
        return list(dict.fromkeys(view.source for view in self.views.values()))

    def view(self, name: str) -> FittedView:
        """A view that a user names, or an error that says which there are."""
        if is_among(name, self.views):
            return self.views[name]
        several = [n for n, fitted in self.views.items() if is_among(name, [fitted.source])]
        if several:
            what, cure = "it has several kernels", f"ask for one of {listed(several)}"
            raise DataError(what, name, option="view", cure=cure)
        known = f"the model has {listed(self.views)}"
        if not isinstance(name, str) and not is_among(name, [name]):  # such as a list
            what, cure = "expected the name of one view", known
            raise DataError(what, got=name, option="view", cure=cure)
        cure = hint(name, self.views, "the model has")
        raise DataError(f"unknown view {shown(name)}", option="view", cure=cure)

    def asked_for(self, view: str | None) -> str:
        """The view that is to be predicted: the only output where none is named."""
        if view is not None:
            self.view(view)
            return view
        if len(self.outputs) != 1:
            several = f"the model has the outputs {listed(self.outputs)}"
            none = f"the model has no outputs, but the views {listed(self.views)}"
            cure = f"name it: {several if self.outputs else none}"
            raise DataError("expected the view to predict", option="view", cure=cure)
        return self.outputs[0]


class HasFit:
    """What has methods that need a fit."""

    _found: Fitted  # since fit

    @property
    def _fitted(self) -> Fitted:
        check_is_fitted(self)
        return self._found
