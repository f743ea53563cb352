# SPDX-License-Identifier: Apache-2.0
"""Items of lists that have one of several kinds: code goes on in a version for the kind that one
has.

xs = [0] * n            ints
xs[0] = 0.5             and floats: the program is built again, in which all such lists have both
x = xs[i]               x: int, or x: float, by the number of the kind in the item
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ferryvm.python.value.kind import Either, Kind, Tuple

if TYPE_CHECKING:
    from ferryvm.build import Local
    from ferryvm.python.codegen.code import Code

PREFIX = "%either "
"""Variables with items of a statement, which only it reads."""


class _Alternative(NamedTuple):
    """A kind that a value may have."""

    kind: Kind
    tests: tuple[tuple[int, int], ...]
    """Slots, and the numbers that they have then."""
    slots: tuple[int, ...]
    """The slots of the value of that kind."""


def has_either(kind: Kind) -> bool:
    """True for a value that may have several kinds, and a tuple with one."""
    return isinstance(kind, Either) or (
        isinstance(kind, Tuple) and any(map(has_either, kind.items))
    )


def _alternatives(kind: Kind, first: int = 0) -> list[_Alternative]:
    """The kinds that a value may have, whose slots begin at a number."""
    if isinstance(kind, Either):
        found, start = [], first + 1
        for number, each in enumerate(kind.kinds):
            slots = tuple(range(start, start + len(each.slots)))
            found.append(_Alternative(each, ((first, number),), slots))
            start += len(each.slots)
        return found
    if isinstance(kind, Tuple):
        parts, start = [], first
        for item in kind.items:
            parts.append(_alternatives(item, start))
            start += len(item.slots)
        return [
            _Alternative(
                Tuple(tuple(each.kind for each in chosen)),
                tuple(test for each in chosen for test in each.tests),
                tuple(slot for each in chosen for slot in each.slots),
            )
            for chosen in itertools.product(*parts)
        ]
    return [_Alternative(kind, (), tuple(range(first, first + len(kind.slots))))]


def split(b: Code, name: str, kind: Kind, go: Callable[[Kind], None]) -> None:
    """Go on for each kind that the value in a variable may have. `go`: adds code that does not come
    back, for a variable of that kind."""
    f, given = b.f, b.locals(name, kind)
    for each in _alternatives(kind):
        with f.block() as other:
            for slot, number in each.tests:
                f.local_get(given[slot])
                f.i64_const(number)
                f.i64_ne()
                f.br_if(other)
            for slot, local in zip(each.slots, b.locals(name, each.kind), strict=True):
                f.local_get(given[slot])
                f.local_set(local)
            go(each.kind)
    f.trap()


def name_of_item(node: ast.Subscript) -> str:
    """The variable for the item that a subscript takes."""
    end = f"{node.end_lineno} {node.end_col_offset}"
    return f"{PREFIX}{node.lineno} {node.col_offset} {end}"


def push(b: Code, found: Kind, wanted: Either, value: list[Local]) -> None:
    """Push a value of a kind, which is in locals, as one of several kinds."""
    b.f.i64_const(wanted.kinds.index(found))
    for kind in wanted.kinds:
        if kind == found:
            for local in value:
                b.f.local_get(local)
        else:
            b.zeros(kind)
