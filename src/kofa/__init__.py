"""Bayesian factor analysis of several views of the same samples, also through kernels."""

from kofa.errors import DataError, DeclarationError, FileError, KofaError
from kofa.estimators import (
    KernelFactorAnalysis,
    KernelFactorClassifier,
    KernelFactorRegressor,
)
from kofa.inference import Iteration
from kofa.kernels import RBF, Laplacian, Linear, Mixture, Polynomial, Precomputed
from kofa.model import FactorModel, load
from kofa.views import Binary, Categorical, Count, Positive, Real

__version__ = "0.1.0"

__all__ = [
    "RBF",
    "Binary",
    "Categorical",
    "Count",
    "DataError",
    "DeclarationError",
    "FactorModel",
    "FileError",
    "Iteration",
    "KernelFactorAnalysis",
    "KernelFactorClassifier",
    "KernelFactorRegressor",
    "KofaError",
    "Laplacian",
    "Linear",
    "Mixture",
    "Polynomial",
    "Positive",
    "Precomputed",
    "Real",
    "load",
]
