"""What the estimators share: X as views, the model behind them, and its factors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from kofa.checks import with_hints
from kofa.data.stored import Named, Stored, is_sparse, some_columns
from kofa.data.tables import column_label
from kofa.errors import DataError, warn
from kofa.estimators.tables import (
    TARGET,
    by_view,
    column_named,
    declared_columns,
    empty_columns,
    in_file,
    named,
    unmasked,
)
from kofa.inference.run import Iteration
from kofa.kernels.formulas import Precomputed
from kofa.linalg import Array, IntArray
from kofa.model import FactorModel, cloned
from kofa.views import Real, View

# What scikit-learn and other tools call our parameters; a width is one of a kernel.
_NAMES_ELSEWHERE = {
    "n_components": "n_factors",
    "seed": "random_state",
    "kernels": "kernel",
    "gamma": "kernel",
    "length_scale": "kernel",
    "width": "kernel",
}


class KernelFactors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What the three estimators share: X as views, the model behind them, and its factors."""

    @with_hints(_NAMES_ELSEWHERE)
    def __init__(
        self,
        kernel: Any = "bank",
        *,
        columns: Mapping[str, Any] | None = None,
        n_factors: int | None = None,
        sparse: Any = False,
        landmarks: Any = "auto",
        scale: Any = True,
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float | None = None,
        random_state: Any = None,
        callback: Callable[[Iteration], bool | None] | None = None,
        engine: Any = "auto",
        block_rows: Any = "auto",
        dtype: str = "float64",
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.columns = columns
        self.n_factors = n_factors
        self.sparse = sparse
        self.landmarks = landmarks
        self.scale = scale
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.callback = callback
        self.engine = engine
        self.block_rows = block_rows
        self.dtype = dtype
        self.n_jobs = n_jobs

    def __sklearn_clone__(self) -> Self:
        copy: Self = cloned(self)
        return copy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_pairwise
        return tags

    @property
    def _is_pairwise(self) -> bool:
        """Whether X is a kernel, so that cross-validation takes its columns with its rows."""
        named = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return named or isinstance(self.kernel, Precomputed) or self.kernel is Precomputed

    # ------------------------------------------------------------ factors

    def transform(self, X: Any) -> Array:
        """The factors of rows.

        Parameters
        ----------
        X : array, list of rows or DataFrame (n, D)
            The rows. NaN is missing.

        Returns
        -------
        array or DataFrame (n, K)
            Posterior means given X alone; a DataFrame after ``set_output(transform="pandas")``.

        Examples
        --------
        >>> import numpy as np
        >>> from kofa.estimators import KernelFactorAnalysis
        >>> X = np.random.default_rng(0).normal(size=(30, 1)) * [1.0, 2.0, 3.0]
        >>> KernelFactorAnalysis("linear").fit(X).transform(X[:5]).shape
        (5, 1)
        """
        given = self._given(X)
        return np.asarray(self.model_.transform(given))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the columns of `transform`: factor1, factor2, …

        Parameters
        ----------
        input_features : array or None
            Not used: factors are named the same whatever the columns of X are called.

        Returns
        -------
        array of str (K,)
            The names.

        Examples
        --------
        >>> import numpy as np
        >>> from kofa.estimators import KernelFactorAnalysis
        >>> X = np.random.default_rng(0).normal(size=(30, 1)) * [1.0, 2.0, 3.0]
        >>> KernelFactorAnalysis("linear").fit(X).get_feature_names_out()
        array(['factor1'], dtype=object)
        """
        check_is_fitted(self, "model_")
        super().get_feature_names_out(input_features)  # checks the names that it is given
        return np.array(self.model_.factor_names_, dtype=object)

    @property
    def _n_features_out(self) -> int:
        return int(self.model_.n_factors_)

    # ------------------------------------------------------------ fit

    def _fit(self, X: Any, y: Any = None, kind: View | None = None) -> Self:
        """Fit the model to the views in X and, where there is one, to a target of some kind."""
        declared = declared_columns(self.columns, X.shape[1], self._feature_names)
        options = {
            option: by_view(option, getattr(self, option), declared)
            for option in ("kernel", "sparse", "landmarks", "scale")
        }
        columns = declared if self._is_pairwise else self._without_empty(X, declared)
        views: dict[str, View] = {
            view: Real(**{option: value[view] for option, value in options.items()})
            for view in columns
        }
        data = self._tables(X, columns)
        if kind is not None:
            views[TARGET], data[TARGET] = kind, y
        model = self._model(views, outputs=None if kind is None else [TARGET])
        model._fit(data, of_slips=False)  # columns may well be constant in one fold
        self.model_, self.columns_ = model, columns  # together: a fit that fails changes nothing
        self.n_factors_, self.n_iter_ = model.n_factors_, model.n_iter_
        return self

    def _model(self, views: Mapping[str, View], outputs: Sequence[str] | None) -> FactorModel:
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = int(seed.randint(2**31 - 1))
        return FactorModel(
            views,
            self.n_factors,
            outputs=outputs,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=seed,
            callback=self.callback,
            engine=self.engine,
            block_rows=self.block_rows,
            dtype=self.dtype,
            n_jobs=self.n_jobs,
        )

    def _without_empty(self, X: Any, columns: Mapping[str, IntArray]) -> dict[str, IntArray]:
        """The columns that have a value, and the views that have such columns.

        A column may well be empty in one fold of a cross-validation, so this is no error.
        """
        empty = empty_columns(X)
        used = np.unique(np.concatenate(list(columns.values())))
        if empty[used].all():
            what = "expected at least one value in X but all are missing"
            raise DataError(what, cure="pass rows that have values")
        lost = [column_label(self._feature_names, j) for j in used[empty[used]].tolist()]
        if lost:
            shown = ", ".join(lost[:5]) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
            warn(f"Left out, because all values are missing in fit: {shown} of X.")
        kept = {view: where[~empty[where]] for view, where in columns.items()}
        return {view: where for view, where in kept.items() if len(where)}

    # ------------------------------------------------------------ X

    @property
    def _feature_names(self) -> list[str] | None:
        return list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None

    def _read(self, X: Any, in_fit: bool = False) -> Any:
        """X as floats, NaN where missing; sparse, or in a file, as it came.

        Fit remembers its columns, with which those of others are compared.
        """
        stored = None if self._is_pairwise else in_file(X)
        if stored is not None:
            none = named(np.empty((0, stored.shape[1])), stored.columns)
            validate_data(self, none, reset=in_fit, skip_check_array=True)
            return stored.values
        with column_named(X):
            read = validate_data(
                self,
                unmasked(X),
                reset=in_fit,
                accept_sparse="csr",
                dtype=np.float64,
                ensure_all_finite="allow-nan",
                ensure_min_samples=2 if in_fit else 1,
            )
        return read if is_sparse(read) else np.asarray(read)

    def _given(self, X: Any) -> dict[str, Any]:
        """New rows as the model takes them."""
        check_is_fitted(self, "model_")
        return self._tables(self._read(X), self.columns_)

    def _tables(self, X: Any, columns: Mapping[str, IntArray]) -> dict[str, Any]:
        all_names, whole = self._feature_names, np.arange(X.shape[1])
        if is_sparse(X):  # not copied where one view has all columns
            return {v: X if np.array_equal(w, whole) else X[:, w] for v, w in columns.items()}
        tables: dict[str, Any] = {}
        for view, where in columns.items():
            names = None if all_names is None else [all_names[j] for j in where]
            part: Any = some_columns(X, where)
            tables[view] = Named(part, None, names) if isinstance(X, Stored) else named(part, names)
        return tables
