"""Some model files with another number; the experiment `mutated-numbers` tries all of them."""

from __future__ import annotations

from itertools import islice

import pytest

from experiments.fuzz.model_files import tables
from experiments.fuzz.mutated_numbers import changed, check

STEP = 43  # files from one to the next: each of the numbers that stand in for another


@pytest.mark.parametrize("which", [0, 4, 10, 26])
def test_another_number_is_refused_or_a_value(which, tmp_path):
    path, wrong = tmp_path / "model.kofa", []
    assert which < len(tables())
    for where, value, data in islice(changed(which), which, None, STEP):
        path.write_bytes(data)
        what = check(which, where, path)
        if what not in ("refused", "applied"):
            wrong.append((where, value, what))
    assert not wrong
