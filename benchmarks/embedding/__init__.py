# SPDX-License-Identifier: Apache-2.0
"""Costs of embedding ferryvm: making programs, starting them, and calls in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.embedding import calling, making, native

__all__ = ["measure"]


def measure(rounds: int, instructions: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """The figures of all parts, by name."""
    return {
        **making.measure(rounds, instructions, progress),
        **calling.measure(3 * rounds, progress),
        **native.measure(3 * rounds, progress),
    }
