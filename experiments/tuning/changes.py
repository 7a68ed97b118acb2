"""What another number does to scores and CPU time of the small problems."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.tasks import Array, Result
from experiments.tuning.problems import PROBLEMS

# The smallest change that is worth a word.
LEAST = {"coverage": 0.01, "factors": 0.5, "vectors": 2.0, "selected": 1.0}
LEAST_OF_OTHERS = 0.005
COUNTED = ("factors", "vectors", "selected")
NINETY = 0.9  # what intervals should cover


@dataclass(frozen=True, eq=False)
class Change:
    """A score of a problem before and after, by seeds."""

    problem: str
    score: str
    before: Array
    after: Array

    @property
    def mean(self) -> float:
        return float((self.after - self.before).mean())

    @property
    def least(self) -> float:
        return LEAST.get(self.score.split()[0], LEAST_OF_OTHERS)

    @property
    def gains(self) -> Array:
        """What got better; nothing where more is neither better nor worse."""
        right = NINETY if self.score.startswith("coverage") else None
        aim = PROBLEMS[self.problem].aims.get(self.score, right)
        if aim is not None:
            return np.asarray(np.abs(self.before - aim) - np.abs(self.after - aim))
        return np.zeros(1) if self.score in COUNTED else self.after - self.before

    def is_clear(self, sign: float) -> bool:
        """Better (+1) or worse (−1) with all seeds, and by enough on average."""
        gains = sign * self.gains
        return bool(gains.min() > 0.0 and gains.mean() >= self.least)

    def __str__(self) -> str:
        return f"{self.problem}: {figure(self.score, self.mean, '+')}"


def figure(score: str, value: float, sign: str = "") -> str:
    """A score and its value, with a minus sign; a share without a zero in front of the point."""
    if score in COUNTED:
        return f"{score} {value:{sign}.1f}".replace("-", "−")
    number = re.sub(r"(?<!\d)0\.", ".", f"{value:{sign}.3f}")
    return f"{score} {number}".replace("-", "−")


@dataclass(frozen=True)
class Changes:
    """What a number at half, or at twice, does to the problems that read it."""

    found: Sequence[Change]
    cpu: float  # relative to that with the number as it is
    failed: Sequence[str] = ()

    @classmethod
    def of(cls, pairs: dict[str, list[tuple[Result, Result] | None]]) -> Changes:
        """Of the results before and after, by seeds; None where a fit failed."""
        found, failed, cpu = list[Change](), list[str](), np.zeros(2)
        for problem, given in pairs.items():
            both = [pair for pair in given if pair is not None]
            if len(both) < len(given):
                failed.append(problem)
                continue
            figures = {
                name: np.array([[float(one[name]) for one in pair] for pair in both])
                for name in both[0][0]
            }
            cpu += figures.pop("cpu").sum(axis=0)
            found += [Change(problem, score, *values.T) for score, values in figures.items()]
        return cls(found, float(cpu[1] / cpu[0]) if cpu[0] else np.nan, failed)

    @property
    def notable(self) -> list[Change]:
        """Those worth a word, the largest first."""
        size = {change: abs(change.mean) / change.least for change in self.found}
        return sorted((c for c in self.found if size[c] >= 1.0), key=lambda c: -size[c])

    def cells(self, most: int = 3) -> list[str]:
        """Of the table: the largest changes, and the time."""
        texts = [f"{problem}: fails" for problem in self.failed]
        texts += [str(change) for change in self.notable[:most]]
        more = len(self.notable) - most
        texts += [f"{more} more"] if more > 0 else []
        return ["; ".join(texts) or "–", "–" if np.isnan(self.cpu) else f"{self.cpu:.1f}"]

    @property
    def better(self) -> list[Change]:
        """Clear gains, where nothing is clearly worse."""
        if self.failed or any(change.is_clear(-1.0) for change in self.found):
            return []
        return [change for change in self.found if change.is_clear(1.0)]
