"""The methods of a model that give tables of its factors, views and samples."""

from __future__ import annotations

from typing import Any

from kofa.inspection import of_model
from kofa.inspection.agreement import agreement
from kofa.inspection.association import associate
from kofa.inspection.correlation import correlate
from kofa.inspection.outliers import OUTLYING, outliers
from kofa.inspection.overview import Overview
from kofa.inspection.structure import bound_terms, factor_relevance
from kofa.inspection.variance import variance_explained
from kofa.preparation.fitted import HasFit


class FactorTables(HasFit):
    """Tables of factors, views and samples: methods of a `FactorModel`.

    Where `data` may be left out, it is about the samples of the fit.
    """

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
        if isinstance(other, HasFit):
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

    def outliers(self, data: Any, by: str = "sample", threshold: float = OUTLYING) -> Any:
        """Samples, or single values, that are unlike what all else that is known of them says.

        A sample that has what one of the fit has, in every view, is judged as if it was left out.

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
            By "sample": ``sample``, ``view``; ``statistic``, the mean of z² of its values, about
            one; ``p`` by their distribution over the samples, and ``q`` by Benjamini and Hochberg.
            By "entry": ``sample``, ``view``, ``feature``, ``value``, ``expected`` and ``z``, the
            furthest first.

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
