"""`cross_validate` and `compare`: how well models predict samples that they have not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.utils.parallel import Parallel, delayed

from kofa.checks import check_n_jobs, flag, listed, require
from kofa.cross_validation.held_out import FoldResult, fit_and_predict
from kofa.cross_validation.model import Model
from kofa.cross_validation.plan import Plan
from kofa.data.tables import import_pandas
from kofa.errors import warn
from kofa.scores import LOWER, MEDIAN, UPPER, pooled
from kofa.scoring.tables import (
    ALL,
    prediction_rows,
    quantiles_of_levels,
    sample_names,
    score_rows,
    stacked,
)

_ONLY = ""  # the name of a model that is not compared with others


def cross_validate(
    model: Model,
    data: Any,
    *,
    outputs: Sequence[str] | None = None,
    cv: Any = 5,
    groups: Any = None,
    scoring: str | Sequence[str] | None = None,
    n_jobs: int | None = None,
    baseline: bool = False,
    return_predictions: bool = False,
) -> Any:
    """How well a model predicts outputs of samples that were left out of its fit.

    In each fold the test samples are left out of all views in fit. Their outputs are then
    predicted from their other views and compared with the truth. Values that are missing are
    neither needed nor scored.

    Parameters
    ----------
    model : FactorModel
        What is fitted in each fold: a copy of it. It is not changed, and writes no checkpoint.
    data : dict of name → table, MuData or AnnData
        As for `FactorModel.fit`.
    outputs : list of str, or None
        The views to predict and score; None is the outputs of the model. The declaration of the
        model stays as it is: a view that is named here but no output of the model is fitted as
        the other views are. Neither these views nor outputs of the model are given for test
        samples.
    cv : int, splitter of scikit-learn, or list of (train, test) positions
        A number of folds shuffles the samples with a fixed seed; the folds have the same shares
        of classes where the only output is `Categorical` or a `Binary` column. With `groups`
        it is a `GroupKFold`.
    groups : Series by sample, array in the order of the samples, or None
        Samples of one group are left out together, by splitters that know of groups.
    scoring : name, list of names, or None
        Which scores; None is all that a kind of view has: "r2", "rmse", "d2", "auc", "accuracy",
        "log_loss", "coverage". See Notes.
    n_jobs : int or None
        How many folds are fitted at a time, in processes of joblib; −1 is one for each core. The
        results are the same, up to rounding where BLAS has fewer threads then.
    baseline : bool
        Score beside it what predicts without the other views: the mean of the training samples,
        or their shares of classes.
    return_predictions : bool
        Return the predictions too.

    Returns
    -------
    scores : DataFrame
        One row for each score: ``fold``, ``view``, ``column``, ``score``, ``value``, and ``n``,
        the number of values that it is of. Folds count from 0; the fold "all" has the score of
        the predictions of all folds together. The column "all" has the mean over the columns of
        a view; it is the only one of views with one column. Where no score can be given, such as
        an AUC without ones, ``value`` is NaN. With `baseline` also a column ``baseline``, which
        is NaN for ``coverage``.
    predictions : DataFrame, only with ``return_predictions``
        One row for each known value: ``fold``, ``sample``, ``view``, ``column``, ``kind``,
        ``truth``, ``mean``, ``lower`` and ``upper`` (of an interval of 90 %), and ``level``, the
        least of the levels .1, .2, … .9, .95 whose central interval has the truth in it
        (infinite where none has). A `Binary` view has probabilities as ``mean``. A `Categorical`
        view has one row for each class, which stands in ``column``; ``truth`` is 1 for the label.

    Notes
    -----
    ``r2`` is 1 − Σ(y − ŷ)² / Σ(y − ȳ)² with ȳ the mean of the training samples. (scikit-learn's
    takes that of the test samples, which are known only afterwards, and needs two.) ``d2`` is the
    same with the deviance in place of the square: of probabilities the log-loss, of counts that of
    Poisson, of positive numbers the square of logarithms. 0 is no better than what is known
    without the other views, 1 is perfect. ``coverage`` is the share of values in intervals
    of 90 %. The ``auc`` of classes is the mean over each class against the rest.

    See Also
    --------
    compare : several models in the same folds.
    score_summary : mean and spread over folds.
    calibration_table, confusion_table : more about the predictions.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(100, 3))
    >>> y = x @ [1.0, 2.0, 0.0] + rng.normal(size=100)
    >>> model = kofa.FactorModel({"x": kofa.Real(), "y": kofa.Real()}, outputs=["y"])
    >>> scores = kofa.cross_validate(model, {"x": x, "y": y}, cv=4, scoring="r2")
    >>> scores.round(2)
      fold view column score  value    n
    0    0    y    all    r2   0.86   25
    1    1    y    all    r2   0.83   25
    2    2    y    all    r2   0.89   25
    3    3    y    all    r2   0.82   25
    4  all    y    all    r2   0.85  100
    """
    _check_model("model", model)
    check_n_jobs(n_jobs)
    plan = Plan.checked({_ONLY: model}, data, outputs, cv, groups, scoring)
    both = flag("baseline", baseline), flag("return_predictions", return_predictions)
    return _tables(plan, n_jobs, *both, named=False)


def compare(
    models: Mapping[str, Model],
    data: Any,
    *,
    outputs: Sequence[str] | None = None,
    cv: Any = 5,
    groups: Any = None,
    scoring: str | Sequence[str] | None = None,
    n_jobs: int | None = None,
    baseline: bool = False,
    return_predictions: bool = False,
) -> Any:
    """Several models in the same folds of the same samples.

    A model that declares fewer views than there are in `data` sees only these, so that models
    with and without a view can be compared. `score_summary` has the differences.

    Parameters
    ----------
    models : dict of name → FactorModel
        The first is the one that others are compared with.
    data, outputs, cv, groups, scoring, n_jobs, baseline, return_predictions
        As for `cross_validate`. Without `outputs` all models must have the same.

    Returns
    -------
    What `cross_validate` does, with a column ``model`` in front.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-3, 3, size=(100, 1))
    >>> y = np.sin(2 * x) + 0.1 * rng.normal(size=(100, 1))
    >>> models = {}
    >>> for kernel in ("linear", "rbf"):
    ...     views = {"x": kofa.Real(kernel=kernel), "y": kofa.Real()}
    ...     models[kernel] = kofa.FactorModel(views, outputs=["y"])
    >>> scores = kofa.compare(models, {"x": x, "y": y}, scoring=["r2"])
    >>> kofa.score_summary(scores).round(2)
        model view column score  mean    sd  pooled  folds  difference    se
    0  linear    y    all    r2  0.19  0.03    0.19      5        0.00  0.00
    1     rbf    y    all    r2  0.98  0.01    0.98      5        0.79  0.01
    """
    fine = isinstance(models, Mapping) and len(models) > 0
    require(fine, "models", "a dict of name → FactorModel", models)
    for name, model in models.items():
        _check_model(f"models[{name!r}]", model)
    check_n_jobs(n_jobs)
    plan = Plan.checked(models, data, outputs, cv, groups, scoring)
    both = flag("baseline", baseline), flag("return_predictions", return_predictions)
    return _tables(plan, n_jobs, *both, named=True)


def _check_model(option: str, model: Any) -> None:
    cure = "estimators with X and y go into the functions of sklearn.model_selection"
    declared = hasattr(model, "views") and hasattr(model, "outputs")  # an estimator has neither
    require(declared, option, "a kofa.FactorModel", model, cure=cure)


def _tables(
    plan: Plan, n_jobs: int | None, baseline: bool, predictions: bool, *, named: bool
) -> Any:
    """The table of scores, and that of predictions if it is wanted."""
    import_pandas()  # or an error, before the first fit
    results = _results(plan, n_jobs, predictions)
    _pass_on_warnings(results, named)
    scores = {name: _score_parts(plan, name, found, baseline) for name, found in results.items()}
    if not predictions:
        return stacked(scores, named)
    predicted = {name: _prediction_parts(plan, name, found) for name, found in results.items()}
    return stacked(scores, named), stacked(predicted, named)


def _results(plan: Plan, n_jobs: int | None, predictions: bool) -> dict[str, list[FoldResult]]:
    """Of each model, what came out of each fold."""
    tasks = [(name, number) for name in plan.models for number in range(len(plan.folds))]
    found = Parallel(n_jobs=n_jobs)(
        delayed(fit_and_predict)(
            plan.models[name],
            plan.given[name],
            {view: _quantiles(plan, name, view, predictions) for view in plan.outputs},
            plan.folds[number],
            number,
        )
        for name, number in tasks
    )
    results: dict[str, list[FoldResult]] = {name: [] for name in plan.models}
    for (name, _), result in zip(tasks, found, strict=True):
        results[name].append(result)
    return results


def _quantiles(plan: Plan, name: str, view: str, predictions: bool) -> list[float]:
    """Those that are needed: of counts they take longer than all else in a prediction."""
    likelihood = plan.given[name].views[view].likelihood
    if not likelihood.has("quantile"):
        return []
    median = likelihood.deviance_at == "median" and "d2" in plan.scoring
    ends = [LOWER, UPPER] * ("coverage" in plan.scoring)
    return [*(quantiles_of_levels() if predictions else ends), *[MEDIAN] * median]


def _score_parts(plan: Plan, name: str, results: Sequence[FoldResult], baseline: bool) -> list[Any]:
    """The scores of each fold, and of all together."""
    each: list[tuple[Any, Any]] = [(k, found.held_out) for k, found in enumerate(results)]
    every = {view: pooled([found.held_out[view] for found in results]) for view in plan.outputs}
    return [
        score_rows(fold, view, plan.given[name].columns(view), held[view], plan.scoring, baseline)
        for fold, held in [*each, (ALL, every)]
        for view in plan.outputs
    ]


def _prediction_parts(plan: Plan, name: str, results: Sequence[FoldResult]) -> list[Any]:
    given = plan.given[name]
    samples = [sample_names(given.samples, fold.test) for fold in plan.folds]
    return [
        prediction_rows(k, view, given.columns(view), found.held_out[view], samples[k])
        for k, found in enumerate(results)
        for view in plan.outputs
    ]


def _pass_on_warnings(results: Mapping[str, Sequence[FoldResult]], named: bool) -> None:
    """Each warning of the fits once, with the folds in which it came up."""
    for name, found in results.items():
        folds: dict[tuple[type[Warning], str], list[int]] = {}
        for number, result in enumerate(found):
            for one in dict.fromkeys(result.warnings):
                folds.setdefault(one, []).append(number)
        model = f"Model {name!r}, fold" if named else "Fold"
        for (category, message), where in folds.items():
            warn(f"{model}{'s' * (len(where) > 1)} {listed(where)}: {message}", category)
