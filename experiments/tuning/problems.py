"""Small problems, of a second or two each, that between them read every number of `kofa.tuning`.

All data are planted or ship with scikit-learn, so that everybody can run them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from experiments.simulated import n_factors
from experiments.tuning import kernel_views, many_samples, plain_views, sparse_views
from experiments.tuning.scores import Scores


@dataclass(frozen=True, eq=False)
class Problem:
    """What is fitted and scored: a function of a seed, whose docstring says what it is."""

    solve: Callable[[int], Scores]
    aims: Mapping[str, float] = field(default_factory=dict)  # of scores that can be too high
    only: Sequence[str] = ("*",)  # the numbers that it is for, of those that it reads
    takes_long: bool = False  # what it reads is not found out: `only` names it

    @property
    def what(self) -> str:
        text = " ".join((self.solve.__doc__ or "").split())
        return text.removesuffix(".")


FACTORS = (
    "TRIAL_ITERATIONS",
    "NEXT_WEAKEST",
    "COLUMNS_PER_FACTOR",
    "COARSE_TOL",
    "PRUNING_MARGIN",
    "*_READ_OUT",
    "READ_OUT_*",
)
UNLABELLED = ("*DIFFUSION_*", "GRAPH_*", "LOG_TIME_*", "UNLABELLED_*")
INTERVALS = ("HOLE*", "TOL", "PATIENCE", "ROTATION_PACE")
RELEVANCE = ("*RELEVANCE*", "RACE_*", "SPARS*", "FEATURE_*", "ORDER_*")

PROBLEMS = {
    "hidden view": Problem(plain_views.hidden_view, {"factors": n_factors.TRUE}),
    "many factors": Problem(plain_views.many_factors, only=FACTORS),
    "ones": Problem(plain_views.ones, {"factors": n_factors.TRUE}),
    "rare ones": Problem(plain_views.rare_ones),
    "counts": Problem(plain_views.counts, {"factors": n_factors.TRUE}),
    "scattered holes": Problem(plain_views.scattered_holes),
    "wide input": Problem(plain_views.wide_input),
    "sparse columns": Problem(plain_views.sparse_columns, {"factors": 3}),
    "bank": Problem(kernel_views.bank),
    "odd outputs": Problem(
        kernel_views.odd_outputs, only=("OUTLIER", "*_ROUNDING", "LEAST_NOISE", "SCALE_*")
    ),
    "diabetes": Problem(kernel_views.diabetes),
    "wine": Problem(kernel_views.wine),
    "few labels": Problem(kernel_views.few_labels, only=UNLABELLED),
    "intervals": Problem(kernel_views.far_and_holed),
    "no outputs": Problem(kernel_views.no_outputs, only=INTERVALS),
    "few samples": Problem(kernel_views.few_samples),
    "two inputs": Problem(kernel_views.two_inputs),
    "diffusion": Problem(kernel_views.diffusion, only=UNLABELLED),
    "features": Problem(sparse_views.features, only=RELEVANCE),
    "few for features": Problem(sparse_views.few_for_features, only=RELEVANCE),
    "switched off": Problem(sparse_views.switched_off, only=RELEVANCE),
    "alike": Problem(sparse_views.alike, only=RELEVANCE),
    "vectors": Problem(sparse_views.vectors, only=("VECTOR_*",)),
    "vectors of 150": Problem(sparse_views.vectors_of_150, only=("VECTOR_*",)),
    "vectors of 36": Problem(sparse_views.vectors_of_36, only=("VECTOR_*",)),
    "vectors alone": Problem(sparse_views.vectors_alone, only=("VECTOR_*",)),
    "landmarks": Problem(sparse_views.landmarks),
    "many samples": Problem(
        many_samples.many_samples,
        only=("LEARNING_ROWS", "MOST_FACTORS"),
        takes_long=True,
    ),
    "more samples": Problem(
        many_samples.more_samples, only=("AUTO_LANDMARKS", "MEDIAN_ROWS"), takes_long=True
    ),
    "many candidates": Problem(
        many_samples.many_candidates, only=("VECTOR_OTHER_ROWS",), takes_long=True
    ),
    "many unlabelled": Problem(
        many_samples.many_unlabelled, only=("DIFFUSION_ROWS",), takes_long=True
    ),
}
