"""Other packages on the same data as kofa, in the same environment; they have to be installed.

On one thread, so that idle threads that spin are not counted as work of either side.
"""

from __future__ import annotations

from threadpoolctl import threadpool_limits

from experiments.experiment import Measurement, Row


def on_one_thread(measurement: Measurement) -> Row:
    with threadpool_limits(1):
        return measurement()
