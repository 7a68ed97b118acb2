"""A progress bar."""

from __future__ import annotations

from typing import Any, Self

from kofa.inference.run import Iteration


class Progress:
    """A tqdm bar, or nothing at all."""

    def __init__(self, on: bool, total: int) -> None:
        self.bar: Any = None
        if on:
            try:
                from tqdm.auto import tqdm
            except ImportError as error:
                raise ImportError(
                    "progress=True needs tqdm: install it with pip install 'kofa[progress]'."
                ) from error
            self.bar = tqdm(total=total, unit="it", leave=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def show(self, iteration: Iteration) -> None:
        if self.bar is not None:
            self.bar.n = iteration.n_iter
            self.bar.set_postfix(bound=f"{iteration.lower_bound:.6g}", factors=iteration.n_factors)
