"""What a fit found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kofa.checks import hint, is_among, listed, shown
from kofa.errors import DataError
from kofa.inference.posterior import State, n_factors_of
from kofa.inference.regression import ReadOut
from kofa.kernels.formulas import Kernel
from kofa.kernels.kernel_map import KernelMap
from kofa.linalg import Array
from kofa.preparation.prepare import FittedView


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit found: all that a model predicts from, by name of the view."""

    views: Mapping[str, FittedView]
    posterior: State
    readouts: Mapping[str, ReadOut]
    converged: bool
    bounds: Array  # after each iteration
    terms: Mapping[str, Array]  # the same, by named term

    @property
    def n_factors(self) -> int:
        return n_factors_of(self.posterior)

    @property
    def factor_names(self) -> list[str]:
        return [f"factor{k + 1}" for k in range(self.n_factors)]

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
