# SPDX-License-Identifier: Apache-2.0
"""Operations of reductions and scans: two elements of one type become one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar, cast

from ferryvm.isa import BY_MNEMONIC
from ferryvm.isa.emitter import Condition, Emitter
from ferryvm.isa.type import Type, ValueType, from_float
from ferryvm.named_tuple import NamedTuple
from ferryvm.skeleton.writer import Push, Writer

V = TypeVar("V")


class Operation(NamedTuple):
    """An operation of the table, or a function of the program, which is declared associative."""

    name: str
    """Of an operation of the table its name there, such as `add`; else that of the function."""
    is_function: bool = False

    def __str__(self) -> str:
        return self.name

    def is_defined(self, type_: ValueType) -> bool:
        """True if the operation has a meaning for values of a type."""
        return self.is_function or (
            isinstance(type_, Type) and self.name in (FLOATS if type_.is_float else INTEGERS)
        )

    def identity(self, type_: Type) -> int:
        """The bits of its result for no values at all; it is no function."""
        if type_.is_float:
            return from_float(type_, FLOATS[self.name])
        largest = type_.mask >> 1
        return {"min": largest, "max": largest + 1}.get(self.name, INTEGERS[self.name] & type_.mask)

    def neutral(self, type_: Type) -> int:
        """The bits of a left operand whose combination with a number is that number; it is no
        function. Of sums of floats that is -0, since 0 + -0 is 0."""
        if type_.is_float and self.name == "add":
            return from_float(type_, -0.0)
        return self.identity(type_)

    def combine(self, writer: Writer, into: Sequence[int], right: Push, type_: ValueType) -> None:
        """Generate code that combines the left operand with the right one. `into`: the locals of
        the left one, one for an operation of the table; `type_`: their type."""
        if not self.is_function and self.name in ("min", "max") and not type_.is_float:
            (local,) = into
            self._choose(writer, local, right, type_)
            return
        writer.get(*into)
        right()
        if self.is_function:
            writer.emit("call", self.name)
        else:
            writer.emit(f"{type_}.{self.name}")
        writer.set(*into)

    def value(self, m: Emitter[V], type_: Type, left: V, right: V) -> V:
        """The combination of two values, which the code of `combine` computes; it is no
        function."""
        if self.name in ("min", "max") and not type_.is_float:
            condition = Condition.LT_S if self.name == "min" else Condition.GT_S
            return m.select(m.compare(type_, condition, left, right), left, right)
        found = BY_MNEMONIC[f"{type_}.{self.name}"].meaning(m, left, right)
        return cast(V, found)

    def _choose(self, writer: Writer, into: int, right: Push, type_: ValueType) -> None:
        """The minimum or maximum of integers."""
        over, other = writer.label(), writer.local(type_)
        right()
        writer.set(other)
        writer.get(other, into)
        writer.emit(f"{type_}.{'lt_s' if self.name == 'min' else 'gt_s'}")
        writer.emit("jump_unless", over)
        writer.get(other)
        writer.set(into)
        writer.place(over)


FLOATS = {"add": 0.0, "mul": 1.0, "min": math.inf, "max": -math.inf}
"""The operations of floats, with their identities."""

INTEGERS = {"add": 0, "mul": 1, "min": 0, "max": 0, "and": -1, "or": 0, "xor": 0}
"""The operations of integers, with their identities; those of `min` and `max` are the largest and
the smallest value of the type."""
