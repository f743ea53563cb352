# SPDX-License-Identifier: Apache-2.0
"""The table of all kernels."""

from __future__ import annotations

from benchmarks.groups import finance, grid, linear, matrix, order, signal, simulation

SAMPLES = (
    *matrix.SAMPLES,
    *order.SAMPLES,
    *grid.SAMPLES,
    *simulation.SAMPLES,
    *linear.SAMPLES,
    *signal.SAMPLES,
    *finance.SAMPLES,
)
BY_NAME = {sample.name: sample for sample in SAMPLES}
