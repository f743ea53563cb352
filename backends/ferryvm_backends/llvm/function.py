# SPDX-License-Identifier: Apache-2.0
"""One native function while a body is lowered into it: the context of the parts that do so."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

from ferryvm.ir.graph import Boolean, Constant, Value
from ferryvm.isa.type import WORD_BYTES
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import I1, StraightLineArithmetic, word
from ferryvm_backends.llvm.context import LoweringContext
from ferryvm_backends.llvm.storage import Storage
from ferryvm_backends.llvm.variant import Variant

RARELY = (1, 1 << 20)
"""Branch weights of a check that fails."""


class FunctionContext:
    """The block to which code is appended, and the lowered values of the IR."""

    def __init__(self, shared: LoweringContext, variant: Variant, builder: ir.IRBuilder) -> None:
        """`builder`: in the block of a native function where the body starts."""
        self.shared, self.variant, self.body = shared, variant, variant.body
        self.builder, self.native = builder, builder.function
        self.storage = Storage(builder)
        self.arithmetic = StraightLineArithmetic(builder)
        self.control = self.native.args[0]
        self.values: dict[Value, ir.Value] = {}
        """The values lowered so far."""
        self._start = builder.block

    def value(self, value: Value) -> ir.Value:
        """The LLVM value that a value of the IR has become."""
        if isinstance(value, Constant):
            if isinstance(value.type, Boolean):
                return ir.Constant(I1, value.bits)
            return self.arithmetic.constant(value.type, value.bits)
        return self.values[value]

    def block(self, name: str) -> ir.Block:
        """A new block of the function."""
        return self.native.append_basic_block(name)

    @contextmanager
    def rarely(self, p: ir.Value, name: str, onward: ir.Block | None = None) -> Iterator[ir.Block]:
        """A block for code that runs only if `p` holds, which is rare; it must terminate the block.

        Yields the block for the other case, which is `onward` if that is given; lowering continues
        there.
        """
        rare = self.block(name)
        if onward is None:
            onward = self.block("on")
        self.builder.cbranch(p, rare, onward, RARELY)
        self.builder.position_at_end(rare)
        yield onward
        self.builder.position_at_end(onward)

    # --- addresses, found where the body starts if it uses them at all ----------------------

    @contextmanager
    def _at_start(self) -> Iterator[None]:
        with self.builder.goto_block(self._start):
            yield

    @functools.cached_property
    def frame(self) -> ir.Value:
        """Address of the frame's first parameter."""
        if not self.body.is_root:
            return self.native.args[1]
        with self._at_start():
            fp = self.storage.field(self.control, "fp")
            stack = self.storage.field(self.control, "stack")
            first = self.builder.sub(fp, word(self.body.parameters))
            return self.builder.add(stack, self.builder.shl(first, word(3)))

    @functools.cached_property
    def heap(self) -> ir.Value:
        """Pointer to the heap."""
        with self._at_start():
            return self.storage.pointer(self.storage.field(self.control, "heap"))

    @functools.cached_property
    def objects(self) -> ir.Value:
        """Pointer to the object space."""
        with self._at_start():
            return self.storage.pointer(self.storage.field(self.control, "objects"))

    @functools.cached_property
    def statics(self) -> ir.Value:
        """Pointer to the statics."""
        with self._at_start():
            return self.storage.pointer(self.storage.field(self.control, "statics"))

    def frame_word(self, place: int) -> ir.Value:
        """Pointer to a word of the frame."""
        return self.storage.offset(self._frame_pointer, WORD_BYTES * place)

    @functools.cached_property
    def _frame_pointer(self) -> ir.Value:
        frame = self.frame
        with self._at_start():
            return self.storage.pointer(frame)

    def static(self, number: int) -> ir.Value:
        """Pointer to a static."""
        return self.storage.offset(self.statics, WORD_BYTES * number)
