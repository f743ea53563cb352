# SPDX-License-Identifier: Apache-2.0
"""The emitter protocol: the operations in which meanings of instructions are written.

A meaning is a Python function that is run against an emitter (the "tagless final" style). The
emitter defines what a value `V` is: a bit pattern in the reference backend, an LLVM value in the
handler builders, text in the documentation. Consequences for a meaning:

- it may not look at a value (no Python `if` on one); choices are `select` and `trap_if`;
- every `trap_if`, `grow_if`, `allocate_if` comes before the first effect (store, set, leave), so
  that a trap leaves the state as it was before the instruction;
- preconditions stated below (shift counts below the width, divisors not zero) are the meaning's
  to establish: an emitter may assume them.

Values are typed: `t` arguments name the operand type. Boolean values (`Boolean`) are distinct from
i32: they come from comparisons and go to `select`, `trap_if`, `jump_if` or `boolean_to_i32`. A
*slot* is a word of unknown type, as it stands in memory; references are slots, too.
"""

from __future__ import annotations

import abc
import enum
from typing import Generic, TypeVar

from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import Type

V = TypeVar("V")


class Condition(enum.Enum):
    """Comparison conditions; `_s` signed and `_u` unsigned for integers, bare for floats.

    Float conditions are false when an operand is NaN, except NE, which is true.
    """

    EQ = "eq"
    NE = "ne"
    LT_S = "lt_s"
    LT_U = "lt_u"
    GT_S = "gt_s"
    GT_U = "gt_u"
    LE_S = "le_s"
    LE_U = "le_u"
    GE_S = "ge_s"
    GE_U = "ge_u"
    LT = "lt"
    GT = "gt"
    LE = "le"
    GE = "ge"

    __hash__ = object.__hash__  # members are singletons, and are hashed very often


class Atomic(enum.Enum):
    """Atomic updates of an element by an operand; `_s` compare signed and `_u` unsigned."""

    ADD = "add"
    MIN_S = "min_s"
    MIN_U = "min_u"
    MAX_S = "max_s"
    MAX_U = "max_u"
    AND = "and"
    OR = "or"
    EXCHANGE = "exchange"
    """The operand replaces the element."""


class FunctionField(enum.IntEnum):
    """Words of a function's descriptor, as calls read it (see docs/architecture.md)."""

    ENTRY = 0
    """pc of the first instruction."""
    PARAMETERS = 1
    """number of parameters."""
    LOCALS = 2
    """number of locals, parameters not included."""
    FRAME = 3
    """words of the largest frame from its header on: header, locals and deepest operand stack."""
    SIGNATURE = 4
    """number of the signature, equal for equal parameter and result types."""


