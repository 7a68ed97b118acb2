"""`FactorModel`: declared, fitted, shown, saved; what it answers is in the classes above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from os import PathLike
from typing import Any, Self

from sklearn import get_config
from sklearn.base import BaseEstimator, clone

from kofa import omics
from kofa.checks import check_path, flag, with_hints
from kofa.errors import DeclarationError
from kofa.fitting import FactorFit, fit
from kofa.inference.run import Callback
from kofa.inspection.factor_methods import FactorTables
from kofa.inspection.feature_methods import FeatureTables
from kofa.inspection.notebook import as_html
from kofa.preparation.fitted import Fitted
from kofa.preparation.parameters import Parameters
from kofa.results import answers
from kofa.results.methods import Answers
from kofa.storage import checkpoint, model_file
from kofa.storage.row_file import Form, check_row_file, write_rows

Data = Any  # a dict of name → table, or a MuData or AnnData
# What other tools call our parameters.
_NAMES_ELSEWHERE = {
    "k": "n_factors",
    "n_components": "n_factors",
    "likelihoods": "views",
    "targets": "outputs",
    "n_iter": "max_iter",
    "iterations": "max_iter",
    "seed": "random_state",
    "verbose": "progress",
}


def cloned(model: Any) -> Any:
    """A copy that is not fitted, with the same engine: a client of a cluster cannot be copied."""
    given = model.get_params(deep=False)
    copies = {name: clone(one, safe=False) for name, one in given.items() if name != "engine"}
    copy = type(model)(**copies, engine=given["engine"])
    if hasattr(model, "_sklearn_output_config"):
        copy._sklearn_output_config = dict(model._sklearn_output_config)
    return copy


class FactorModel(Answers, FactorTables, FeatureTables, BaseEstimator):  # type: ignore[misc]
    """Bayesian factor analysis of several views of the same samples.

    One latent vector per sample explains all views. Each view is a table with holes; it is
    explained directly or through a kernel. The number of factors, shared and private, is found.

    Parameters
    ----------
    views : dict of name → view, or None
        What each table is, such as ``{"x": kofa.Real(kernel="rbf"), "y": kofa.Real()}``.
        None takes every table passed to fit as ``kofa.Real()``.
    n_factors : int or None
        The most factors allowed; those that explain nothing are removed. None: as many as the data
        support, at most 300, or fewer where thousands of columns have holes of their own (115 for
        5,000 of them, so that memory is bounded). With outputs it is the number of factors that
        are shown and that may carry the outputs: the best of all that the inputs have.
    outputs : list of str, or None
        Views to be predicted from the others. They get a prior that trusts strong directions
        of the inputs and one noise per column. Kernel widths "auto", ``relevance="learn"`` and
        the weights of kernels are learnt from them.
    n_init : int
        Number of starts: the first from the leading directions of the views, the others from
        these as a random third of the columns shows them; the highest bound wins.
    max_iter : int
        Most iterations of one start.
    tol : float or None
        Stop when the bound, or the outputs' part of it, grows by less than this per sample and
        iteration. None is 2e-4, or 1e-3 with outputs: predictions settle long before the
        faintest directions of a kernel.
    random_state : int, numpy Generator or None
        Seed of everything random. None is a fixed seed, unlike in scikit-learn: a fit that is
        repeated gives the same result.
    callback : callable or None
        Called with a `kofa.Iteration` after each iteration. Returning True ends the iterations:
        what follows from the factors is still found, and the model can be used. An exception, and
        Ctrl-C at any time until the end, ends the fit and leaves the model as it was before.
    checkpoint : path or None
        A file in which a long fit keeps where it stands; ``fit(data, resume=True)`` continues
        from it, to the same result.
    checkpoint_every : float
        Seconds between two writings of it, at least.
    progress : bool
        Show a progress bar of the iterations, and of what comes before and after them (needs the
        extra ``kofa[progress]``).
    engine : {"auto", "memory", "disk"}, or a distributed.Client
        Where the rows are during a fit. "memory": tables in files are read, and what inference
        sees of them is kept. "disk": all of it is computed anew, block by block, whenever a pass
        visits the rows, and the factors of the samples are in a temporary file. "auto": "disk"
        where a table is in a file, else "memory". Sparse tables are made dense block by block in
        any case. A client: the workers of its Dask cluster keep the rows and the factors of the
        samples (needs the extra ``kofa[dask]``). The result is the same but for the last digits.
    block_rows : "auto" or int
        How many rows are visited at a time.
    dtype : {"float64", "float32"}
        Of the rows of `Real` and `Positive` views during a fit, and of products with them. With
        "float32" these take half of the memory and of the time. All else, what is predicted
        too, is in double precision, and so are kernels that feed outputs. No noise is then taken
        for less than two millionths of the variance.
    n_jobs : int or None
        How many of `n_init` starts run side by side, by the workers of joblib: None is one after
        the other, or as `joblib.parallel_config` says; -1 is all cores. The result is the same.
        Not with a callback, a checkpoint or a Dask cluster as engine, for which starts follow
        each other.
    as_published : bool
        Fit the paper's own model, as a reference to compare with: outputs are views like any other
        and follow from the factors alone, and each of `n_init` starts is random. `sparse` of a
        view with a kernel, and ``relevance="learn"``, are found as in the paper. None of
        `n_factors` and `tol` is 100, and 1e-4 of the bound in some hundred iterations. The paper
        has ``n_init=10`` and ``max_iter=10_000``. See docs/method.md.

    Attributes
    ----------
    lower_bound_ : float
        The evidence lower bound. Of views that are neither `Real` nor `Positive` it has an
        expectation to second order once the likelihood is taken as less curved than its bound
        (ρ < 1 in docs/method.md): close to the bound, but not strictly below the evidence.
    lower_bounds_ : array
        The bound after each iteration.
    lower_bound_terms_ : dict of str → array
        The same, by named term.
    factors_changed_ : array of bool
        Which iterations have other factors than the one before, since weak ones were removed, or a
        trial with another number of them was taken: only there may the bound be lower. None in
        files of kofa 0.2.
    n_factors_ : int
        The number of factors that were found, or at most as many as were set.
    n_iter_, converged_ : int, bool
        The number of iterations, and whether the bound stood still before `max_iter` of them.
    n_predictive_ : int
        The number of factors on which the outputs depend: the first ones. The others are private
        to the inputs.
    kernels_ : dict of str → kernel
        The kernels with widths, relevances and the weights of mixtures as fit resolved them. A
        view with a list of kernels has one entry for each, such as ``x[RBF]``.
    classes_ : dict of str → array
        The classes of each categorical view, in the order of their probabilities.
    factor_names_ : list of str
        "factor1", "factor2", …, or as `rename_factors` named them. The first explains most: of
        the outputs where there are some.
    views_ : dict of str → fitted view
        What fit resolved of each view, in the order of the model. Stable of it: the names, as
        above, and ``views_[name].landmarks``, the rows in fit that a kernel compares with.
    posterior_ : dict of str → posterior of a view
        As inference left it, along its own factors, of which those that are shown are a rotation.
        Stable of it: ``weights.mean`` (D, K), on the scale of the model, and ``alpha.mean`` and
        ``tau.mean``, the mean precisions of the weights and of the noise. All else in `views_`
        and `posterior_` may change in any version.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(100, 2))
    >>> x = z @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(100, 6))
    >>> y = z @ rng.normal(size=(2, 4)) + 0.1 * rng.normal(size=(100, 4))
    >>> y[:50] = np.nan                                   # half of the samples lack this view
    >>> model = kofa.FactorModel().fit({"x": x, "y": y})
    >>> model.n_factors_
    2
    >>> model.predict({"x": x[:50]}, "y").shape
    (50, 4)
    >>> model.get_feature_names_out().tolist()
    ['factor1', 'factor2']
    >>> views = {"x": kofa.Real(kernel="linear"), "y": kofa.Real()}
    >>> paper = kofa.FactorModel(views, 2, outputs=["y"], as_published=True)
    >>> paper.fit({"x": x, "y": y}).predict({"x": x[:50]}).shape
    (50, 4)
    """

    @with_hints(_NAMES_ELSEWHERE)
    def __init__(
        self,
        views: Mapping[str, Any] | None = None,
        n_factors: int | None = None,
        *,
        outputs: Sequence[str] | None = None,
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float | None = None,
        random_state: Any = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
        progress: bool = False,
        engine: Any = "auto",
        block_rows: Any = "auto",
        dtype: str = "float64",
        n_jobs: int | None = None,
        as_published: bool = False,
    ) -> None:
        self.views = views
        self.n_factors = n_factors
        self.outputs = outputs
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.callback = callback
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.progress = progress
        self.engine = engine
        self.block_rows = block_rows
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.as_published = as_published

    def __sklearn_clone__(self) -> Self:
        copy: Self = cloned(self)
        return copy

    # ------------------------------------------------------------ fit

    def fit(
        self,
        data: Data,
        y: None = None,  # noqa: ARG002
        *,
        resume: bool = False,
        predict: str | Sequence[str] = (),
    ) -> Self:
        """Fit to several tables of the same samples.

        A MuData or AnnData is taken instead of a dict here and in all other methods: see
        `kofa.omics.from_mudata`. This one, and `fit_transform`, also write what they found into
        it: the factors to ``.obsm["X_kofa"]``, the weights to ``.varm["kofa"]`` of each modality,
        and a summary to ``.uns["kofa"]``.

        Parameters
        ----------
        data : dict of name → table, MuData or AnnData
            Tables (n, D): arrays are matched by position, DataFrames by index, and may have
            different samples in another order. NaN is missing.
        y : None
            Not used; scikit-learn's pipelines pass it.
        resume : bool
            Continue a fit that was broken off from its `checkpoint`, if there is one.
        predict : name, or list of names
            Views that are going to be predicted. How outputs follow from the other views is worked
            out in fit; that of any other view when it is first asked for, if it is not named here.

        Returns
        -------
        FactorModel
            The model itself.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> z = np.random.default_rng(0).normal(size=(50, 1))
        >>> model = kofa.FactorModel().fit({"x": z * [1.0, 2.0], "y": -z})
        >>> model.n_factors_
        1
        """
        found = self._fit(data, resume, predict)
        if omics.is_omics(data):
            omics.annotate(data, self, found.factors())
        return self

    def fit_transform(
        self,
        data: Data,
        y: None = None,  # noqa: ARG002
        *,
        resume: bool = False,
    ) -> Any:
        """Fit as `fit` does, and return the factors of the samples as `transform` would.

        Parameters
        ----------
        data : dict of name → table, MuData or AnnData
            As for `fit`.
        y : None
            Not used; scikit-learn's pipelines pass it.
        resume : bool
            As for `fit`.

        Returns
        -------
        array or DataFrame (n, K)
            The posterior means of the factors of all samples in `data`.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> z = np.random.default_rng(0).normal(size=(50, 1))
        >>> kofa.FactorModel().fit_transform({"x": z * [1.0, 2.0], "y": -z}).shape
        (50, 1)
        """
        factors = self._fit(data, resume).factors()
        if omics.is_omics(data):
            omics.annotate(data, self, factors)
        return self._in_container(factors)

    def _fit(
        self, data: Data, resume: bool = False, predict: Any = (), of_slips: bool = True
    ) -> FactorFit:
        """`of_slips`: whether to warn of tables that look like a mistake."""
        keep = partial(checkpoint.journal, resume=resume)
        found = fit(self._parameters, data, keep, predict, of_slips)
        self._remember(found.fitted)
        found.warn(self._parameters)
        return found

    @property
    def _parameters(self) -> Parameters:
        return Parameters(**self.get_params(deep=False))

    def _remember(self, found: Fitted) -> None:
        self._found = found
        self.views_ = found.views
        self.posterior_ = found.posterior
        self.kernels_ = found.kernels
        self.classes_ = found.classes
        self.n_factors_ = found.n_factors
        self.n_predictive_ = found.basis.n_predictive
        self.factor_names_ = found.factor_names
        self.n_iter_ = len(found.bounds)
        self.converged_ = found.converged
        self.lower_bound_ = float(found.bounds[-1])
        self.lower_bounds_ = found.bounds
        self.lower_bound_terms_ = found.terms
        self.factors_changed_ = found.factors_changed

    # ------------------------------------------------------------ names

    def rename_factors(self, names: Mapping[str, str] | Sequence[str]) -> Self:
        """Give factors names of your own, which all tables, plots and files then have.

        Parameters
        ----------
        names : dict of old → new, or list of str
            A list names the first factors.

        Returns
        -------
        FactorModel
            The model itself.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> z = np.random.default_rng(0).normal(size=(50, 1))
        >>> model = kofa.FactorModel().fit({"x": z * [1.0, 2.0, 3.0]})
        >>> model.rename_factors({"factor1": "size"}).factor_names_
        ['size']
        """
        self._remember(self._fitted.renamed(names))
        return self

    def _delivery(self, out: str | PathLike[str] | None, **others: bool) -> answers.Deliver:
        """Who gets an answer: the caller, or a file, which holds one table."""
        if out is None:
            return answers.at_once
        check_row_file(out)
        for option, given in others.items():
            if flag(option, given):
                cure = f"leave out {option}" if "=" not in option else "name the view"
                raise DeclarationError("a file holds one table", option="out", cure=cure)
        return lambda found, answer, classes: write_rows(
            out,
            Form(found.samples, answer(found.of_no_sample()), classes),
            map(answer, found.parts()),
        )

    # ------------------------------------------------------------ notebooks

    def _repr_html_(self) -> str | None:
        """The views and what factors explain of them, unless scikit-learn is to show text."""
        if get_config()["display"] != "diagram":
            return None
        return as_html(self._parameters, getattr(self, "_found", None))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        html = self._repr_html_()
        return {"text/plain": repr(self)} | ({} if html is None else {"text/html": html})

    # ------------------------------------------------------------ files

    def report(
        self,
        path: str | PathLike[str],
        data: Data | None = None,
        *,
        covariates: Any = None,
        sets: Any = None,
        evaluation: Any = None,
        image_shape: Any = None,
        title: str | None = None,
    ) -> None:
        """Write what the model found as one HTML file, for people without Python.

        It opens from the disk by a double click, and asks the network for nothing. Needs the extra
        ``kofa[report]``.

        Parameters
        ----------
        path : path
            A file that is there is replaced.
        data : dict of name → table, MuData or AnnData, or None
            The samples to show, mostly those of the fit. With them come predictions, and colours by
            columns of views. None shows the samples that the model keeps of its fit.
        covariates : DataFrame, Series, dict or array, or None
            What else is known of the samples, as for `associate`.
        sets : dict of name → features, DataFrame, or the path of a GMT file, or None
            Feature sets, as for `enrich`.
        evaluation : DataFrame, path, or pair of DataFrames, or None
            Scores of held-out samples from `kofa.cross_validate`, with ``return_predictions`` also
            their predictions; or the file that ``kofa evaluate`` wrote. None tells how well the
            outputs in `data` are predicted, and says so.
        image_shape : pair, or dict of name → pair, or None
            Rows and columns of views whose features are pixels.
        title : str or None
            What stands on top; None names the views.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> x = np.random.default_rng(0).normal(size=(50, 3))
        >>> path = Path(mkdtemp(), "report.html")
        >>> kofa.FactorModel().fit({"x": x}).report(path)
        >>> path.read_text(encoding="utf-8")[:15]
        '<!doctype html>'
        """
        # By name, because reports are made of what is below a model.
        page = import_module("kofa.report.page")
        page.write_report(
            self, path, data=data, covariates=covariates, sets=sets, evaluation=evaluation,
            image_shape=image_shape, title=title,
        )  # fmt: skip

    def save(self, path: str | PathLike[str], samples: bool = True, rows: bool = True) -> None:
        """Write the model to one file, from which `kofa.load` reads it back to the last bit.

        The file holds no code and is never half-written. Neither `callback` and `checkpoint` nor a
        `random_state` other than a seed are kept; kernels of your own cannot be.

        Parameters
        ----------
        path : str or path
            The file, which is replaced if it is there.
        samples : bool
            Keep the names and the factors of the samples of the fit, which tables and plots take
            where no data are given.
        rows : bool
            Keep the rows of the fit, from which a view is predicted that was not asked for yet.
            Without them the model answers what it was asked before: outputs, views named in
            ``fit(..., predict=…)``, and those that were predicted. Rows that a kernel compares with
            are part of the model, and always kept.

        Examples
        --------
        >>> import numpy as np, kofa
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> x = np.random.default_rng(0).normal(size=(50, 3))
        >>> model = kofa.FactorModel().fit({"x": x})
        >>> path = Path(mkdtemp(), "model.kofa")
        >>> model.save(path)
        >>> bool((kofa.load(path).transform({"x": x}) == model.transform({"x": x})).all())
        True
        """
        check_path(path)
        keeps = flag("samples", samples)
        with_rows = flag("rows", rows)
        model_file.write_model(path, self._parameters, self._fitted, keeps, with_rows)


def load(path: str | PathLike[str]) -> FactorModel:
    """Read a model that `FactorModel.save` wrote; it predicts to the last bit what it did.

    Nothing in the file is run or unpickled, so that a file of unknown origin can do no harm: what
    is not a complete and consistent model of kofa is refused with a `kofa.FileError`.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    FactorModel
        The fitted model.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp(), "model.kofa")
    >>> x = np.random.default_rng(0).normal(size=(50, 3))
    >>> kofa.FactorModel(random_state=7).fit({"x": x}).save(path)
    >>> kofa.load(path)
    FactorModel(random_state=7)
    """
    check_path(path)
    parameters, found = model_file.read_model(path)
    model = FactorModel(**vars(parameters))
    model._remember(found)
    return model
