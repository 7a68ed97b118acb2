"""The methods of a model that give tables of weights and of what in a view is relevant."""

from __future__ import annotations

from typing import Any

from kofa.checks import flag, is_number, is_whole, listed
from kofa.errors import DataError
from kofa.inspection import of_model
from kofa.inspection.features import (
    feature_names,
    feature_relevance,
    kernel_weights,
    off_below,
    relevance_vectors,
    relevances,
    selected,
)
from kofa.inspection.weights import (
    standardised_weights,
    tidy_weights,
    top_features,
    weights_by_factor,
)
from kofa.preparation.fitted import HasFit


class FeatureTables(HasFit):
    """Tables of weights, features, landmarks and kernels: methods of a `FactorModel`."""

    random_state: Any  # of the model

    def weights(self, view: str, tidy: bool = False, standardise: bool = False) -> Any:
        """⟨W⟩ of a view: what one unit of each factor adds.

        In the user's units for real views, to the logarithm for positive ones, to the η of the
        likelihood for the others. Of a kernelized view, to the similarities with landmarks.

        Parameters
        ----------
        view : str
            The view.
        tidy : bool
            Return a row for each column and factor.
        standardise : bool
            In units of the standard deviation of each column.

        Returns
        -------
        array or DataFrame (D, K)
            Of a kernelized view (R, K), with a row for each landmark. With ``tidy`` a DataFrame of
            ``feature``, ``factor``, ``weight``, ``std`` of its posterior, ``standardised``, and
            ``lfsr``, the local false sign rate Φ(−|weight|/std). With ``tidy`` or ``standardise``,
            the weights of a linear kernel are those of features: what one unit of a factor adds to
            them, as it changes the similarities.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> rng = np.random.default_rng(0)
        >>> w = [9, 1, 0, 2, 1, 1, 1, 1]
        >>> x = rng.normal(size=(300, 1)) * w + rng.normal(size=(300, 8))
        >>> model = kofa.FactorModel().fit({"x": x})
        >>> model.weights("x").round(1).ravel()
        array([9.2, 1. , 0. , 2.1, 0.9, 0.9, 1. , 1. ])
        >>> model.weights("x", tidy=True).head(4).round(2)
          feature   factor  weight   std  standardised  lfsr
        0       0  factor1    9.21  0.07          0.99  0.00
        1       1  factor1    1.02  0.06          0.73  0.00
        2       2  factor1    0.00  0.06          0.00  0.47
        3       3  factor1    2.06  0.06          0.90  0.00
        """
        if flag("tidy", tidy):
            return tidy_weights(self._fitted, view)
        found = standardised_weights if flag("standardise", standardise) else weights_by_factor
        return found(self._fitted, view)

    def top_features(self, view: str, factor: str | int, n: int = 10) -> Any:
        """The features of a view that a factor changes most, the strongest first.

        Parameters
        ----------
        view : str
            The view.
        factor : str or int
            A name, or a position that counts from zero.
        n : int
            How many features, at most.

        Returns
        -------
        DataFrame
            ``feature``, ``weight``, ``std``, ``standardised`` (by whose size they are sorted) and
            ``lfsr``, as in `weights`.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> rng = np.random.default_rng(0)
        >>> w = [9, 1, 0, 2, 1, 1, 1, 1]
        >>> x = rng.normal(size=(300, 1)) * w + rng.normal(size=(300, 8))
        >>> kofa.FactorModel().fit({"x": x}).top_features("x", "factor1", n=2).feature.tolist()
        [0, 3]
        """
        return top_features(self._fitted, view, factor, n)

    def enrich(
        self, view: str, sets: Any, factor: Any = None, data: Any = None, **options: Any
    ) -> Any:
        """Which sets of features have larger weights: see `kofa.inspection.enrich`.

        Weights are standardised.

        Parameters
        ----------
        view : str
            The view.
        sets : dict of name → features, DataFrame, or path of a GMT file
            The sets. A DataFrame has the columns ``set`` and ``feature``.
        factor : name, position from zero, a list of these, or None
            Which factors; None is all.
        data : dict of name → table, MuData or AnnData, or None
            Tables of which the view is one, from which it is known how features go together. Pass
            it, or p-values of correlated features are too small.
        **options
            Those of `kofa.inspection.enrich`, such as ``min_size``. ``random_state`` is that of
            the model where it is not given.

        Returns
        -------
        DataFrame
            A row for each factor and set, as from `kofa.inspection.enrich`.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(100, 1)) * np.repeat([2.0, 0.0], 6) + rng.normal(size=(100, 12))
        >>> model = kofa.FactorModel().fit({"x": x})
        >>> sets = {"first": range(6), "last": range(8, 12)}
        >>> table = model.enrich("x", sets, data={"x": x}, min_size=3)
        >>> dict(zip(table.set, table.direction))
        {'first': 'positive', 'last': 'negative'}
        """
        options = {"random_state": self.random_state, **options}
        return of_model.enrich(self._fitted, view, sets, factor, data, options)

    def relevance_vectors(self, view: str) -> Any:
        """The samples that a sparse kernelized view compares others with.

        Parameters
        ----------
        view : str
            A view with a kernel and ``sparse=True``.

        Returns
        -------
        DataFrame
            ``sample``; ``relevance``, what the log-evidence of the outputs loses without it, or
            would gain with it if it was not kept (without outputs, the variance of the kernel that
            it adds); ``order`` in which it was chosen, −1 if it was not; ``kept``.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> x = np.linspace(-3, 3, 60)[:, None]
        >>> views = {"x": kofa.Real(kernel="rbf", sparse=True), "y": kofa.Real()}
        >>> model = kofa.FactorModel(views, outputs=["y"]).fit({"x": x, "y": np.sin(x)})
        >>> vectors = model.relevance_vectors("x")
        >>> bool(vectors.kept.sum() <= 10)
        True
        """
        return relevance_vectors(view, self._fitted.view(view))

    def feature_relevance(self, view: str) -> Any:
        """How much each feature of a view matters, the most relevant first.

        Parameters
        ----------
        view : str
            A view whose kernel has ``relevance="learn"``, or a sparse view without a kernel.

        Returns
        -------
        DataFrame
            ``feature``; ``relevance``, for a kernel λ, relative to a mean of one where the width
            was free, and for a sparse view the signal of each column in units of its noise;
            ``selected``, whether `selected_features` has it.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(100, 1)) * [2.0, 1.0, 0.0] + rng.normal(size=(100, 3))
        >>> model = kofa.FactorModel({"x": kofa.Real(sparse=True)}).fit({"x": x})
        >>> model.feature_relevance("x").columns.tolist()
        ['feature', 'relevance', 'selected']
        """
        return feature_relevance(view, self._fitted.view(view), self._fitted.posterior[view])

    def selected_features(
        self, view: str, top: int | None = None, threshold: float | None = None
    ) -> list[Any]:
        """Names (or positions) of the features of a view that matter, in the order of the columns.

        Parameters
        ----------
        view : str
            A view as for `feature_relevance`.
        top : int or None
            The most relevant ones, so many.
        threshold : float or None
            Those with a relevance of at least this. None, without `top`, is all that were not
            switched off: λ above a hundredth of the largest, or columns with more signal than
            chance gives the largest of as many without.

        Returns
        -------
        list
            Names of columns, or positions where these have no names.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(200, 10))
        >>> y = np.sin(2 * x[:, [3]]) + x[:, [7]] ** 2
        >>> views = {"x": kofa.Real(kernel=kofa.RBF(relevance="learn")), "y": kofa.Real()}
        >>> model = kofa.FactorModel(views, outputs=["y"]).fit({"x": x, "y": y})
        >>> model.selected_features("x", top=2)
        [3, 7]
        """
        one = self._fitted.view(view)
        if top is not None and not is_whole(top, 1):
            what = "expected top to be a whole number of at least 1, or None"
            raise DataError(what, view, got=top, option="top")
        if threshold is not None and not is_number(threshold):
            what = "expected threshold to be a number, or None"
            raise DataError(what, view, got=threshold, option="threshold")
        posterior = self._fitted.posterior[view]
        relevance = relevances(view, one, posterior)
        off = off_below(one, posterior, relevance)
        chosen = selected(relevance, top, off if threshold is None else threshold)
        return [f for f, on in zip(feature_names(one), chosen, strict=True) if on]

    def kernel_weights(self, output: str | None = None) -> Any:
        """The share of each kernel, in the factors or in the predictions of an output.

        Views without a kernel count as one. Shares add up to one.

        Parameters
        ----------
        output : str or None
            None: the share in the posterior precision of the factors. The name of an output: the
            share in the variance of its predictions.

        Returns
        -------
        DataFrame
            ``view``, ``kernel`` and ``weight``.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> x = np.random.default_rng(0).normal(size=(40, 2))
        >>> views = {"x": kofa.Real(kernel=["linear", "rbf"]), "y": kofa.Real()}
        >>> model = kofa.FactorModel(views, outputs=["y"]).fit({"x": x, "y": x.sum(axis=1)})
        >>> model.kernel_weights("y").kernel.tolist()
        ['Linear', 'RBF']
        """
        fitted = self._fitted
        if output is not None and not fitted.view(output).role.output:
            cure = f"the outputs are {listed(fitted.outputs) or 'none'}"
            raise DataError("it is not an output of the model", output, option="output", cure=cure)
        return kernel_weights(fitted.views, fitted.posterior, output)
