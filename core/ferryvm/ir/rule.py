# SPDX-License-Identifier: Apache-2.0
"""Rules of a lowering: the method that lowers an operation of the region IR.

A lowering is a context (the insertion point, the lowered values) with parts around it. A part
lowers operations of one kind: its method `do_NAME` those of that name, with the operation and its
lowered operands as arguments. Parts refer to the context and to parts that they are given, and have
no base class. Other operations are arithmetic, and are lowered by the emitter's method of that
name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

_PREFIX = "do_"


class Rules:
    """The methods of some parts, by the operations that they lower."""

    def __init__(self, *parts: object) -> None:
        """`parts`: no two of them lower the same operation."""
        self._parts = parts
        self._places = _places(tuple(map(type, parts)))

    def get(self, name: str) -> Callable[..., Any] | None:
        """The method for an operation; None for arithmetic."""
        place = self._places.get(name)
        if place is None:
            return None
        found: Callable[..., Any] = getattr(self._parts[place], _PREFIX + name)
        return found


@functools.cache  # there are many bodies, and few kinds of lowerings
def _places(kinds: tuple[Hashable, ...]) -> dict[str, int]:
    """The index of the part for each operation's name."""
    found: dict[str, int] = {}
    for place, kind in enumerate(kinds):
        for method in vars(kind):
            if method.startswith(_PREFIX):
                name = method.removeprefix(_PREFIX)
                assert name not in found, name
                found[name] = place
    return found
