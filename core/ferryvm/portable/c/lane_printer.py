# SPDX-License-Identifier: Apache-2.0
"""Prints a function in plain form as C11 for gcc and clang, with its sums side by side as vectors
of GNU C."""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.ir.c.context import PrintingContext
from ferryvm.ir.graph import Operation, Parameter
from ferryvm.ir.loop.natural import find_loops
from ferryvm.portable.c.lanes import LANES, Packed, Sums, dead_operations, find_sums
from ferryvm.portable.c.source import PlainPrinter
from ferryvm.portable.plain import PlainFunction

_OPERATOR = {"fadd": "+", "fsub": "-", "fmul": "*"}


class LanePrinter(PlainPrinter):
    """Prints a function in plain form with vectors."""

    def __init__(self, shared: PrintingContext, function: PlainFunction) -> None:
        super().__init__(shared, function)
        sums = find_sums(function.body, find_loops(function.body))
        self._dead = dead_operations(function.body, sums)
        self._sums = {each.last: (each, self.scope.name("q")) for each in sums}

    def _name_parameters(self) -> None:
        super()._name_parameters()
        for sums, name in self._sums.values():
            lane = f"LANE_{str(sums.type).upper()}"
            self.shared.helpers |= {f"lanes_{sums.type}", "UNROLLED"}
            for number, (parameter, next_) in enumerate(
                zip(sums.parameters, sums.root.values, strict=True)
            ):
                text = self.scope.helper(lane, name, str(number))
                self.names[parameter] = self.names[next_] = text

    def _prologue(self, joined: Sequence[Parameter]) -> list[str]:
        scalars = [each for each in joined if not self.names[each].startswith("LANE_")]
        return [
            *super()._prologue(scalars),
            *(
                f"lanes_{sums.type} {name}[{_vectors(sums)}] = {{{{0}}}};"
                for sums, name in self._sums.values()
            ),
        ]

    def _operation(self, operation: Operation) -> None:
        if operation not in self._dead:
            super()._operation(operation)
        elif operation in self._sums:
            self._add_up(*self._sums[operation])

    def _add_up(self, sums: Sums, name: str) -> None:
        """Compute the next values, vector by vector."""
        lines, at = self.scope.lines, self.scope.name("k")
        lines.add("UNROLLED")
        lines.open(f"for (uint64_t {at} = 0; {at} < {_vectors(sums)}; ++{at}) {{")
        lines.add(f"{name}[{at}] = {self._vector(sums, sums.root, f'{name}[{at}]', at)};")
        lines.close()

    def _vector(self, sums: Sums, packed: Packed, own: str, at: str) -> str:
        """The expression of a vector, or of the number in all of its lanes; what it needs is
        printed before."""
        first = packed.values[0]
        if packed.values == sums.parameters:
            return own
        if packed.values[1] is first:
            return self.scope.value(first)
        assert isinstance(first, Operation)
        if first.name == "array_load":
            pointer, index = map(self.scope.value, first.arguments)
            made, width = self.scope.name("x"), f"WIDE_{str(sums.type).upper()}"
            self.scope.lines.add(f"lanes_{sums.type} {made};")
            address = f"{pointer} + {index} + {at} * {width}"
            self.scope.lines.add(f"__builtin_memcpy(&{made}, {address}, sizeof {made});")
            return made
        a, b = (self._vector(sums, each, own, at) for each in packed.operands)
        text = f"{a} {_OPERATOR[first.name]} {b}"
        if packed is sums.root:
            return text
        made = self.scope.name("x")  # a product that is added has a name: see `inlining`
        self.scope.lines.add(f"const lanes_{sums.type} {made} = {text};")
        return made


def _vectors(sums: Sums) -> str:
    """The number of vectors of a group."""
    return f"{LANES} / WIDE_{str(sums.type).upper()}"
