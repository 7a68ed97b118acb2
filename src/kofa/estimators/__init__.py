"""For scikit-learn: a transformer, a regressor and a classifier of one table X."""

from kofa.estimators.analysis import KernelFactorAnalysis
from kofa.estimators.classifier import KernelFactorClassifier
from kofa.estimators.regressor import KernelFactorRegressor

__all__ = ["KernelFactorAnalysis", "KernelFactorClassifier", "KernelFactorRegressor"]
