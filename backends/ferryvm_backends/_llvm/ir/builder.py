# SPDX-License-Identifier: Apache-2.0
"""Instructions of LLVM IR: a method for each, which adds a line to a block and returns the
value."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from ferryvm_backends._llvm.ir.module import Block, Module, PhiInstr, SwitchInstr
from ferryvm_backends._llvm.ir.value import (
    BOOLEAN,
    POINTER,
    VOID,
    Callee,
    LiteralStructType,
    Place,
    Type,
    Value,
    VectorType,
)


class _Ended(list[str]):
    """The lines of a block that has ended."""

    def append(self, line: str) -> NoReturn:
        raise ValueError(f"the block has ended in front of {line!r}")


_ENDED = _Ended()


def _binary(operation: str) -> Callable[..., Value]:
    def build(self: IRBuilder, a: Value, b: Value, flags: Sequence[str] = ()) -> Value:
        if flags:
            text = f"{operation} {' '.join(flags)} {a.type.text} {a.reference}, {b.reference}"
        else:
            text = f"{operation} {a.type.text} {a.reference}, {b.reference}"
        return self._value(a.type, text)

    return build


def _cast(operation: str) -> Callable[[IRBuilder, Value, Type], Value]:
    def build(self: IRBuilder, a: Value, to: Type) -> Value:
        if a.type.text == to.text:
            return a
        return self._value(to, f"{operation} {a.type.text} {a.reference} to {to.text}")

    return build


def _comparison(operation: str, prefix: str, equality: str) -> Callable[..., Value]:
    """`prefix`: of the names of orders, `equality`: of `eq` and `ne`."""
    names = {"==": f"{equality}eq", "!=": f"{equality}ne"}
    orders = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
    names |= {sign: prefix + order for sign, order in orders.items()}

    def build(self: IRBuilder, sign: str, a: Value, b: Value) -> Value:
        text = f"{operation} {names[sign]} {a.type.text} {a.reference}, {b.reference}"
        kind = VectorType(BOOLEAN, a.type.count) if isinstance(a.type, VectorType) else BOOLEAN
        return self._value(kind, text)

    return build


class IRBuilder:
    """Adds instructions to a block; each method adds that of its name, and returns its value."""

    def __init__(self, block: Block) -> None:
        self.position_at_end(block)

    @property
    def module(self) -> Module:
        """The module that is built."""
        return self.function.module

    def position_at_end(self, block: Block) -> None:
        """Go on at the end of a block."""
        self.block, self.function = block, block.function
        self._lines = block.lines if block.end is None else _ENDED

    @contextlib.contextmanager
    def goto_block(self, block: Block) -> Iterator[None]:
        """In the context, append to a block, before its terminator if it has one."""
        here = self.block
        self.position_at_end(block)
        self._lines = block.lines
        try:
            yield
        finally:
            self.position_at_end(here)

    def _value(self, kind: Type, text: str) -> Value:
        reference = self.function.new_reference()
        self._lines.append(f"{reference} = {text}")
        return Value(kind, reference)

    # --- arithmetic -------------------------------------------------------------------------

    add, sub, mul = _binary("add"), _binary("sub"), _binary("mul")
    sdiv, udiv, srem, urem = _binary("sdiv"), _binary("udiv"), _binary("srem"), _binary("urem")
    and_, or_, xor = _binary("and"), _binary("or"), _binary("xor")
    shl, ashr, lshr = _binary("shl"), _binary("ashr"), _binary("lshr")
    fadd, fsub, fmul, fdiv = _binary("fadd"), _binary("fsub"), _binary("fmul"), _binary("fdiv")

    trunc, zext, sext = _cast("trunc"), _cast("zext"), _cast("sext")
    sitofp, uitofp, fptosi, fptoui = (
        _cast("sitofp"),
        _cast("uitofp"),
        _cast("fptosi"),
        _cast("fptoui"),
    )
    fpext, fptrunc, bitcast = _cast("fpext"), _cast("fptrunc"), _cast("bitcast")
    ptrtoint, inttoptr = _cast("ptrtoint"), _cast("inttoptr")

    icmp_signed = _comparison("icmp", "s", "")
    icmp_unsigned = _comparison("icmp", "u", "")
    fcmp_ordered = _comparison("fcmp", "o", "o")
    fcmp_unordered = _comparison("fcmp", "u", "u")

    def not_(self, a: Value) -> Value:
        ones = "splat (i1 true)" if isinstance(a.type, VectorType) else "-1"
        return self._value(a.type, f"xor {a.type.text} {a.reference}, {ones}")

    def freeze(self, a: Value) -> Value:
        return self._value(a.type, f"freeze {a.type.text} {a.reference}")

    def splat(self, a: Value, count: int) -> Value:
        """A vector of so many elements that are all `a`."""
        kind = VectorType(a.type, count)
        inserted = f"{a.type.text} {a.reference}, i32 0"
        first = self._value(kind, f"insertelement {kind.text} poison, {inserted}")
        places = f"<{count} x i32> zeroinitializer"
        text = f"shufflevector {kind.text} {first.reference}, {kind.text} poison, {places}"
        return self._value(kind, text)

    def permuted(self, a: Value, b: Value, places: Sequence[int]) -> Value:
        """The vector of the elements at some places of two vectors of one type, one after the
        other."""
        assert isinstance(a.type, VectorType)
        kind = VectorType(a.type.element, len(places))
        chosen = ", ".join(f"i32 {place}" for place in places)
        pair = f"{a.type.text} {a.reference}, {b.type.text} {b.reference}"
        return self._value(kind, f"shufflevector {pair}, <{len(places)} x i32> <{chosen}>")

    def select(self, p: Value, a: Value, b: Value) -> Value:
        kind = a.type.text
        text = (
            f"select {p.type.text} {p.reference}, {kind} {a.reference}, {b.type.text} {b.reference}"
        )
        return self._value(a.type, text)

    def extract_value(self, a: Value, number: int) -> Value:
        assert isinstance(a.type, LiteralStructType)
        text = f"extractvalue {a.type.text} {a.reference}, {number}"
        return self._value(a.type.elements[number], text)

    def insert_value(self, a: Value, value: Value, number: int) -> Value:
        what = f"{value.type.text} {value.reference}"
        return self._value(a.type, f"insertvalue {a.type.text} {a.reference}, {what}, {number}")

    def phi(self, kind: Type) -> PhiInstr:
        phi = PhiInstr(kind, self.function.new_reference())
        self.block.phis.append(phi)
        return phi

    # --- memory -----------------------------------------------------------------------------

    def alloca(self, kind: Type, align: int = 0) -> Place:
        reference = self.function.new_reference()
        suffix = f", align {align}" if align else ""
        self._lines.append(f"{reference} = alloca {kind.text}{suffix}")
        return Place(reference, kind)

    def gep(self, pointer: Value, indices: Sequence[Value], source_etype: Type) -> Value:
        places = ", ".join(f"{index.type.text} {index.reference}" for index in indices)
        text = f"getelementptr {source_etype.text}, ptr {pointer.reference}, {places}"
        vector = next((i.type for i in indices if isinstance(i.type, VectorType)), None)
        kind = POINTER if vector is None else VectorType(POINTER, vector.count)
        return self._value(kind, text)

    def load(
        self, pointer: Value, align: int = 0, typ: Type | None = None, metadata: str = ""
    ) -> Value:
        """`typ`: if it is not that of the place. `metadata`: such as `!tbaa !1`."""
        if typ is None:
            assert isinstance(pointer, Place)
            typ = pointer.value_type
        text = f"load {typ.text}, ptr {pointer.reference}{_suffix(align, metadata)}"
        return self._value(typ, text)

    def load_atomic(self, pointer: Value, ordering: str, align: int, typ: Type) -> Value:
        text = f"load atomic {typ.text}, ptr {pointer.reference} {ordering}, align {align}"
        return self._value(typ, text)

    def store(self, value: Value, pointer: Value, align: int = 0, metadata: str = "") -> None:
        what = f"{value.type.text} {value.reference}"
        self._lines.append(f"store {what}, ptr {pointer.reference}{_suffix(align, metadata)}")

    def atomic_rmw(
        self, operation: str, pointer: Value, value: Value, ordering: str, align: int
    ) -> Value:
        """The former value. `operation`: such as `add` or `umin`."""
        what = f"{value.type.text} {value.reference}"
        text = f"atomicrmw {operation} ptr {pointer.reference}, {what} {ordering}, align {align}"
        return self._value(value.type, text)

    def cmpxchg(
        self, pointer: Value, expected: Value, value: Value, ordering: str, align: int
    ) -> Value:
        """The former value."""
        kind = value.type.text
        text = (
            f"cmpxchg ptr {pointer.reference}, {kind} {expected.reference}, {kind} "
            f"{value.reference} {ordering} {ordering}, align {align}"
        )
        return self.extract_value(self._value(LiteralStructType([value.type, BOOLEAN]), text), 0)

    def fence(self, ordering: str) -> None:
        self._lines.append(f"fence {ordering}")

    # --- control ----------------------------------------------------------------------------

    def call(
        self,
        callee: Callee,
        arguments: Sequence[Value],
        cconv: str = "",
        tail: str = "",
        metadata: str = "",
    ) -> Value:
        callee.calls += 1
        result = callee.signature.result
        given = ", ".join([f"{each.type.text} {each.reference}" for each in arguments])
        words = f"{tail} call {cconv}" if tail or cconv else "call"
        text = f"{words} {result.text} {callee.reference}({given}){_suffix(0, metadata)}"
        if result.text != "void":
            return self._value(result, text)
        self._lines.append(text)
        return Value(VOID, "")

    def _end(self, end: str | SwitchInstr) -> None:
        if self._lines is not self.block.lines or self.block.end is not None:
            raise ValueError(f"the block has ended in front of {end}")
        self.block.end, self._lines = end, _ENDED

    def branch(self, to: Block) -> None:
        self._end(f"br label {to.reference}")

    def cbranch(
        self, p: Value, yes: Block, no: Block, weights: tuple[int, int] | None = None
    ) -> None:
        """`weights`: how often each is taken, in proportion."""
        suffix = ""
        if weights is not None:
            text = f'!"branch_weights", i32 {weights[0]}, i32 {weights[1]}'
            suffix = f", !prof {self.module.add_metadata(text)}"
        self._end(f"br i1 {p.reference}, label {yes.reference}, label {no.reference}{suffix}")

    def switch(self, value: Value, default: Block) -> SwitchInstr:
        switch = SwitchInstr(value, default)
        self._end(switch)
        return switch

    def ret(self, value: Value) -> None:
        self._end(f"ret {value.type.text} {value.reference}")

    def ret_void(self) -> None:
        self._end("ret void")

    def unreachable(self) -> None:
        self._end("unreachable")

    @contextlib.contextmanager
    def if_then(self, p: Value, likely: bool | None = None) -> Iterator[None]:
        """In the context, append to a block that runs only if `p` holds; afterwards to the join."""
        name = self.block.name
        yes = self.function.append_basic_block(f"{name}.if")
        onward = self.function.append_basic_block(f"{name}.endif")
        weights = {None: None, True: (99, 1), False: (1, 99)}[likely]
        self.cbranch(p, yes, onward, weights)
        self.position_at_end(yes)
        yield
        if self.block.end is None:
            self.branch(onward)
        self.position_at_end(onward)


def _suffix(align: int, metadata: str) -> str:
    if align:
        return f", align {align}, {metadata}" if metadata else f", align {align}"
    return f", {metadata}" if metadata else ""