class PureEmitter(abc.ABC, Generic[V]):
    """Operations without effects: their results depend on their operands alone."""

    # --- constants and integers -------------------------------------------------------------

    @abc.abstractmethod
    def constant(self, t: Type, bits: int) -> V:
        """The value of type `t` with this bit pattern."""

    @abc.abstractmethod
    def add(self, t: Type, a: V, b: V) -> V:
        """Sum modulo 2^width."""

    @abc.abstractmethod
    def sub(self, t: Type, a: V, b: V) -> V:
        """Difference modulo 2^width."""

    @abc.abstractmethod
    def mul(self, t: Type, a: V, b: V) -> V:
        """Product modulo 2^width."""

    @abc.abstractmethod
    def add_overflows(self, t: Type, a: V, b: V) -> V:
        """The boolean: the exact sum of `a` and `b`, both signed, does not fit."""

    @abc.abstractmethod
    def sub_overflows(self, t: Type, a: V, b: V) -> V:
        """The boolean: the exact difference does not fit; as `add_overflows`."""

    @abc.abstractmethod
    def mul_overflows(self, t: Type, a: V, b: V) -> V:
        """The boolean: the exact product does not fit; as `add_overflows`."""

    @abc.abstractmethod
    def div_s(self, t: Type, a: V, b: V) -> V:
        """Signed quotient toward zero; `b` is not 0 and the quotient fits."""

    @abc.abstractmethod
    def div_u(self, t: Type, a: V, b: V) -> V:
        """Unsigned quotient; `b` is not 0."""

    @abc.abstractmethod
    def rem_s(self, t: Type, a: V, b: V) -> V:
        """Signed remainder with the dividend's sign; `b` is not 0, and not -1."""

    @abc.abstractmethod
    def rem_u(self, t: Type, a: V, b: V) -> V:
        """Unsigned remainder; `b` is not 0."""

    @abc.abstractmethod
    def bit_and(self, t: Type, a: V, b: V) -> V:
        """Bitwise and."""

    @abc.abstractmethod
    def bit_or(self, t: Type, a: V, b: V) -> V:
        """Bitwise or."""

    @abc.abstractmethod
    def bit_xor(self, t: Type, a: V, b: V) -> V:
        """Bitwise exclusive or."""

    @abc.abstractmethod
    def shl(self, t: Type, a: V, b: V) -> V:
        """Left shift; `b` is below the width."""

    @abc.abstractmethod
    def shr_s(self, t: Type, a: V, b: V) -> V:
        """Arithmetic right shift; `b` is below the width."""

    @abc.abstractmethod
    def shr_u(self, t: Type, a: V, b: V) -> V:
        """Logical right shift; `b` is below the width."""

    @abc.abstractmethod
    def clz(self, t: Type, a: V) -> V:
        """Number of leading zero bits; the width for 0."""

    @abc.abstractmethod
    def ctz(self, t: Type, a: V) -> V:
        """Number of trailing zero bits; the width for 0."""

    @abc.abstractmethod
    def popcnt(self, t: Type, a: V) -> V:
        """Number of one bits."""

    # --- boolean ------------------------------------------------------------------------------

    @abc.abstractmethod
    def compare(self, t: Type, condition: Condition, a: V, b: V) -> V:
        """The boolean of `a condition b`."""

    @abc.abstractmethod
    def all(self, p: V, q: V) -> V:
        """True if both hold."""

    @abc.abstractmethod
    def any(self, p: V, q: V) -> V:
        """True if at least one holds."""

    @abc.abstractmethod
    def none(self, p: V) -> V:
        """True if `p` does not hold."""

    @abc.abstractmethod
    def boolean_to_i32(self, p: V) -> V:
        """i32 1 if `p` holds, else 0."""

    @abc.abstractmethod
    def select(self, p: V, a: V, b: V) -> V:
        """`a` if `p` holds, else `b`; both of one type, or both slots."""

    @abc.abstractmethod
    def lookup(self, table: ConstantTable, index: V) -> V:
        """The constant with a number, an integer as wide as the table's type, modulo their
        number."""

    # --- floats -----------------------------------------------------------------------------

    @abc.abstractmethod
    def fadd(self, t: Type, a: V, b: V) -> V:
        """IEEE 754 sum, to nearest even; the bits of a NaN result are unspecified."""

    @abc.abstractmethod
    def fsub(self, t: Type, a: V, b: V) -> V:
        """IEEE 754 difference; as `fadd`."""

    @abc.abstractmethod
    def fmul(self, t: Type, a: V, b: V) -> V:
        """IEEE 754 product; as `fadd`."""

    @abc.abstractmethod
    def fdiv(self, t: Type, a: V, b: V) -> V:
        """IEEE 754 quotient; as `fadd`."""

    @abc.abstractmethod
    def ffma(self, t: Type, a: V, b: V, c: V) -> V:
        """IEEE 754 fusedMultiplyAdd: `a * b + c`, rounded once; as `fadd`."""

    @abc.abstractmethod
    def fsqrt(self, t: Type, a: V) -> V:
        """Correctly rounded square root; as `fadd`."""

    @abc.abstractmethod
    def fceil(self, t: Type, a: V) -> V:
        """Nearest integral value not below; as `fadd`."""

    @abc.abstractmethod
    def ffloor(self, t: Type, a: V) -> V:
        """Nearest integral value not above; as `fadd`."""

    @abc.abstractmethod
    def ftrunc(self, t: Type, a: V) -> V:
        """Integral value toward zero; as `fadd`."""

    @abc.abstractmethod
    def fnearest(self, t: Type, a: V) -> V:
        """Nearest integral value, ties to even; as `fadd`."""

    @abc.abstractmethod
    def apply(self, function: PureFunction, *arguments: V) -> V:
        """The result of a function: what its meaning returns for this emitter."""

    def apply_if(self, p: V, function: PureFunction, otherwise: V, *arguments: V) -> V:
        """The result of a function if `p` holds, else `otherwise`; for a `p` that rarely holds. An
        emitter may branch over the function; here both are computed and one is selected."""
        return self.select(p, self.apply(function, *arguments), otherwise)

    # --- conversions ------------------------------------------------------------------------

    @abc.abstractmethod
    def wrap(self, a: V) -> V:
        """Low half of an i64, as i32."""

    @abc.abstractmethod
    def extend_s(self, a: V) -> V:
        """i32 to i64 by sign."""

    @abc.abstractmethod
    def extend_u(self, a: V) -> V:
        """i32 to i64 by zeros."""

    @abc.abstractmethod
    def to_float_s(self, to: Type, t: Type, a: V) -> V:
        """Signed integer of type `t` to float `to`, to nearest even."""

    @abc.abstractmethod
    def to_float_u(self, to: Type, t: Type, a: V) -> V:
        """Unsigned integer of type `t` to float `to`, to nearest even."""

    @abc.abstractmethod
    def to_int_s(self, to: Type, t: Type, a: V) -> V:
        """Float of type `t` to signed integer `to`, toward zero; the result fits."""

    @abc.abstractmethod
    def to_int_u(self, to: Type, t: Type, a: V) -> V:
        """Float of type `t` to unsigned integer `to`, toward zero; the result fits."""

    @abc.abstractmethod
    def promote(self, a: V) -> V:
        """f32 to f64; the bits of a NaN result are unspecified."""

    @abc.abstractmethod
    def demote(self, a: V) -> V:
        """f64 to f32, to nearest even; the bits of a NaN result are unspecified."""

    @abc.abstractmethod
    def reinterpret(self, to: Type, t: Type, a: V) -> V:
        """The same bits as another type of the same width."""

    @abc.abstractmethod
    def to_slot(self, t: Type, a: V) -> V:
        """The word in which a value of type `t` stands in memory."""

    @abc.abstractmethod
    def from_slot(self, t: Type, a: V) -> V:
        """The value of type `t` in a word."""


