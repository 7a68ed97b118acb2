"""`FactorModel`: fit, transform, predict, reconstruct, impute, score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from kofa import omics, tuning
from kofa.checks import (
    check_number,
    check_path,
    flag,
    is_among,
    is_number,
    is_whole,
    nearest,
    shown,
    with_hints,
)
from kofa.data.reading import read_data
from kofa.data.returning import decoded, labelled, named, restored, scored
from kofa.data.samples import align
from kofa.data.tables import Samples
from kofa.engines.memory import InMemory
from kofa.errors import DataError, DeclarationError, warn
from kofa.inference.calibration import Calibration, calibrate
from kofa.inference.fit import best_of
from kofa.inference.observations import Rows
from kofa.inference.posterior import State, ViewPosterior
from kofa.inference.read_out import read_out
from kofa.inference.regression import ReadOut
from kofa.inference.role import Role
from kofa.inference.run import Callback, Iteration, Journal, Run, Settings
from kofa.inference.start import energy
from kofa.kernels.kernel_map import KernelMap
from kofa.likelihoods.gaussian import Gaussian
from kofa.linalg import Array, BoolArray
from kofa.preparation.fit_data import FitData, warn_of_slips
from kofa.preparation.prepare import (
    FittedView,
    fit_views,
    learns_by_reconstruction,
    roles,
    with_ard_landmarks,
    with_reconstructed_relevance,
)
from kofa.progress import Progress
from kofa.results import inspection
from kofa.results.prediction import Asked, Prediction
from kofa.storage import model_file
from kofa.storage.archive import naming_file
from kofa.storage.checkpoint import Checkpoint, check_can_be_kept, key_of_fit
from kofa.views import View, check_outputs, check_views

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


class FactorModel(BaseEstimator):  # type: ignore[misc]
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
        support, at most 300.
    outputs : list of str, or None
        Views to be predicted from the others. They get a prior that trusts strong directions
        of the inputs and one noise per column. Kernel widths "auto", ``relevance="learn"`` and
        the weights of kernels are learnt from them.
    n_init : int
        Number of starts: the first spectral, others random; the highest bound wins.
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
        Called with a `kofa.Iteration` after each iteration; stop early by returning True.
    checkpoint : path or None
        A file in which a long fit keeps where it stands; ``fit(data, resume=True)`` continues
        from it, to the same result.
    checkpoint_every : float
        Seconds between two writings of it, at least.
    progress : bool
        Show a progress bar (needs the extra ``kofa[progress]``).

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
    n_factors_, n_iter_, converged_ : int, int, bool
    kernels_ : dict of str → kernel
        The kernels with widths, relevances and the weights of mixtures as fit resolved them. A
        view with a list of kernels has one entry for each, such as ``x[RBF]``.
    classes_ : dict of str → array
        The classes of each categorical view, in the order of their probabilities.
    factor_names_ : list of str
        "factor1", "factor2", …, the first explains most.
    views_ : dict of str → fitted view
        What fit resolved of each view, in the order of the model. Stable of it: the names, as
        above, and ``views_[name].landmarks``, the rows in fit that a kernel compares with.
    posterior_ : tuple of posteriors, one for each view in the same order
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

    # ------------------------------------------------------------ fit

    def fit(
        self,
        data: Data,
        y: None = None,  # noqa: ARG002
        *,
        resume: bool = False,
    ) -> Self:
        """Fit to a dict of name → table (arrays by position, DataFrames by index).

        A MuData or AnnData is taken instead of a dict here and in all other methods: see
        `kofa.omics.from_mudata`. This one, and `fit_transform`, also write what they found into
        it: the factors to ``.obsm["X_kofa"]``, the weights to ``.varm["kofa"]`` of each modality,
        and a summary to ``.uns["kofa"]``.

        With ``resume`` a fit that was broken off continues from its `checkpoint`, if there is one.
        """
        found = self._fit(data, resume)
        if omics.is_omics(data):
            omics.annotate(data, self, self._factors(*found))
        return self

    def fit_transform(
        self,
        data: Data,
        y: None = None,  # noqa: ARG002
        *,
        resume: bool = False,
    ) -> Any:
        """Fit as `fit` does, and return the factors of the samples as `transform` would."""
        factors = self._factors(*self._fit(data, resume))
        if omics.is_omics(data):
            omics.annotate(data, self, factors)
        return factors

    def _factors(self, samples: Samples, seen: BoolArray, engine: InMemory) -> Any:
        """The factors of the samples of the fit."""
        Z = np.zeros((samples.n, self.n_factors_))
        Z[seen], _ = engine.project(self.posterior_)
        return labelled(Z, samples, self.factor_names_)

    def _fit(
        self, data: Data, resume: bool = False, of_slips: bool = True
    ) -> tuple[Samples, BoolArray, InMemory]:
        """Fit; return the samples, which of them have a value, and the engine that holds these.

        `of_slips`: whether to warn of tables that look like a mistake.
        """
        data = omics.tables(data, self.views)
        views = self._declared(data)
        rng = _generator(self.random_state)
        fit_data = FitData.read(views, data, self.outputs)
        if of_slips:
            warn_of_slips(fit_data, declared=self.views is not None)
        samples = fit_data.samples
        # Samples without any observation say nothing: they get the prior.
        seen: BoolArray = np.any([fit_data.seen(name) for name in fit_data.tables], axis=0)
        with self._journal(fit_data, rng, resume) as journal:
            fitted = journal.once(partial(fit_views, fit_data, rng), rng)
            infer = partial(self._infer, fit_data, seen=seen, rng=rng, journal=journal)
            engine, run, treated = infer(fitted)
            for _ in range(tuning.PUBLISHED_ROUNDS if learns_by_reconstruction(fit_data) else 0):
                fitted = with_reconstructed_relevance(fit_data, fitted, run.state, run.Z, seen)
                engine, run, treated = infer(fitted)
            if any(view.sparse == "ard" for view in fit_data.views.values()):
                fitted = with_ard_landmarks(fit_data, fitted, run.state)
                engine, run, treated = infer(fitted)
        fitted = _with_energies(fitted, run.state, treated)
        fitted = _calibrated(fitted, engine, run.state, rng)
        fitted = _with_holes(fitted, run.state, fit_data, rng)
        readouts = self._read_outs(fitted, engine, treated, run.state, rng)
        self._remember(fitted, run.state, readouts, run.converged, *run.path)
        self._warn_unless_converged(run)
        self._warn_of_ceiling(run)
        return samples, seen, engine

    def _journal(self, fit_data: FitData, rng: np.random.Generator, resume: bool) -> Journal:
        """Who remembers where the fit stands."""
        if self.checkpoint is None:
            if flag("resume", resume):
                raise DeclarationError("Expected checkpoint to name the file to resume from.")
            return Journal()
        check_can_be_kept(fit_data)
        decisive = ("views", "outputs", "n_factors", "n_init", "tol")
        settings = [getattr(self, option) for option in decisive]
        key = key_of_fit(settings, rng.bit_generator.state, dict(fit_data.tables))
        return Checkpoint(self.checkpoint, float(self.checkpoint_every), key, resume)

    def _remember(
        self,
        fitted: dict[str, FittedView],
        state: State,
        readouts: dict[str, ReadOut],
        converged: bool,
        bounds: Array,
        terms: dict[str, Array],
    ) -> None:
        self.views_ = fitted
        self.posterior_: State = state
        self.readouts_ = readouts
        self.kernels_ = {
            n: v.encoder.kernel for n, v in fitted.items() if isinstance(v.encoder, KernelMap)
        }
        self.classes_ = {n: v.classes for n, v in fitted.items() if v.classes is not None}
        self.n_factors_ = state[0].weights.mean.shape[1]
        self.factor_names_ = [f"factor{k + 1}" for k in range(self.n_factors_)]
        self.n_iter_ = len(bounds)
        self.converged_ = converged
        self.lower_bound_ = float(bounds[-1])
        self.lower_bounds_ = bounds
        self.lower_bound_terms_ = terms

    def _declared(self, data: Any) -> dict[str, View]:
        """The views, checked with all other parameters; the constructor only stores."""
        check_number("n_factors", self.n_factors, [None], whole=True, least=1)
        check_number("n_init", self.n_init, whole=True, least=1)
        check_number("max_iter", self.max_iter, whole=True, least=1)
        check_number("tol", self.tol, [None], least=0)
        check_number("checkpoint_every", self.checkpoint_every, least=0)
        named = isinstance(self.checkpoint, str | PathLike)
        if self.checkpoint is not None and not named:
            raise DeclarationError(
                f"Expected checkpoint to be a path or None but got {shown(self.checkpoint)}."
            )
        if self.callback is not None and not callable(self.callback):
            raise DeclarationError(f"Expected a callable callback but got {shown(self.callback)}.")
        flag("progress", self.progress)
        views = check_views(self.views, data)
        check_outputs(self.outputs, views)
        return views

    def _infer(
        self,
        fit_data: FitData,
        fitted: Mapping[str, FittedView],
        *,
        seen: BoolArray,
        rng: np.random.Generator,
        journal: Journal,
    ) -> tuple[InMemory, Run, list[Role]]:
        """Encode the samples that have a value, and find their factors."""
        observed = [
            view.observe(fit_data.samples.spread(fit_data.tables[name])[seen])
            for name, view in fitted.items()
        ]
        engine = InMemory(Rows.stack(observed))
        treated = roles(fit_data, fitted)
        settings = self._settings(treated)
        with Progress(self.progress, settings.max_iter) as bar:

            def notify(iteration: Iteration) -> bool:
                bar.show(iteration)
                return bool(self.callback is not None and self.callback(iteration))

            n_init = int(self.n_init)
            run = best_of(engine, treated, settings, n_init, rng, notify, journal)
        return engine, run, treated

    def _settings(self, treated: Sequence[Role]) -> Settings:
        """What was asked for, or what serves outputs best, or tables without outputs."""
        exact = any(role.exact for role in treated)
        n_factors, tol = (
            (tuning.MOST_KERNEL_FACTORS, tuning.TOL_WITH_OUTPUTS)
            if exact
            else (tuning.MOST_FACTORS, tuning.TOL)
        )
        return Settings(
            n_factors=int(n_factors if self.n_factors is None else self.n_factors),
            max_iter=int(self.max_iter),
            tol=float(tol if self.tol is None else self.tol),
            rotate=not exact,  # measured, rotation gains nothing there
            free=self.n_factors is None and not exact,
        )

    def _read_outs(
        self,
        fitted: Mapping[str, FittedView],
        engine: InMemory,
        treated: Sequence[Role],
        state: State,
        rng: np.random.Generator,
    ) -> dict[str, ReadOut]:
        """How each input that is explained directly follows from the others."""
        names, found = list(fitted), {}
        inputs = [m for m, role in enumerate(treated) if not role.output]
        for m in inputs:
            view = fitted[names[m]]
            others = [i for i in inputs if fitted[names[i]].source != view.source]
            if view.likelihood is None or not others:
                continue
            q = read_out(engine, treated, state, m, others, self._settings(treated), rng)
            places = [*others, m]
            calibrated = Calibration()
            if view.likelihood.has("log_predictive"):
                part = engine.part(places)
                calibrated = calibrate(part, q, len(others), range(len(others)), rng)
            found[names[m]] = ReadOut(tuple(names[i] for i in places), q, *calibrated)
        return found

    def _warn_of_ceiling(self, run: Run) -> None:
        if run.hit_ceiling:
            cure = "leave it out to have the number found, or raise it"
            if self.n_factors is None:
                cure = f"set it to more than {self.n_factors_}"
            warn(
                f"All {self.n_factors_} factors are in use, and the bound would be higher with "
                f"more. n_factors limits their number: {cure}."
            )

    def _warn_unless_converged(self, run: Run) -> None:
        if not (run.converged or run.stopped):
            growth = float(np.diff(self.lower_bounds_[-2:]).sum())  # negative with fewer factors
            by = f" (by {growth:.3g} in the last iteration)" if growth > 0 else ""
            warn(
                f"The bound was still growing{by} after "
                f"max_iter={self.max_iter} iterations. Increase max_iter, or tol if the factors "
                f"no longer change.",
                ConvergenceWarning,
            )

    # ------------------------------------------------------------ use

    def transform(self, data: Data, return_cov: bool = False) -> Any:
        """Factors of new samples from any subset of the views.

        Returns
        -------
        Z : array or DataFrame (n, K), the posterior means
        covariance : array (n, K, K), only with ``return_cov``
        """
        given = self._given(data)
        Z = np.zeros((given.samples.n, self.n_factors_))
        wanted = flag("return_cov", return_cov)
        covariance = np.empty((len(Z), *Z.shape[1:] * 2)) if wanted else None
        done = 0
        for q, _ in given.project():
            where = slice(done, done + len(q.mean))
            Z[where] = q.mean
            if covariance is not None:
                covariance[where] = q.covariance[q.patterns.label]
            done = where.stop
        factors = labelled(Z, given.samples, self.factor_names_)
        return factors if covariance is None else (factors, covariance)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002
        """The names of the columns of `transform`: factor1, factor2, …

        `input_features` is there for scikit-learn's pipelines, and not used: factors are named
        the same whatever the columns of the views are called.
        """
        check_is_fitted(self)
        return np.array(self.factor_names_, dtype=object)

    def predict(self, data: Data, view: str | None = None, return_std: bool = False) -> Any:
        """A view of new samples from any of the others, in the user's units.

        Real, positive and count views give the mean; a binary view gives zeros and ones, a
        categorical view labels. The view itself may be in `data`; it is not used. For a
        kernelized view the prediction is the centred similarity of each sample to the landmarks.
        Without `view` it is the only output of the model.

        Returns
        -------
        mean : array or DataFrame (n, D); labels are (n,), or a Series
        std : likewise, only with ``return_std``: noise and all uncertainty of z and w
        """
        view = self._asked_for(view)
        given = self._others(data, view)
        found = given.of_view(view, self._prediction_of(view, return_std))
        return self._returned(view, found, given.samples, proba=False)

    def predict_proba(self, data: Data, view: str | None = None) -> Any:
        """Probabilities of a binary or categorical view of new samples from any other views.

        All uncertainty of z and w is integrated out. Without `view` it is the only output.

        Returns
        -------
        array or DataFrame : (n, D) probabilities of a one for each column of a binary view;
            (n, C) for a categorical one, the classes in the order of ``classes_[view]``
        """
        view = self._asked_for(view)
        given = self._others(data, view)
        found = given.of_view(view, self._proba_of(view))
        return self._returned(view, found, given.samples, proba=True)

    def predict_quantiles(
        self, data: Data, view: str | None = None, quantiles: Sequence[float] = (0.05, 0.95)
    ) -> list[Any]:
        """Values that a view of new samples does not exceed with the given probabilities.

        Returns one array or DataFrame (n, D) for each quantile, so that
        ``low, high = model.predict_quantiles(data, "y", [0.05, 0.95])`` are 90 % intervals, which
        are also the default. Without `view` it is the only output.
        """
        view = self._asked_for(view)
        wanted = _probabilities(quantiles, view)
        given, fitted = self._others(data, view), self.views_[view]
        quantile = _explaining(view, fitted, "quantiles", fitted.layer.quantile)
        tables = given.of_view(view, Asked([partial(quantile, p=p) for p in wanted]))
        return [labelled(table, given.samples, fitted.outputs) for table in tables]

    def reconstruct(
        self,
        data: Data,
        view: str | None = None,
        return_std: bool = False,
        proba: bool = False,
    ) -> Any:
        """What the factors of the samples, from all views in `data`, say about each view.

        Returns a dict of name → what `predict` would return, or that alone for a named `view`.
        With ``proba`` binary and categorical views give what `predict_proba` would, such as the
        probabilities of entries that are missing in the view itself.
        """
        given, proba = self._given(data), flag("proba", proba)
        if view is not None:
            self._check_view(view)
        wanted = list(self.views_) if view is None else [view]
        probable = [n for n in wanted if n == view or self.views_[n].layer.has("probability")]
        asked = {
            name: self._proba_of(name)
            if proba and name in probable
            else self._prediction_of(name, return_std)
            for name in wanted
        }
        found = {
            name: self._returned(name, values, given.samples, proba and name in probable)
            for name, values in given.of_views(asked).items()
        }
        return found if view is None else found[view]

    def weights(self, view: str) -> Any:
        """⟨W⟩ of a view (D, K): what one unit of each factor adds.

        In the user's units for real views, to the logarithm for positive ones, to the η of the
        likelihood for the others.
        """
        fitted, mean = self._fitted(view), self._posterior(view).weights.mean
        if isinstance(fitted.layer, Gaussian):
            mean = fitted.layer.scaling.decode_std(fitted.layer.of_all_columns(mean.T)).T
        rows = None if fitted.inputs is None else fitted.outputs
        return named(mean, rows, self.factor_names_)

    def impute(self, data: Data) -> dict[str, Any]:
        """The tables with their holes filled, for all samples of all tables.

        Observed values are returned as they are, in the types they came in where these can hold
        the result. A count is filled with its median, a label with the likeliest class. A
        kernelized view explains similarities, not columns: its holes stay.
        """
        given = self._given(data)
        tables = {name: given.samples.spread(table) for name, table in given.tables.items()}
        asked = {
            name: Asked([likelihood.fill])
            for name, values in tables.items()
            if (likelihood := self.views_[name].likelihood) is not None and np.isnan(values).any()
        }
        for name, (prediction,) in given.of_views(asked).items():
            holes = np.isnan(tables[name])
            tables[name][holes] = prediction[holes]
        return {
            self.views_[name].source: restored(values, given.tables[name], given.samples)
            for name, values in tables.items()
        }

    def score(self, data: Data, y: None = None) -> float:  # noqa: ARG002
        """Mean over samples of a lower bound on the log-density of what is observed of them."""
        scores = self.score_samples(data)
        if not len(scores):
            raise DataError("Expected at least one sample to score but got none.")
        return float(scores.mean())

    def score_samples(self, data: Data) -> Any:
        """For each sample, E log p(observed | z) − KL(q(z) ‖ prior), in the user's units.

        A Series by sample where these have names.
        """
        given = self._given(data)
        return scored(given.scores(), given.samples)

    # ------------------------------------------------------------ what was found

    def relevance_vectors(self, view: str) -> Any:
        """The samples that a sparse kernelized view compares others with, as a DataFrame.

        Columns: ``sample``; ``relevance``, what the log-evidence of the outputs loses without it,
        or would gain with it if it was not kept (without outputs, the variance of the kernel that
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
        fitted = self._fitted(view)
        return inspection.relevance_vectors(view, fitted)

    def feature_relevance(self, view: str) -> Any:
        """How much each feature of a view matters, as a DataFrame, the most relevant first.

        For a kernel with ``relevance="learn"``: λ, relative to a mean of one where the width was
        free. For a sparse view without a kernel: the signal of each column in units of its noise.
        """
        return inspection.feature_relevance(view, self._fitted(view), self._posterior(view))

    def selected_features(
        self, view: str, top: int | None = None, threshold: float | None = None
    ) -> list[Any]:
        """Names (or positions) of the features of a view that matter, in the order of the columns.

        The `top` most relevant, or those with a relevance of at least `threshold`; by default all
        that were not switched off: λ above a hundredth of the largest, or columns with more
        signal than chance gives the largest of as many without.

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
        fitted = self._fitted(view)
        if top is not None and not is_whole(top, 1):
            raise DataError(
                f"View {view!r}: expected top to be a whole number of at least 1 "
                f"but got {shown(top)}."
            )
        if threshold is not None and not is_number(threshold):
            raise DataError(
                f"View {view!r}: expected threshold to be a number but got {shown(threshold)}."
            )
        relevance = inspection.relevances(view, fitted, self._posterior(view))
        off = inspection.off_below(fitted, self._posterior(view), relevance)
        chosen = inspection.selected(relevance, top, off if threshold is None else threshold)
        return [f for f, on in zip(inspection.feature_names(fitted), chosen, strict=True) if on]

    def kernel_weights(self, output: str | None = None) -> Any:
        """The share of each kernel, as a DataFrame with columns ``view``, ``kernel``, ``weight``.

        Without `output`, the share in the posterior precision of the factors; with the name of an
        output view, the share in the variance of its predictions. Views without a kernel count as
        one. Shares add up to one.
        """
        check_is_fitted(self)
        if output is not None and not self._fitted(output).role.output:
            raise DataError(f"View {output!r} is not an output of this model.")
        state = dict(zip(self.views_, self.posterior_, strict=True))
        return inspection.kernel_weights(self.views_, state, output)

    # ------------------------------------------------------------ files

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to one file, from which `kofa.load` reads it back to the last bit.

        The file holds no code and is never half-written. Neither `callback` and `checkpoint` nor a
        `random_state` other than a seed are kept; kernels of your own cannot be.

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
        check_is_fitted(self)
        check_path(path)
        model_file.check_kernels(self.kernels_)
        held = {
            "parameters": self._saved_parameters(),
            "views": self.views_,
            "posterior": self.posterior_,
            "readouts": self.readouts_,
            "converged": bool(self.converged_),
            "path": model_file.bounds_as_table(self.lower_bounds_, self.lower_bound_terms_),
        }
        about = {
            "views": {name: f"{view!r:.2000}" for name, view in (self.views or {}).items()},
            "outputs": [name for name, view in self.views_.items() if view.role.output],
            "n_factors": self.n_factors_,
        }
        model_file.write_object(path, "model", held, about, check=_from_parts)

    def _saved_parameters(self) -> dict[str, Any]:
        saved: dict[str, Any] = self.get_params(deep=False)
        saved |= {"callback": None, "checkpoint": None}
        if not isinstance(self.random_state, int | np.integer):
            saved["random_state"] = None
        saved["views"] = None if self.views is None else dict(self.views)
        saved["outputs"] = None if self.outputs is None else list(self.outputs)
        return saved

    # ------------------------------------------------------------ machinery of use

    def _fitted(self, view: str) -> FittedView:
        check_is_fitted(self)
        self._check_view(view)
        return self.views_[view]

    def _posterior(self, view: str) -> ViewPosterior:
        return self.posterior_[list(self.views_).index(view)]

    def _check_view(self, view: str) -> None:
        if not is_among(view, self.views_):
            several = [n for n, fitted in self.views_.items() if is_among(view, [fitted.source])]
            what = (
                f"View {view!r} has several kernels: ask"
                if several
                else f"Unknown view {shown(view)}"
            )
            names = ", ".join(map(repr, several or self.views_))
            raise DataError(
                f"{what} for {names}."
                if several
                else f"{what}; this model has {names}{nearest(view, self.views_) or '.'}"
            )

    def _asked_for(self, view: str | None) -> str:
        """The view that is to be predicted: the only output where none is named."""
        check_is_fitted(self)
        if view is not None:
            self._check_view(view)
            return view
        outputs = [name for name, fitted in self.views_.items() if fitted.role.output]
        if len(outputs) != 1:
            names = ", ".join(map(repr, outputs or self.views_))
            which = f"the outputs {names}" if outputs else f"no outputs, but the views {names}"
            raise DataError(f"Expected view to say what to predict; this model has {which}.")
        return outputs[0]

    def _given(self, data: Any) -> Prediction:
        """The model applied to data."""
        check_is_fitted(self)
        declared = dict.fromkeys(view.source for view in self.views_.values())
        data = omics.tables(data, declared, whole=False)
        given = read_data(data, declared, labels=self.classes_)
        tables = {
            name: view.check(replace(given[view.source], name=name))
            for name, view in self.views_.items()
            if view.source in given
        }
        samples = align(tables)
        prediction = Prediction(self.views_, self.posterior_, tables, samples, self.readouts_)
        prediction.warn_of_far_samples()
        return prediction

    def _others(self, data: Any, view: str) -> Prediction:
        """The model applied to the views other than the one that is asked for."""
        source, others = self.views_[view].source, data
        if omics.is_omics(data):  # of which only the others are read
            sources = dict.fromkeys(fitted.source for fitted in self.views_.values())
            others = omics.tables(data, {n: None for n in sources if n != source}, whole=False)
        elif isinstance(data, Mapping):
            others = {name: table for name, table in data.items() if name != source}
        if isinstance(others, dict) and not others:
            raise DataError(
                f"Expected at least one view other than {view!r} to predict it from; "
                f"use reconstruct to explain a view by itself."
            )
        return self._given(others)

    def _proba_of(self, view: str) -> Asked:
        fitted = self.views_[view]
        return Asked([_explaining(view, fitted, "probabilities", fitted.layer.probability)])

    def _prediction_of(self, view: str, return_std: bool) -> Asked:
        fitted = self.views_[view]
        if not flag("return_std", return_std):
            return Asked([fitted.layer.predict], by_mean=fitted.layer.predicts_by_mean)
        std = _explaining(view, fitted, "standard deviation", fitted.layer.std)
        return Asked([fitted.layer.predict, std])

    def _returned(self, view: str, found: Sequence[Array], samples: Samples, proba: bool) -> Any:
        """What `predict` or `predict_proba` returns: a table, or means and their deviations."""
        fitted = self.views_[view]
        if len(found) == 1 and not proba:
            return decoded(found[0], fitted, samples)
        tables = [labelled(values, samples, fitted.outputs) for values in found]
        return tables[0] if proba else tuple(tables)


def load(path: str | PathLike[str]) -> FactorModel:
    """Read a model that `FactorModel.save` wrote; it predicts to the last bit what it did.

    Nothing in the file is run or unpickled, so that a stranger's file can do no harm: what is not
    a complete and consistent model of kofa is refused with a `kofa.FileError`.

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
    held = model_file.read_object(path, "model")
    with naming_file(path):
        return _from_parts(held)


def _from_parts(held: Any) -> FactorModel:
    """A model from what `FactorModel.save` holds of it."""
    parameters, fitted, found = model_file.parts_of_model(held)
    model = FactorModel(**parameters)
    model._declared(fitted)
    model._remember(fitted, **found)
    return model


def _explaining(
    view: str, fitted: FittedView, what: str, function: Callable[..., Array]
) -> Callable[..., Array]:
    """The function, but saying in the user's words that a kind of view does not have it."""

    def explained(*layer: Array, **options: Any) -> Array:
        try:
            return function(*layer, **options)
        except NotImplementedError:
            through = "" if fitted.likelihood is not None else " that is explained through a kernel"
            raise DataError(
                f"a {fitted.declared} view{through} has no {what}", view, use=fitted.layer.offers()
            ) from None

    return explained


def _calibrated(
    fitted: dict[str, FittedView], engine: InMemory, state: State, rng: np.random.Generator
) -> dict[str, FittedView]:
    """The views, with outputs that are probabilities calibrated; the others are by read-outs."""
    inputs = [m for m, view in enumerate(fitted.values()) if not view.role.output]
    changed = dict(fitted)
    for m, (name, view) in enumerate(fitted.items()):
        if m not in inputs and view.layer.has("log_predictive"):
            found = calibrate(engine, state, m, inputs, rng)
            changed[name] = replace(view, sharpness=found.sharpness, centre=found.centre)
    return changed


def _with_holes(
    fitted: dict[str, FittedView], state: State, fit_data: FitData, rng: np.random.Generator
) -> dict[str, FittedView]:
    """The views with what holes in kernelized rows of the others left open in fit.

    The noise of a view has this in it, so that only more than this is added to a prediction.
    """
    holed = [name for name in fit_data.kernels if fit_data.has_holes(name)]
    changed = dict(fitted)
    for name in fitted if holed else ():
        others = [n for n in fitted if fit_data.sources[n] != fit_data.sources[name]]
        if any(n in others for n in holed):
            rows = np.flatnonzero(
                fit_data.seen(name) & np.any([fit_data.seen(n) for n in others], 0)
            )
            rows = np.sort(rng.choice(rows, min(len(rows), tuning.HOLES_ROWS), replace=False))
            given = Prediction(fitted, state, *fit_data.sample(others, rows))
            changed[name] = replace(fitted[name], holes_in_fit=given.mean_variance_of_holes(name))
    return changed


def _with_energies(
    fitted: dict[str, FittedView], state: State, treated: Sequence[Role]
) -> dict[str, FittedView]:
    """The inputs with the variance that they give the outputs a priori."""
    if not any(role.output for role in treated):
        return fitted
    return {
        name: fitted[name] if role.output else replace(view, energy=energy(q, role))
        for (name, view), q, role in zip(fitted.items(), state, treated, strict=True)
    }


def _probabilities(quantiles: Any, view: str) -> Array:
    try:
        wanted = np.atleast_1d(np.asarray(quantiles, dtype=float))
    except (TypeError, ValueError, OverflowError):  # words, or rows of different lengths
        wanted = np.full(1, np.nan)
    if wanted.ndim > 1 or not ((wanted > 0) & (wanted < 1)).all():
        raise DataError(
            f"View {view!r}: expected quantiles as a list of numbers between 0 and 1 "
            f"but got {shown(quantiles)}."
        )
    return wanted


def _generator(random_state: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(0 if random_state is None else random_state)
    except (TypeError, ValueError):
        what = "expected random_state to be a seed, a numpy Generator or None"
        raise DeclarationError(what, got=random_state, option="random_state") from None
