"""Training mofapy2."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from time import process_time
from typing import Any

from experiments.tasks import Array


def run_mofa(entry_point: Any, views: list[Array], factors: int, likelihoods: Any) -> Any:
    """All at its defaults but the number of factors, the seed and the printing."""
    mofa = entry_point()
    mofa.set_data_options()
    mofa.set_data_matrix([[y.copy()] for y in views], likelihoods=likelihoods)
    mofa.set_model_options(factors=factors)
    mofa.set_train_options(seed=0, quiet=True)
    mofa.build()
    mofa.run()
    return mofa.model


def train(
    views: list[Array], factors: int, likelihoods: list[str] | None = None
) -> tuple[Any, float]:
    """The model, and the CPU seconds of build and training."""
    from mofapy2.run.entry_point import entry_point  # not part of the time

    start = process_time()
    with redirect_stdout(io.StringIO()):
        model = run_mofa(entry_point, views, factors, likelihoods)
    return model, process_time() - start


def factors_and_weights(model: Any) -> tuple[Array, list[Array]]:
    """Posterior means of Z and of each W."""
    return model.nodes["Z"].getExpectation(), [w["E"] for w in model.nodes["W"].getExpectations()]
