"""Factors of one table."""

from __future__ import annotations

from typing import Any, Self

from kofa.estimators.base import KernelFactors


class KernelFactorAnalysis(KernelFactors):
    """Factors of the rows of a table, found through kernels. Missing values may stay.

    Parameters
    ----------
    kernel : str, kernel, callable, list of these, None, or dict of view → one of these
        How rows are compared, as in `kofa.Real`. The default is a weighted sum of a linear, an
        RBF and a Laplacian kernel, the last with a relevance of each feature where there is a
        target to learn it from. None explains the columns themselves. "precomputed": X is
        the kernel.
    columns : dict of view → columns, or None
        Splits X into views that each have a kernel of their own: names or positions of columns,
        or a slice of positions. Views may overlap; a column in none of them is not used. None
        is one view, called "X". No view may be called "y".
    n_factors : int or None
        The most factors allowed. None: as many as the data support, at most 300.
    sparse : bool, or dict of view → bool
        Compare with few rows only, the relevance vectors. With ``kernel=None``, switch useless
        columns off.
    landmarks : "auto", "all", int, `kofa.Landmarks`, or dict of view → one of these
        How many rows each row is compared with; "auto" is all up to 2,000.
    scale : bool, or dict of view → bool
        Standardise the columns.
    n_init, max_iter, tol, callback, engine, block_rows, dtype, n_jobs
        As for `kofa.FactorModel`. A `numpy.memmap`, or what `kofa.open_table` returns, may be X:
        then its rows are read when they are needed, unless ``engine="memory"``.
    random_state : int, numpy Generator, RandomState or None
        Seed of everything random. None is a fixed seed, unlike in scikit-learn's estimators: a
        fit that is repeated gives the same result.

    Attributes
    ----------
    model_ : FactorModel
        The model of the views, with all that can be asked of it. Of its ``lower_bound_`` see
        there: with classes as the target it is not strictly below the evidence.
    columns_ : dict of view → array
        Positions of the columns of X in each view, without those that had no value in fit.
    n_factors_, n_iter_, n_features_in_ : int
        The number of factors, of iterations of the fit, and of columns of X.
    feature_names_in_ : array
        Only where X had names of columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kofa.estimators import KernelFactorAnalysis
    >>> X = load_iris().data
    >>> KernelFactorAnalysis(n_factors=3).fit_transform(X).shape
    (150, 3)
    """

    def fit(self, X: Any, y: None = None) -> Self:  # noqa: ARG002
        """Fit to the rows of a table.

        Parameters
        ----------
        X : array, list of rows or DataFrame (n, D)
            The rows. NaN is missing.
        y : None
            Not used; scikit-learn's pipelines pass it.

        Returns
        -------
        KernelFactorAnalysis
            The estimator itself.

        Examples
        --------
        >>> import numpy as np
        >>> from kofa.estimators import KernelFactorAnalysis
        >>> X = np.random.default_rng(0).normal(size=(30, 1)) * [1.0, 2.0, 3.0]
        >>> KernelFactorAnalysis("linear").fit(X).n_factors_
        1
        """
        return self._fit(self._read(X, in_fit=True))