class Emitter(PureEmitter[V]):
    """Operations over values `V`. One method is one machine-level idea; none has policy."""

    # --- leaving ----------------------------------------------------------------------------

    @abc.abstractmethod
    def trap_if(self, p: V, kind: Trap) -> None:
        """Leave with TRAP in the state before this instruction, if `p` holds."""

    @abc.abstractmethod
    def trap(self, kind: Trap) -> None:
        """Leave with TRAP; nothing follows."""

    @abc.abstractmethod
    def grow_if(self, p: V, wanted: V) -> None:
        """Leave with GROW in the state before this instruction, if `p` holds.

        `wanted` is the heap size in bytes that the instruction needs.
        """

    @abc.abstractmethod
    def continue_launch_if(self, p: V) -> None:
        """Leave with LAUNCH in the state before this instruction, if `p` holds."""

    @abc.abstractmethod
    def halt(self) -> None:
        """Leave with HALT at this instruction; nothing follows."""

    @abc.abstractmethod
    def host(self, number: V) -> None:
        """Leave with HOST at this instruction, for host import `number`; nothing follows."""

    @abc.abstractmethod
    def throw(self) -> None:
        """Leave with THROW at this instruction, or continue at the handler; nothing follows."""

    # --- storage ----------------------------------------------------------------------------

    @abc.abstractmethod
    def local(self, index: V) -> V:
        """The slot of a local of the running function."""

    @abc.abstractmethod
    def set_local(self, index: V, slot: V) -> None:
        """Store into a local."""

    @abc.abstractmethod
    def static(self, index: V) -> V:
        """The slot of a static; `index` is in range."""

    @abc.abstractmethod
    def set_static(self, index: V, slot: V) -> None:
        """Store into a static; `index` is in range."""

    @abc.abstractmethod
    def static_count(self) -> V:
        """Number of statics, i64."""

    @abc.abstractmethod
    def heap_load(self, bytes_: int, address: V) -> V:
        """`bytes_` (1, 2, 4, 8) bytes at an address in bounds, zero-extended to i64."""

    @abc.abstractmethod
    def heap_store(self, bytes_: int, address: V, value: V) -> None:
        """Store the low `bytes_` bytes of the i64 `value` at an address in bounds."""

    @abc.abstractmethod
    def heap_pointer(self) -> V:
        """Bytes of the heap in use, i64."""

    @abc.abstractmethod
    def set_heap_pointer(self, value: V) -> None:
        """Set the number of heap bytes in use."""

    @abc.abstractmethod
    def heap_capacity(self) -> V:
        """Bytes of the heap that can be used without growing, i64."""

    # --- objects: see `ferryvm.isa.object` ------------------------------------------------------
    # Offsets are i64 bytes from the base of the object space, and legal: checks are the meaning's.

    @abc.abstractmethod
    def allocate_if(self, p: V, wanted: V, type_: V) -> None:
        """Leave with ALLOCATE in the state before this instruction, if `p` holds.

        `wanted` (i64) is the size in bytes of an object of type number `type_` (i64) that the
        instruction makes: header and elements, inside or outside of the object space (see
        `ferryvm.isa.object.outside_bytes`). An instruction that makes none fills or copies so many
        bytes of elements; the engine does most of it, and the instruction the rest."""

    @abc.abstractmethod
    def object_top(self) -> V:
        """Bytes of the object space in use, i64: the offset of the next object."""

    @abc.abstractmethod
    def object_end(self) -> V:
        """Bytes of the object space that can be used before a collection, i64. Those from
        `object_top` up are zero."""

    @abc.abstractmethod
    def set_object_top(self, value: V) -> None:
        """Set the number of bytes of the object space in use."""

    @abc.abstractmethod
    def object_load(self, bytes_: int, offset: V) -> V:
        """`bytes_` (1, 2, 4, 8) bytes at an offset in the object space, zero-extended to i64; 8
        bytes at offset 0, where there is no object, are 0."""

    @abc.abstractmethod
    def object_store(self, bytes_: int, offset: V, value: V) -> None:
        """Store the low `bytes_` bytes of the i64 `value` at an offset in the object space."""

    @abc.abstractmethod
    def object_store_words(self, offset: V, address: V, count: V) -> None:
        """Copy `count` (i64) words from a stack address up to an offset in the object space."""

    @abc.abstractmethod
    def prepared_place(self) -> V:
        """Place of elements that the engine has prepared for the object that the last
        `allocate_if` left for, i64; 0 if there are none. More than `LARGEST_TRANSFER` bytes
        have their first values already, others are zero."""

    @abc.abstractmethod
    def prepared_bytes(self) -> V:
        """Bytes at that place, i64."""

    @abc.abstractmethod
    def clear_prepared(self) -> None:
        """Set the prepared place to 0: it is taken, or belongs to no object."""

    @abc.abstractmethod
    def element_load(self, bytes_: int, place: V, offset: V) -> V:
        """`bytes_` bytes at `offset` (i64 bytes) in the elements at a place, zero-extended to
        i64."""

    @abc.abstractmethod
    def element_store(self, bytes_: int, place: V, offset: V, value: V) -> None:
        """Store the low `bytes_` bytes of the i64 `value` at `offset` in the elements at a
        place."""

    @abc.abstractmethod
    def update_element(self, kind: Atomic, bytes_: int, place: V, offset: V, operand: V) -> V:
        """Update `bytes_` (4, 8) bytes at `offset` in the elements at a place by the low bytes of
        the i64 `operand`, in one step that orders no other access; the former bytes, zero-extended
        to i64."""

    @abc.abstractmethod
    def compare_exchange_element(
        self, bytes_: int, place: V, offset: V, expected: V, value: V
    ) -> V:
        """As `update_element`: the low bytes of `value` replace the element if it equals those of
        `expected`."""

    @abc.abstractmethod
    def fill_elements(self, bytes_: int, place: V, offset: V, count: V, value: V) -> None:
        """Store the low `bytes_` bytes of the i64 `value` in each of `count` (i64) elements."""

    @abc.abstractmethod
    def move_elements(
        self, to_place: V, to_offset: V, from_place: V, from_offset: V, size: V
    ) -> None:
        """Copy `size` (i64) bytes of elements as if through a copy: source and destination may
        overlap."""

    @abc.abstractmethod
    def elements_from_heap(self, place: V, offset: V, address: V, size: V) -> None:
        """Copy `size` (i64) bytes from an address of the heap, in bounds, to elements."""

    @abc.abstractmethod
    def elements_to_heap(self, address: V, place: V, offset: V, size: V) -> None:
        """Copy `size` (i64) bytes of elements to an address of the heap, in bounds."""

    @abc.abstractmethod
    def type_word(self, type_: V, word: V) -> V:
        """A word (its number an i64) of the type row of a type number (i64), i64."""

    @abc.abstractmethod
    def pop_words(self, count: V) -> V:
        """Pop `count` (i64) words of the operand stack; the stack address of the deepest. They
        remain in memory up to the end of the instruction."""

    # --- control ----------------------------------------------------------------------------

    @abc.abstractmethod
    def jump(self, target: V) -> None:
        """Jump to a target immediate; nothing follows."""

    @abc.abstractmethod
    def jump_if(self, p: V, target: V) -> None:
        """Jump to a target immediate if `p` holds, else continue at the next instruction."""

    @abc.abstractmethod
    def skip(self, count: V) -> None:
        """Continue `count` (i64) instructions after the next one; nothing follows."""

    # --- frames: addresses are in bytes, in one space per execution ---------------------------

    @abc.abstractmethod
    def frame_pointer(self) -> V:
        """Address of the running function's frame, i64."""

    @abc.abstractmethod
    def stack_pointer(self) -> V:
        """Address past the operand stack once the operands are popped, i64.

        Everything below it is in memory."""

    @abc.abstractmethod
    def stack_limit(self) -> V:
        """Address past the stack segment, i64."""

    @abc.abstractmethod
    def word(self, address: V) -> V:
        """The slot at a stack address."""

    @abc.abstractmethod
    def set_word(self, address: V, slot: V) -> None:
        """Store a slot at a stack address."""

    @abc.abstractmethod
    def clear_words(self, address: V, count: V) -> None:
        """Zero `count` (i64) words from a stack address up."""

    @abc.abstractmethod
    def move_results(self, to: V, end: V, count: V) -> None:
        """Move the `count` (i64) words below the stack address `end` down to `to`, the lowest
        first. Where `count` is 0 the word at `to` may become anything: it is above the stack from
        then on."""

    @abc.abstractmethod
    def push_words(self, slot: V, address: V, count: V) -> None:
        """Push a slot, then the `count` (i64) words from a stack address up, which lie below."""

    @abc.abstractmethod
    def next_pc(self) -> V:
        """pc of the instruction after this one, as a slot."""

    @abc.abstractmethod
    def function(self, function: V, field: FunctionField) -> V:
        """A word of the descriptor of a function (an immediate or `table_function`), i64."""

    @abc.abstractmethod
    def table_size(self) -> V:
        """Number of entries of the function table, i64."""

    @abc.abstractmethod
    def table_function(self, index: V) -> V:
        """The function at an index (i64, in range) of the function table."""

    @abc.abstractmethod
    def enter(self, function: V, frame: V, stack: V) -> None:
        """Continue at a function's entry with these frame and stack addresses; nothing follows."""

    @abc.abstractmethod
    def resume(self, pc: V, frame: V, stack: V) -> None:
        """Continue at a pc taken from a frame header; nothing follows."""
