"""Kernels: formulas, the map from rows to similarities, and how both are learnt from outputs."""

from kofa.kernels.base import Kernel
from kofa.kernels.diffusion import Diffusion
from kofa.kernels.formulas import RBF, Laplacian, Linear, Polynomial, Precomputed
from kofa.kernels.mixture import Mixture

__all__ = [
    "RBF",
    "Diffusion",
    "Kernel",
    "Laplacian",
    "Linear",
    "Mixture",
    "Polynomial",
    "Precomputed",
]
