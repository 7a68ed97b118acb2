"""What cross-validation asks of a model; a `FactorModel` has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self


class Model(Protocol):
    """Something that is declared by views and outputs, fits tables and predicts views."""

    views: Any
    outputs: Any

    @property
    def classes_(self) -> Mapping[str, Any]: ...
    def fit(self, data: Any) -> Self: ...
    def predict(self, data: Any, view: str) -> Any: ...
    def predict_proba(self, data: Any, view: str) -> Any: ...
    def predict_quantiles(self, data: Any, view: str, quantiles: Sequence[float]) -> Any: ...
