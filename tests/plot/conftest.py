"""Models and data that tests of plots share."""

from __future__ import annotations

import pytest

from drawn import every_kind, one_factor, two_kernels


@pytest.fixture
def model():
    return every_kind()[0]


@pytest.fixture
def data():
    return every_kind()[1]


@pytest.fixture
def single():
    return one_factor()


@pytest.fixture
def kernels():
    return two_kernels()
