# SPDX-License-Identifier: Apache-2.0
"""Weights, made ready to draw from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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


class Choices(NamedTuple):
    """Generators of the parts of code, to be drawn by weight."""

    statements: Weighted[Callable[[Any], None]]
    values: Weighted[Callable[[Any, int, int], None]]
    traps: Weighted[Callable[[Any], int | None]]


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
        statements, values, traps = (
            _methods(methods_of, weights, section) for section in ("statement", "value", "trap")
        )
        self.plain = Choices(Weighted(statements), Weighted(values), Weighted(traps))
        """For programs without objects."""
        self.with_objects = Choices(
            Weighted(statements + _methods(methods_of, weights, "object_statement", "object")),
            Weighted(values + _methods(methods_of, weights, "object_value", "value")),
            Weighted(traps + _methods(methods_of, weights, "object_trap", "trap")),
        )
        """For programs with objects."""
        self.references: Weighted[Callable[[Any, int, int], None]] = methods(
            methods_of, weights, "reference"
        )


def methods(
    methods_of: type, weights: Weights, section: str, prefix: str = ""
) -> Weighted[Callable[..., Any]]:
    """The methods named `section_key`, or `prefix_key`, to be drawn by weight."""
    return Weighted(_methods(methods_of, weights, section, prefix))


def _methods(
    methods_of: type, weights: Weights, section: str, prefix: str = ""
) -> list[tuple[Callable[..., Any], float]]:
    table: Section = getattr(weights, section)
    return [(getattr(methods_of, f"{prefix or section}_{key}"), w) for key, w in table.items()]


def literals(weights: Weights) -> Weighted[Callable[[Chance, int], int]]:
    """Generators of literals of a type, to be drawn by weight themselves."""
    return Weighted((_LITERALS[name], weight) for name, weight in weights.literal.items())
