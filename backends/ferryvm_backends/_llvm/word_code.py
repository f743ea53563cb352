# SPDX-License-Identifier: Apache-2.0
"""Native functions over words in memory, as the collector and the records of launches need them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ferryvm.isa.type import WORD_BYTES
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, word

_POINTER = ir.PointerType()


class WordCode:
    """Code with variables in memory, which LLVM puts into registers."""

    def __init__(self, function: ir.Function) -> None:
        self._entry = function.append_basic_block("entry")
        self.builder = ir.IRBuilder(self._entry)
        start = function.append_basic_block("start")
        self.builder.branch(start)
        self.builder.position_at_end(start)
        self.function = function

    def variable(self, value: ir.Value) -> ir.Place:
        """A variable with a first value."""
        with self.builder.goto_block(self._entry):  # or each iteration takes more of the stack
            place = self.builder.alloca(WORD)
        self.builder.store(value, place)
        return place

    def at(self, address: ir.Value, offset: int = 0) -> ir.Value:
        """The word at an address."""
        if offset:
            address = self.builder.add(address, word(offset))
        pointer = self.builder.inttoptr(address, _POINTER)
        return self.builder.load(pointer, align=WORD_BYTES, typ=WORD)

    def put(self, value: ir.Value, address: ir.Value, offset: int = 0) -> None:
        """Store a word at an address."""
        if offset:
            address = self.builder.add(address, word(offset))
        self.builder.store(value, self.builder.inttoptr(address, _POINTER), align=WORD_BYTES)

    def element(self, first: ir.Value, number: ir.Value) -> ir.Value:
        """The address of one of the words from an address on."""
        return self.builder.add(first, self.builder.shl(number, word(3)))

    @contextmanager
    def while_(self, condition: Callable[[], ir.Value]) -> Iterator[None]:
        """A loop."""
        builder, function = self.builder, self.function
        head, body, done = (function.append_basic_block(n) for n in ("head", "body", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        builder.cbranch(condition(), body, done)
        builder.position_at_end(body)
        yield
        builder.branch(head)
        builder.position_at_end(done)

    @contextmanager
    def each(self, count: ir.Value) -> Iterator[ir.Value]:
        """A loop with a number from 0 up."""
        number = self.variable(word(0))
        with self.while_(lambda: self.builder.icmp_unsigned("<", self.builder.load(number), count)):
            current = self.builder.load(number)
            yield current
            self.builder.store(self.builder.add(current, word(1)), number)
