"""A progress bar."""

from __future__ import annotations

import warnings
from typing import Any, Self

from kofa.inference.run import Iteration


class Progress:
    """A tqdm bar of the iterations, which also says what runs beside them, or nothing at all."""

    def __init__(self, on: bool, total: int) -> None:
        self.bar: Any = None
        if on:
            self.bar = _tqdm()(total=total, unit="it", leave=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def stage(self, what: str) -> None:
        """Say what runs before or after iterations."""
        if self.bar is not None:
            self.bar.set_description(what)

    def show(self, iteration: Iteration) -> None:
        if self.bar is not None:
            self.bar.set_description("iterations", refresh=False)
            state = {"bound": f"{iteration.lower_bound:.6g}", "factors": iteration.n_factors}
            self.bar.set_postfix(state, refresh=iteration.n_iter == 1)
            self.bar.update(iteration.n_iter - self.bar.n)  # then drawn ten times a second


def _tqdm() -> Any:
    """A widget in notebooks that have ipywidgets, and text everywhere else."""
    try:
        from tqdm import TqdmWarning
    except ImportError as error:
        raise ImportError(
            "progress=True needs tqdm: install it with pip install 'kofa[progress]'."
        ) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TqdmWarning)  # that text is shown in place of a widget
        from tqdm.auto import tqdm
    return tqdm
