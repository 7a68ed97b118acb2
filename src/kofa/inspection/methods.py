"""The methods of a model that give tables of what was found."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from kofa.checks import flag, is_number, is_whole, listed
from kofa.errors import DataError
from kofa.inspection import of_model
from kofa.inspection.agreement import agreement
from kofa.inspection.association import associate
from kofa.inspection.correlation import correlate
from kofa.inspection.features import (
    feature_names,
    feature_relevance,
    kernel_weights,
    off_below,
    relevance_vectors,
    relevances,
    selected,
)
from kofa.inspection.outliers import OUTLYING, outliers
from kofa.inspection.overview import Overview
from kofa.inspection.structure import bound_terms, factor_relevance
from kofa.inspection.variance import variance_explained
from kofa.inspection.weights import (
    standardised_weights,
    tidy_weights,
    top_features,
    weights_by_factor,
)
from kofa.preparation.fitted import Fitted


class Inspection:
    """The methods of a `FactorModel` that give tables of what was found.

    Where `data` may be left out, it is about the samples of the fit.
    """

    _found: Fitted  # since fit

    @property
    def _fitted(self) -> Fitted:
        check_is_fitted(self)
        return self._found

    # ------------------------------------------------------------ factors and views

    def variance_explained(self, data: Any = None, by: str = "factor") -> Any:
        """The share of each view that the factors explain, as a DataFrame.

        For real and positive views and similarities, r2 = 1 − Σ (y − ŷ)² / Σ (y − ȳ)² over the
        observed entries on the scale of the model, ȳ the mean in fit; for others, deviances stand
        for squares. What factors explain adds up to what they explain together: where two say the
        same, each has half of it. Outputs are explained by factors known from the inputs. No sum is
        above one. It is below zero where a prediction is worse than the mean: of data that are
        unlike those of the fit, or single samples, and of a factor that only undoes what others
        do wrong. It is NaN where nothing varies.

        Parameters
        ----------
        data : dict of name → table, MuData or AnnData, or None
            The samples; None is those of the fit.
        by : {"factor", "view", "feature", "sample"}
            What there is a row for. "sample" needs `data`.

        Returns
        -------
        DataFrame
            By "factor": ``view``, ``factor``, ``r2``. By "view": ``view``, ``r2`` of all factors
            together and ``shared``, that minus what each would explain by itself. By "feature":
            ``view``, ``feature``, ``r2``. By "sample": ``sample``, ``view``, ``r2``.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> rng = np.random.default_rng(0)
        >>> z = rng.normal(size=(300, 1))
        >>> data = {"x": z + rng.normal(size=(300, 50)), "y": rng.normal(size=(300, 4))}
        >>> model = kofa.FactorModel().fit(data)
        >>> model.variance_explained().round(1)
          view   factor   r2
        0    x  factor1  0.5
        1    y  factor1  0.0
        """
        return variance_explained(self._fitted, data, by)

    def factor_relevance(self) -> Any:
        """Which factor is at work in which view, by the parameters of the model, as a DataFrame.

        Returns
        -------
        DataFrame
            ``factor``, ``view``; ``relevance``, the share of the view's variance Σ_d w_dk² /
            Σ_d (Σ_j w_dj² + 1/τ_d); ``active``, whether it is more than a hundredth of what all
            factors have there, and more than chance: Σ_d n_d τ_d w_dk² above what a χ² variable of
            D degrees of freedom exceeds with a probability of 5 %, divided by the number of
            factors. Of the factor as a whole: ``links``, the views in which it is active; and
            ``label``, "predictive" if an output is among them, else "shared" by several tables,
            "private" to one, or "weak".

        Examples
        --------
        >>> import numpy as np, kofa
        >>> rng = np.random.default_rng(0)
        >>> z = rng.normal(size=(300, 1))
        >>> data = {"x": z + rng.normal(size=(300, 50)), "y": rng.normal(size=(300, 4))}
        >>> kofa.FactorModel().fit(data).factor_relevance().round(1)
            factor view  relevance  active    label links
        0  factor1    x        0.5    True  private     x
        1  factor1    y        0.0   False  private     x
        """
        return factor_relevance(self._fitted)

    def factors(self, data: Any = None) -> Any:
        """The factors of samples as a table.

        Parameters
        ----------
        data : dict of name → table, MuData or AnnData, or None
            The samples; None is those of the fit.

        Returns
        -------
        DataFrame (n, K)
            A row for each sample, a column for each factor.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> z = np.random.default_rng(0).normal(size=(50, 1))
        >>> model = kofa.FactorModel().fit({"x": z * [1.0, 2.0], "y": -z})
        >>> model.factors().shape
        (50, 1)
        >>> model.factors({"y": [[1.0], [2.0]]}).columns.tolist()
        ['factor1']
        """
        return of_model.factors(self._fitted, data)

    def correlate(self, data: Any = None) -> Any:
        """Pearson's correlation of each factor with each: see `kofa.inspection.correlate`.

        Parameters
        ----------
        data : dict of name → table, MuData or AnnData, or None
            The samples; None is those of the fit.

        Returns
        -------
        DataFrame
            ``factor``, ``other`` and ``r``, a row for each pair.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> z = np.random.default_rng(0).normal(size=(50, 1))
        >>> model = kofa.FactorModel().fit({"x": z * [1.0, 2.0], "y": -z})
        >>> model.correlate()
            factor    other    r
        0  factor1  factor1  1.0
        """
        return correlate(of_model.factor_table(self._fitted, data))

    def associate(self, covariates: Any, data: Any = None, *, ranks: bool = False) -> Any:
        """Test each factor against each covariate: see `kofa.inspection.associate`.

        Parameters
        ----------
        covariates : DataFrame, Series, dict of name → column, or array
            What is known of the samples besides. Matched by name where both have names, else by
            position.
        data : dict of name → table, MuData or AnnData, or None
            The samples; None is those of the fit.
        ranks : bool
            Replace factors and numbers by their ranks.

        Returns
        -------
        DataFrame
            A row for each factor and covariate: ``factor``, ``covariate``, ``kind``, ``n``,
            ``statistic``, ``value``, ``r``, ``p``, ``q`` and ``note``.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> z = np.random.default_rng(0).normal(size=(50, 1))
        >>> model = kofa.FactorModel().fit({"x": z * [1.0, 2.0], "y": -z})
        >>> model.associate({"age": 40 - 3 * z[:, 0]})[["factor", "covariate", "n"]]
            factor covariate   n
        0  factor1       age  50
        """
        return associate(of_model.factor_table(self._fitted, data), covariates, ranks=ranks)

    def agreement(self, other: Any, data: Any = None) -> Any:
        """Which factors of another model, or of a table, are the same as those of this one.

        Parameters
        ----------
        other : FactorModel, DataFrame or array (n, K)
            The other model, or factors of the same samples.
        data : dict of name → table, MuData or AnnData, or None
            Samples that both models are applied to; None is those of the fits.

        Returns
        -------
        DataFrame
            ``factor``, ``matched`` and ``r``: see `kofa.inspection.agreement`.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> z = np.random.default_rng(0).normal(size=(50, 1))
        >>> model = kofa.FactorModel().fit({"x": z * [1.0, 2.0], "y": -z})
        >>> model.agreement(-model.factors())
            factor  matched    r
        0  factor1  factor1 -1.0
        """
        if isinstance(other, Inspection):
            other = of_model.factor_table(other._fitted, data)
        return agreement(of_model.factor_table(self._fitted, data), other)

    def data_overview(self) -> Overview:
        """What was measured in fit, by view and by sample: see `kofa.inspection.data_overview`.

        Returns
        -------
        Overview
            A pair of DataFrames, ``views`` and ``samples``.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> z = np.random.default_rng(0).normal(size=(50, 1))
        >>> model = kofa.FactorModel().fit({"x": z * [1.0, 2.0], "y": -z})
        >>> model.data_overview().views
          view  n_samples  n_features  missing
        0    x         50           2      0.0
        1    y         50           1      0.0
        """
        return of_model.data_overview(self._fitted)

    def bound_terms(self) -> Any:
        """The bound in the course of the fit, term by term.

        Returns
        -------
        DataFrame
            ``iteration``, ``term``, ``value``. The terms of an iteration add up to the bound.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> z = np.random.default_rng(0).normal(size=(50, 1))
        >>> model = kofa.FactorModel().fit({"x": z * [1.0, 2.0], "y": -z})
        >>> table = model.bound_terms()
        >>> bool(np.isclose(table[table.iteration == 1].value.sum(), model.lower_bounds_[0]))
        True
        """
        return bound_terms(self._fitted)

    # ------------------------------------------------------------ weights

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
        0       0  factor1    9.20  0.07          0.99  0.00
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
            Those of `kofa.inspection.enrich`, such as ``min_size``.

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
        >>> sets = {"first": range(6), "last": range(6, 12)}
        >>> table = model.enrich("x", sets, data={"x": x}, min_size=3)
        >>> dict(zip(table.set, table.direction))
        {'last': 'negative', 'first': 'positive'}
        """
        return of_model.enrich(self._fitted, view, sets, factor, data, options)

    # ------------------------------------------------------------ data

    def outliers(self, data: Any, by: str = "sample", threshold: float = OUTLYING) -> Any:
        """Samples, or single values, that are unlike the others given their factors.

        Parameters
        ----------
        data : dict of name → table, MuData or AnnData
            The samples.
        by : {"sample", "entry"}
            What there is a row for. "entry" has no kernelized views.
        threshold : float
            By "entry", how many standard deviations from what is expected a value is at least.

        Returns
        -------
        DataFrame
            By "sample": ``sample``, ``view``; ``statistic``, the mean of squared residuals in units
            of the noise (or deviances), about one; ``p`` by their distribution over the samples,
            and ``q`` by Benjamini and Hochberg. By "entry": ``sample``, ``view``, ``feature``,
            ``value``, ``expected`` and ``z``, the furthest first.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(100, 1)) + rng.normal(size=(100, 8))
        >>> model = kofa.FactorModel().fit({"x": x})
        >>> x[17, 3] += 9.0
        >>> model.outliers({"x": x}, by="entry")[["sample", "view", "feature"]]
          sample view feature
        0     17    x       3
        """
        return outliers(self._fitted, data, by, threshold)

    # ------------------------------------------------------------ relevance

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
