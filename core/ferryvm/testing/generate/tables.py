# SPDX-License-Identifier: Apache-2.0
"""Weights, made ready to draw from."""

from __future__ import annotations

import enum
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


class CodeKind(enum.Enum):
    """The code that is generated."""

    PLAIN = "of a program without launches"
    LAUNCHING = "of a program with launches"
    ITEM = "of items and of what they call"


class Choices(NamedTuple):
    """Generators of the parts of code, to be drawn by weight."""

    statements: Weighted[Callable[[Any], None]]
    values: Weighted[Callable[[Any, int, int], None]]
    traps: Weighted[Callable[[Any], int | None]]


class Tables:
    """Tables to draw from by weight."""

    def __init__(self, weights: Weights, methods_of: type, methods_of_items: type) -> None:
        """The classes have the methods that the weights name, the second one those for items."""
        self.chance = weights.chance
        self.catalogue = Catalogue(weights.instruction)
        self.functions = weights.numbers("functions")
        self.size = weights.numbers("size")
        self.work = weights.numbers("work")
        self.trips = weights.numbers("trips")
        self.items = weights.numbers("items")
        self.leaf = Weighted(weights.leaf.items())
        self.literal = literals(weights)
        self.choices = {
            (kind, has_objects): _choices(
                weights,
                methods_of_items if kind is CodeKind.ITEM else methods_of,
                kind,
                has_objects,
            )
            for kind in CodeKind
            for has_objects in (False, True)
        }
        """By kind of code, and whether the program has objects."""
        self.references: Weighted[Callable[[Any, int, int], None]] = methods(
            methods_of, weights, "reference"
        )


_SECTIONS = {
    CodeKind.PLAIN: (["statement"], ["object_statement/object"], ["trap"], ["object_trap/trap"]),
    CodeKind.LAUNCHING: (
        ["statement", "launch_statement/statement"],
        ["object_statement/object"],
        ["trap", "launch_trap/trap"],
        ["object_trap/trap"],
    ),
    CodeKind.ITEM: (
        ["item", "item_statement/statement"],
        ["item_object/object"],
        ["item_trap/trap"],
        ["item_object_trap/trap"],
    ),
}
"""The sections of statements, those for objects, the sections of traps, those for objects; each
with the prefix of its methods, where that is another."""


def _choices(weights: Weights, methods_of: type, kind: CodeKind, has_objects: bool) -> Choices:
    def every(sections: list[str]) -> list[tuple[Callable[..., Any], float]]:
        names = (section.partition("/") for section in sections)
        return [pair for n, _, prefix in names for pair in _methods(methods_of, weights, n, prefix)]

    statements, for_objects, traps, traps_of_objects = _SECTIONS[kind]
    values = ["value"]
    if has_objects:
        statements, traps = statements + for_objects, traps + traps_of_objects
        values = ["value", "object_value/value"]
    return Choices(Weighted(every(statements)), Weighted(every(values)), Weighted(every(traps)))


def methods(
    methods_of: type, weights: Weights, section: str, prefix: str = ""
) -> Weighted[Callable[..., Any]]:
    """The methods named `section_key`, or `prefix_key`, to be drawn by weight."""
    return Weighted(_methods(methods_of, weights, section, prefix))


def joined(
    methods_of: type, weights: Weights, sections: tuple[str, ...], prefix: str
) -> Weighted[Callable[..., Any]]:
    """The methods `prefix_key` of several sections, to be drawn by weight."""
    return Weighted(
        pair for section in sections for pair in _methods(methods_of, weights, section, prefix)
    )


def _methods(
    methods_of: type, weights: Weights, section: str, prefix: str = ""
) -> list[tuple[Callable[..., Any], float]]:
    table: Section = getattr(weights, section)
    return [(getattr(methods_of, f"{prefix or section}_{key}"), w) for key, w in table.items()]


def literals(weights: Weights) -> Weighted[Callable[[Chance, int], int]]:
    """Generators of literals of a type, to be drawn by weight themselves."""
    return Weighted((_LITERALS[name], weight) for name, weight in weights.literal.items())
