# SPDX-License-Identifier: Apache-2.0
"""Weights, made ready to draw from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferryvm.testing.generate import literal
from ferryvm.testing.generate.catalogue import Catalogue
from ferryvm.testing.generate.chance import Chance, Weighted
from ferryvm.testing.generate.weights import Section, Weights

_LITERALS: dict[str, Callable[[Chance, int], int]] = {
    "edge": literal.edge,
    "small": literal.small,
    "ordinary": literal.ordinary,
    "random": literal.any_bits,
}


class Tables:
    """Tables to draw from by weight."""

    def __init__(self, weights: Weights, methods_of: type) -> None:
        """`methods_of`: the class with the methods that the weights name."""
        self.chance = weights.chance
        self.catalogue = Catalogue(weights.instruction)
        self.functions = weights.numbers("functions")
        self.size = weights.numbers("size")
        self.work = weights.numbers("work")
        self.trips = weights.numbers("trips")
        self.leaf = Weighted(weights.leaf.items())
        self.literal = literals(weights)
        self.statements: Weighted[Callable[[Any], None]] = methods(methods_of, weights, "statement")
        self.values: Weighted[Callable[[Any, int, int], None]] = methods(
            methods_of, weights, "value"
        )
        self.traps: Weighted[Callable[[Any], int | None]] = methods(methods_of, weights, "trap")


def methods(
    methods_of: type, weights: Weights, section: str, prefix: str = ""
) -> Weighted[Callable[..., Any]]:
    """The methods named `section_key`, or `prefix_key`, to be drawn by weight."""
    table: Section = getattr(weights, section)
    pairs = ((getattr(methods_of, f"{prefix or section}_{key}"), w) for key, w in table.items())
    return Weighted(pairs)


def literals(weights: Weights) -> Weighted[Callable[[Chance, int], int]]:
    """Generators of literals of a type, to be drawn by weight themselves."""
    return Weighted((_LITERALS[name], weight) for name, weight in weights.literal.items())
