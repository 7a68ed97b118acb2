"""Bayesian factor analysis of several views of the same samples, also through kernels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kofa import inspection, omics, plot
    from kofa.cross_validation.cross_validate import compare, cross_validate
    from kofa.errors import DataError, DeclarationError, FileError, KofaError
    from kofa.estimators import (
        KernelFactorAnalysis,
        KernelFactorClassifier,
        KernelFactorRegressor,
    )
    from kofa.files.opening import open_table
    from kofa.inference.run import Iteration
    from kofa.kernels import RBF, Diffusion, Laplacian, Linear, Mixture, Polynomial, Precomputed
    from kofa.kernels.landmarks import Landmarks
    from kofa.model import FactorModel, load
    from kofa.scoring.summaries import calibration_table, confusion_table, score_summary
    from kofa.views import Binary, Categorical, Count, Positive, Real

__version__ = "0.2.0"

__all__ = [
    "RBF",
    "Binary",
    "Categorical",
    "Count",
    "DataError",
    "DeclarationError",
    "Diffusion",
    "FactorModel",
    "FileError",
    "Iteration",
    "KernelFactorAnalysis",
    "KernelFactorClassifier",
    "KernelFactorRegressor",
    "KofaError",
    "Landmarks",
    "Laplacian",
    "Linear",
    "Mixture",
    "Polynomial",
    "Positive",
    "Precomputed",
    "Real",
    "calibration_table",
    "compare",
    "confusion_table",
    "cross_validate",
    "inspection",
    "load",
    "omics",
    "open_table",
    "plot",
    "score_summary",
]

# Where the names are defined. They are looked up when first used: the command line, which is a part
# of this package, should not wait for scikit-learn to show a page of help.
_MODULES = {
    "cross_validation.cross_validate": ("compare", "cross_validate"),
    "scoring.summaries": ("calibration_table", "confusion_table", "score_summary"),
    "errors": ("DataError", "DeclarationError", "FileError", "KofaError"),
    "estimators": ("KernelFactorAnalysis", "KernelFactorClassifier", "KernelFactorRegressor"),
    "files.opening": ("open_table",),
    "inference.run": ("Iteration",),
    "kernels": ("RBF", "Diffusion", "Laplacian", "Linear", "Mixture", "Polynomial", "Precomputed"),
    "kernels.landmarks": ("Landmarks",),
    "model": ("FactorModel", "load"),
    "views": ("Binary", "Categorical", "Count", "Positive", "Real"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in ("inspection", "omics", "plot"):
        return import_module(f"kofa.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'kofa' has no attribute {name!r}")
    value = getattr(import_module(f"kofa.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
