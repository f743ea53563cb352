# SPDX-License-Identifier: Apache-2.0
"""Tables of constants, which meanings of the instruction table look up.

A table is small, so that a compiler for vectors can have it in registers and look up an element
for each lane by a permutation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ferryvm.isa.type import Type

MOST_WORDS = 64

_DECLARED: dict[str, ConstantTable] = {}
"""All tables by name."""


def declared() -> dict[str, ConstantTable]:
    """The tables of the modules that are imported, by name."""
    return dict(_DECLARED)


class ConstantTable:
    """Constants of one type; their number is a power of 2 from 2 to 64.

    There is one object for a name, and tables are compared with `is`.
    """

    __slots__ = ("bits", "name", "type")

    def __init__(self, name: str, type_: Type, bits: Sequence[int]) -> None:
        """`bits`: bit patterns of the constants."""
        count = len(bits)
        if count & (count - 1) or not 2 <= count <= MOST_WORDS:
            raise ValueError(f"table {name}: 2 to {MOST_WORDS} constants expected, found {count}")
        self.name, self.type, self.bits = name, type_, tuple(bits)
        _DECLARED[name] = self

    def __len__(self) -> int:
        return len(self.bits)

    def at(self, index: int) -> int:
        """The bits of the constant with a number, modulo their number."""
        return self.bits[index & len(self.bits) - 1]

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"ConstantTable({self.name})"

    def __reduce__(self) -> tuple[Callable[..., ConstantTable], tuple[str, Type, tuple[int, ...]]]:
        return _known, (self.name, self.type, self.bits)

    def __copy__(self) -> ConstantTable:
        return self

    def __deepcopy__(self, memo: object) -> ConstantTable:
        return self


def _known(name: str, type_: Type, bits: tuple[int, ...]) -> ConstantTable:
    found = _DECLARED.get(name)
    return ConstantTable(name, type_, bits) if found is None else found
