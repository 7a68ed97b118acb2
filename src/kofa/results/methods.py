"""The methods of a model that apply it: transform, predict, reconstruct, impute, score."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kofa.checks import check_word
from kofa.data.returning import in_container, scored
from kofa.errors import DataError
from kofa.preparation.fitted import HasFit
from kofa.results import answers

Data = Any  # a dict of name → table, or a MuData or AnnData


class Answers(HasFit):
    """What a `FactorModel` says of samples: their factors, and any view of them."""

    def _delivery(self, out: str | PathLike[str] | None, **others: bool) -> answers.Deliver:
        """Who gets an answer: the caller, or a file, of which `FactorModel` knows."""
        raise NotImplementedError

    def transform(
        self,
        data: Data,
        return_cov: bool = False,
        n_factors: int | None = None,
        out: str | PathLike[str] | None = None,
    ) -> Any:
        """Factors of new samples from any subset of the views.

        Outputs tell about the factors only where no input is given, so that those of samples in
        the fit are found as those of new samples are.

        Parameters
        ----------
        data : dict of name → table, MuData or AnnData
            The samples, with any of the views of the fit.
        return_cov : bool
            Return the posterior covariances too.
        n_factors : int or None
            Only the first of them; with outputs the first `n_predictive_` are all that these
            depend on. None is all.
        out : path or None
            An ``.npy`` or Parquet file to which the table is written, some samples after the
            others, so that no more of them are in memory; a file that is there is replaced.

        Returns
        -------
        Z : array or DataFrame (n, K)
            The posterior means. With ``out``, the path of the file.
        covariance : array (n, K, K)
            Only with ``return_cov``.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> z = np.random.default_rng(0).normal(size=(50, 1))
        >>> model = kofa.FactorModel().fit({"x": z * [1.0, 2.0], "y": -z})
        >>> Z, covariance = model.transform({"y": [[0.0], [1.0], [2.0]]}, return_cov=True)
        >>> Z.shape, covariance.shape
        ((3, 1), (3, 1, 1))
        """
        deliver = self._delivery(out, return_cov=return_cov)
        found = answers.factors(self._fitted, data, return_cov, n_factors, deliver)
        if out is not None:
            return found
        if return_cov:
            return self._in_container(found[0]), found[1]
        return self._in_container(found)

    def set_output(self, *, transform: str | None = None) -> Self:
        """In which type `transform` and `fit_transform` return factors, as in scikit-learn.

        Parameters
        ----------
        transform : "default", "pandas", "polars" or None
            "default": an array, or a DataFrame where the tables were DataFrames. None changes
            nothing.

        Returns
        -------
        FactorModel
            The model itself.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> x = np.random.default_rng(0).normal(size=(50, 1)) * [1.0, 2.0, 3.0]
        >>> model = kofa.FactorModel(n_factors=1).set_output(transform="pandas")
        >>> model.fit_transform({"x": x}).columns.tolist()
        ['factor1']
        """
        check_word("transform", transform, (None, "default", "pandas", "polars"))
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}  # `clone` keeps it
        return self

    def _in_container(self, factors: Any) -> Any:
        container = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        return in_container(factors, self._fitted.factor_names[: factors.shape[1]], container)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002
        """The names of the columns of `transform`: factor1, factor2, …

        Parameters
        ----------
        input_features : array or None
            Not used: factors are named the same whatever the columns of the views are called.
            scikit-learn's pipelines pass it.

        Returns
        -------
        array of str (K,)
            The names.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> z = np.random.default_rng(0).normal(size=(50, 1))
        >>> kofa.FactorModel().fit({"x": z * [1.0, 2.0]}).get_feature_names_out()
        array(['factor1'], dtype=object)
        """
        return np.array(self._fitted.factor_names, dtype=object)

    def predict(
        self,
        data: Data,
        view: str | None = None,
        return_std: bool = False,
        out: str | PathLike[str] | None = None,
    ) -> Any:
        """A view of new samples from any of the others, in the user's units.

        Real, positive and count views give the mean; a binary view gives zeros and ones, a
        categorical view labels. For a kernelized view the prediction is the centred similarity of
        each sample to the landmarks.

        Parameters
        ----------
        data : dict of name → table, MuData or AnnData
            The samples, with any of the other views. The view itself may be there; it is not used.
        view : str or None
            The view to predict; None is the only output of the model.
        return_std : bool
            Return standard deviations too, of real, positive and count views.
        out : path or None
            An ``.npy`` or Parquet file to which the table is written, some samples after the
            others, so that no more of them are in memory; a file that is there is replaced.

        Returns
        -------
        mean : array or DataFrame (n, D)
            The prediction; labels are (n,), or a Series. With ``out``, the path of the file.
        std : array or DataFrame (n, D)
            Only with ``return_std``: noise and all uncertainty of z and w.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> z = np.random.default_rng(0).normal(size=(50, 1))
        >>> model = kofa.FactorModel().fit({"x": z * [1.0, 2.0], "y": -z})
        >>> model.predict({"x": [[1.0, 2.0], [2.0, 4.0]]}, "y").round(1)
        array([[-1.],
               [-2.]])
        """
        deliver = self._delivery(out, return_std=return_std)
        return answers.predict(self._fitted, data, view, return_std, deliver)

    def predict_proba(
        self, data: Data, view: str | None = None, out: str | PathLike[str] | None = None
    ) -> Any:
        """Probabilities of a binary or categorical view of new samples from any other views.

        All uncertainty of z and w is integrated out.

        Parameters
        ----------
        data : dict of name → table, MuData or AnnData
            The samples, with any of the other views.
        view : str or None
            The view to predict; None is the only output of the model.
        out : path or None
            An ``.npy`` or Parquet file to which the table is written, some samples after the
            others, so that no more of them are in memory; a file that is there is replaced.

        Returns
        -------
        array, DataFrame, or the path ``out``
            (n, D) probabilities of a one for each column of a binary view; (n, C) for a categorical
            one, the classes in the order of ``classes_[view]``.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> x = np.random.default_rng(0).normal(size=(40, 1))
        >>> views = {"x": kofa.Real(), "sign": kofa.Categorical()}
        >>> model = kofa.FactorModel(views, outputs=["sign"])
        >>> model = model.fit({"x": x, "sign": np.where(x[:, 0] > 0, "plus", "minus")})
        >>> model.classes_["sign"].tolist()
        ['minus', 'plus']
        >>> model.predict_proba({"x": [[2.0], [-2.0]]}).round(1)
        array([[0., 1.],
               [1., 0.]])
        """
        return answers.predict_proba(self._fitted, data, view, self._delivery(out))

    def predict_quantiles(
        self, data: Data, view: str | None = None, quantiles: Sequence[float] = (0.05, 0.95)
    ) -> list[Any]:
        """Values that a view of new samples does not exceed with the given probabilities.

        Parameters
        ----------
        data : dict of name → table, MuData or AnnData
            The samples, with any of the other views. If the view itself is there, its single holes
            follow from its other columns too, as in `impute`, and all else from the other views;
            where there are none, everything follows from the view itself.
        view : str or None
            The view to predict; None is the only output of the model.
        quantiles : sequence of float
            Probabilities between 0 and 1. The default are the ends of intervals of 90 %.

        Returns
        -------
        list of arrays or DataFrames (n, D)
            One for each quantile. Those of counts are whole numbers.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(200, 1))
        >>> views = {"x": kofa.Real(), "y": kofa.Real()}
        >>> model = kofa.FactorModel(views, outputs=["y"])
        >>> model = model.fit({"x": x, "y": x + rng.normal(size=(200, 1))})
        >>> low, high = model.predict_quantiles({"x": [[0.0]]}, "y", [0.05, 0.95])
        >>> bool(low[0, 0] < -1.0) and bool(high[0, 0] > 1.0)
        True
        >>> x = rng.normal(size=(200, 1)) + 0.1 * rng.normal(size=(200, 3))
        >>> model = kofa.FactorModel().fit({"x": x})
        >>> low, high = model.predict_quantiles({"x": [[2.0, np.nan, 2.0]]}, "x")
        >>> bool(1.5 < low[0, 1] < 2.0 < high[0, 1] < 2.5)
        True
        """
        return answers.predict_quantiles(self._fitted, data, view, quantiles)

    def reconstruct(
        self,
        data: Data,
        view: str | None = None,
        return_std: bool = False,
        proba: bool = False,
        out: str | PathLike[str] | None = None,
    ) -> Any:
        """What the factors of the samples, from all views in `data`, say about each view.

        Parameters
        ----------
        data : dict of name → table, MuData or AnnData
            The samples, with any of the views.
        view : str or None
            One view; None is all.
        return_std : bool
            Return standard deviations too, in a second table, or a second dict of tables.
        proba : bool
            Of binary and categorical views, what `predict_proba` would return, such as the
            probabilities of entries that are missing in the view itself.
        out : path or None
            An ``.npy`` or Parquet file to which the table of a named `view` is written, some
            samples after the others, so that no more of them are in memory; a file that is there is
            replaced.

        Returns
        -------
        dict of name → array or DataFrame (n, D)
            What `predict` would return of each view, or that alone for a named `view`. With
            ``out``, the path of the file.
        std : dict of name → array or DataFrame (n, D)
            Only with ``return_std``: ``mean, std = model.reconstruct(…)``, as of `predict`. With
            ``proba`` it has no views that have probabilities.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> z = np.random.default_rng(0).normal(size=(50, 1))
        >>> model = kofa.FactorModel().fit({"x": z * [1.0, 2.0], "y": -z})
        >>> back = model.reconstruct({"x": [[1.0, np.nan]]})
        >>> back["x"].round(1), back["y"].round(1)
        (array([[1., 2.]]), array([[-1.]]))
        """
        deliver = self._delivery(out, return_std=return_std, **{"view=None": view is None})
        return answers.reconstruct(self._fitted, data, view, return_std, proba, deliver)

    def impute(self, data: Data) -> dict[str, Any]:
        """The tables with their holes filled, for all samples of all tables.

        Observed values are returned as they are, in the types they came in where these can hold
        the result. A count is filled with its median, a label with the likeliest class. A
        kernelized view explains similarities, not columns: its holes stay, with a warning.

        Parameters
        ----------
        data : dict of name → table, MuData or AnnData
            The tables, with any of the views.

        Returns
        -------
        dict of name → table (n, D)
            A table for each view of the model, with a row for each sample of any table.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> z = np.random.default_rng(0).normal(size=(50, 1))
        >>> model = kofa.FactorModel().fit({"x": z * [1.0, 2.0], "y": -z})
        >>> model.impute({"x": [[1.0, np.nan]], "y": [[-1.0]]})["x"].round(1)
        array([[1., 2.]])
        """
        return answers.impute(self._fitted, data)

    def score(self, data: Data, y: None = None) -> float:  # noqa: ARG002
        """Mean over samples of a lower bound on the log-density of what is observed of them.

        Parameters
        ----------
        data : dict of name → table, MuData or AnnData
            The samples, with any of the views.
        y : None
            Not used; scikit-learn's searches pass it.

        Returns
        -------
        float
            The mean of `score_samples`; larger is better.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> x = np.random.default_rng(0).normal(size=(100, 1)) + np.zeros(3)
        >>> x += 0.1 * np.random.default_rng(1).normal(size=x.shape)
        >>> model = kofa.FactorModel().fit({"x": x})
        >>> model.score({"x": x}) > model.score({"x": x + [0.0, 5.0, 0.0]})
        True
        """
        scores = self.score_samples(data)
        if not len(scores):
            what = "expected at least one sample to score but got none"
            raise DataError(what, cure="pass tables with rows")
        return float(scores.mean())

    def score_samples(self, data: Data) -> Any:
        """For each sample, E log p(observed | z) − KL(q(z) ‖ prior), in the user's units.

        Parameters
        ----------
        data : dict of name → table, MuData or AnnData
            The samples, with any of the views.

        Returns
        -------
        array (n,), or Series by sample where these have names
            A lower bound on the log-density of each.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> x = np.random.default_rng(0).normal(size=(100, 1)) + np.zeros(3)
        >>> x += 0.1 * np.random.default_rng(1).normal(size=x.shape)
        >>> model = kofa.FactorModel().fit({"x": x})
        >>> int(model.score_samples({"x": [[1.0, 1.0, 1.0], [1.0, 5.0, 1.0]]}).argmin())
        1
        """
        given = answers.given(self._fitted, data)
        return scored(given.scores(), given.samples)
