# SPDX-License-Identifier: Apache-2.0
"""Rules of a lowering: the method that lowers an operation of the region IR.

A lowering is a context (where code is appended, what values have become) with parts around it. A
part lowers operations of one kind: its method `do_NAME` those of that name, given the operation and
what its operands have become. Parts know the context and the parts that they are given, and derive
from nothing. What no part lowers is arithmetic, for the emitter's method of its name.
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


@functools.cache  # bodies are many, kinds of lowerings few
def _places(kinds: tuple[Hashable, ...]) -> dict[str, int]:
    """The number of the part, by the operation's name."""
    found: dict[str, int] = {}
    for place, kind in enumerate(kinds):
        for method in vars(kind):
            if method.startswith(_PREFIX):
                name = method.removeprefix(_PREFIX)
                assert name not in found, name
                found[name] = place
    return found
