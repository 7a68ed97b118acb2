"""What hostile commands are expected to end with."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.fuzz.faults import DATA, OK, OPTION, Fault
from experiments.fuzz.faulty_commands import Maker, one_mark_for_two


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--sep=,", "--decimal=,"], True),
        (["--decimal=,", "--sep=;"], False),
        (["--sep=,", "--sep=;", "--decimal=;"], True),  # the last one counts
        (["--sep=,", "-v", "rna=rna.csv"], False),
        (["--decimal=,"], False),
    ],
)
def test_a_mark_that_separates_and_is_decimal_too_is_a_fault_of_the_options(arguments, expected):
    assert one_mark_for_two(arguments) == expected


@pytest.mark.parametrize(("mark", "expected"), [(",", DATA | OPTION), (";", OK | DATA)])
def test_two_options_that_are_fine_alone_may_not_be_together(mark, expected, monkeypatch):
    chosen = iter([2, Fault((f"--sep={mark}",), OK), Fault(("--decimal=,",), OK)])
    maker = Maker(np.random.default_rng(0), [])
    monkeypatch.setattr(maker, "pick", lambda _: next(chosen))
    command, codes = maker.with_faults(["fit"], OK | DATA, [])
    assert command == ["fit", f"--sep={mark}", "--decimal=,"]
    assert codes == expected
