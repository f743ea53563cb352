# SPDX-License-Identifier: Apache-2.0
"""The table of all kernels."""

from __future__ import annotations

from benchmarks.groups import grid, matrix, order, simulation

SAMPLES = (*matrix.SAMPLES, *order.SAMPLES, *grid.SAMPLES, *simulation.SAMPLES)
BY_NAME = {sample.name: sample for sample in SAMPLES}
