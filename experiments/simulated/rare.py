"""Probabilities where one class is rare, beside tuned classifiers: do they hold?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from experiments.experiment import Mark, Measurement, Row
from experiments.simulated.questions import quiet
from experiments.tasks import Array
from kofa.estimators import KernelFactorClassifier

DIGITS = (8, 3, 9)
DIGIT_DRAWS = range(20, 23)
MADE_DRAWS = range(20, 30)
HOLDS = (0.7, 1.3)  # mean probability over rate


@dataclass(frozen=True)
class Problem:
    """Rows of a fit with zeros and ones, and others, weighted such that ones are as rare."""

    X: Array
    y: Array
    new: Array
    truth: Array
    weight: Array

    def scores(self, model: Any) -> tuple[float, float]:
        """Log-loss of new rows, and their mean probability over the rate of ones."""
        with quiet():
            p = model.fit(self.X, self.y).predict_proba(self.new)[:, 1]
        of_truth = np.clip(np.where(self.truth == 1, p, 1.0 - p), 1e-15, 1.0)
        share = self.weight / self.weight.sum()
        return float(-share @ np.log(of_truth)), float(share @ p / (share @ self.truth))


def digits(n_ones: int, digit: int, draw: int) -> Problem:
    """A digit against the rest: 800 rows, so many of them ones."""
    X, label = load_digits(return_X_y=True)
    order = np.random.default_rng(draw).permutation(len(X))
    own, others = (order[(label[order] == digit) == one] for one in (True, False))
    n_others = 800 - n_ones
    fit = np.sort(np.concatenate([own[:n_ones], others[:n_others]]))
    new = np.concatenate([own[n_ones:], others[n_others:]])
    truth = (label[new] == digit).astype(int)
    of_ones = n_ones / 800.0
    weight = np.where(truth == 1, of_ones / truth.sum(), (1.0 - of_ones) / (len(new) - truth.sum()))
    return Problem(X[fit], (label[fit] == digit).astype(int), X[new], truth, weight)


def made(separation: float, draw: int) -> Problem:
    """1,000 rows of 20 columns, one in 51 a one."""
    X, y = make_classification(6000, weights=[50 / 51], class_sep=separation, random_state=draw)
    return Problem(X[:1000], y[:1000], X[1000:], y[1000:], np.ones(5000))


def rivals(n_columns: int) -> dict[str, Any]:
    """Tuned where they have something to tune."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    widths = [factor / n_columns for factor in (0.1, 0.3, 1.0, 3.0)]
    grid = {"svc__C": [0.1, 1.0, 10.0, 100.0], "svc__gamma": widths}
    svc = make_pipeline(StandardScaler(), SVC(probability=True, random_state=0))
    linear = LogisticRegressionCV(Cs=10, cv=folds, scoring="neg_log_loss", max_iter=1000)
    return {
        "SVC": GridSearchCV(svc, grid, scoring="neg_log_loss", cv=folds),
        "logistic regression": make_pipeline(StandardScaler(), linear),
        "extra trees": ExtraTreesClassifier(500, random_state=0),
    }


def against_rivals(what: str, problems: Callable[[], list[Problem]]) -> Row:
    """Mean log-loss over that of the best of the others."""
    found, others = [], dict[str, list[float]]()
    for problem in problems():
        found.append(problem.scores(KernelFactorClassifier()))
        for name, model in rivals(problem.X.shape[1]).items():
            others.setdefault(name, []).append(problem.scores(model)[0])
    losses, rates = np.transpose(found)
    mean = {name: float(np.mean(each)) for name, each in others.items()}
    ratio = float(losses.mean()) / min(mean.values())
    shown = ", ".join(f"{name} {loss:.4f}" for name, loss in mean.items())
    low, high = HOLDS
    text = (
        f"{ratio:.2f} (log-loss {losses.mean():.4f}; {shown}); mean probability "
        f"{rates.min():.2f}–{rates.max():.2f} of the rate, in {low}–{high} "
        f"{int(((rates >= low) & (rates <= high)).sum())} of {len(rates)} times"
    )
    return Row(f"{what}: log-loss over that of the best other", ratio, Mark(high=1.05), text)


def _digits(n_ones: int) -> list[Problem]:
    return [digits(n_ones, digit, draw) for digit in DIGITS for draw in DIGIT_DRAWS]


def _made(separation: float) -> list[Problem]:
    return [made(separation, draw) for draw in MADE_DRAWS]


EXPERIMENTS: dict[str, Measurement] = {
    **{
        f"questions-rare-digits-{n}": partial(
            against_rivals, f"digits 8, 3, 9, {n} of 800", partial(_digits, n)
        )
        for n in (16, 87)
    },
    **{
        f"questions-rare-made-{separation}": partial(
            against_rivals, f"1:50, separation {separation}", partial(_made, separation)
        )
        for separation in (1, 2)
    },
}
