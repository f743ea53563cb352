# SPDX-License-Identifier: Apache-2.0
"""The pure operations of the emitter protocol over LLVM values.

A boolean is an i1, a slot an i64, a value of type t an LLVM value of the matching type. No
fast-math flag is ever set, so LLVM preserves IEEE 754 results; the meanings handle NaN payloads.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from ferryvm.architecture import IS_X86
from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.type import F32, F64, I32, I64, Type, to_float
from ferryvm_backends._llvm import ir

I1 = ir.IntType(1)
WORD = ir.IntType(64)
LLVM_TYPE: dict[Type, ir.Type] = {
    I32: ir.IntType(32),
    I64: WORD,
    F32: ir.FloatType(),
    F64: ir.DoubleType(),
}

_PREDICATE = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}


@functools.lru_cache(maxsize=1024)
def word(value: int) -> ir.Constant:
    """An i64 constant."""
    return ir.Constant(WORD, value)


_SHIFTED_SUMS = frozenset({3, 5, 9})
"""Factors for which a processor adds an operand and a multiple of it in one cycle (x86: lea)."""


def _factor(value: ir.Value) -> int | None:
    """The number that a constant is; None for other values."""
    is_number = isinstance(value, ir.Constant) and value.reference.isdecimal()
    return int(value.reference) if is_number else None


class Arithmetic(PureEmitter[ir.Value]):
    """Constants, integers, booleans, floats and conversions, at `self.builder`."""

    builder: ir.IRBuilder

    def _intrinsic(self, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
        parameters = [argument.type for argument in arguments]
        function = self.builder.module.intrinsic(name, result, parameters)
        return self.builder.call(function, arguments)

    def _as(self, t: Type, a: ir.Value) -> ir.Type:
        """The LLVM type of a value of type `t` that is computed from `a`."""
        return LLVM_TYPE[t]

    def constant(self, t: Type, bits: int) -> ir.Value:
        if not t.is_float:
            return ir.Constant(LLVM_TYPE[t], bits)
        value = to_float(t, bits)
        if math.isnan(value):  # the payload of a NaN does not survive a float constant
            return ir.Constant(LLVM_TYPE[t.integer], bits).bitcast(LLVM_TYPE[t])
        return ir.Constant(LLVM_TYPE[t], value)

    def add(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.add(a, b)

    def sub(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.sub(a, b)

    def mul(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.mul(a, b)

    def add_overflows(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self._overflows("sadd", t, a, b)

    def sub_overflows(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self._overflows("ssub", t, a, b)

    def mul_overflows(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        factor = _factor(b)
        if factor in _SHIFTED_SUMS:
            return self._is_outside(t, a, factor)
        return self._overflows("smul", t, a, b)

    def _is_outside(self, t: Type, a: ir.Value, factor: int) -> ir.Value:
        """True for an operand whose product with a constant overflows.

        The product is a plain one then: no multiplication with flags, which takes three cycles, is
        on the path to what uses it, and LLVM knows its range, in which `3 * a + 1` never overflows.
        """
        limit = 1 << t.bits - 1
        least, most = -(limit // factor), (limit - 1) // factor
        moved = self.builder.sub(a, ir.Constant(a.type, least))
        return self.builder.icmp_unsigned(">", moved, ir.Constant(a.type, most - least))

    def _overflows(self, name: str, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        """The overflow flag of an operation; LLVM joins it with the operation itself."""
        both = ir.LiteralStructType([a.type, I1])
        found = self._intrinsic(f"llvm.{name}.with.overflow.{t}", both, a, b)
        return self.builder.extract_value(found, 1)

    def div_s(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.sdiv(a, b)

    def div_u(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.udiv(a, b)

    def rem_s(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.srem(a, b)

    def rem_u(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.urem(a, b)

    def bit_and(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.and_(a, b)

    def bit_or(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.or_(a, b)

    def bit_xor(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.xor(a, b)

    def shl(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.shl(a, b)

    def shr_s(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.ashr(a, b)

    def shr_u(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.lshr(a, b)

    def clz(self, t: Type, a: ir.Value) -> ir.Value:
        return self._intrinsic(f"llvm.ctlz.{t}", a.type, a, ir.Constant(I1, 0))

    def ctz(self, t: Type, a: ir.Value) -> ir.Value:
        return self._intrinsic(f"llvm.cttz.{t}", a.type, a, ir.Constant(I1, 0))

    def popcnt(self, t: Type, a: ir.Value) -> ir.Value:
        return self._intrinsic(f"llvm.ctpop.{t}", a.type, a)

    def compare(self, t: Type, condition: Condition, a: ir.Value, b: ir.Value) -> ir.Value:
        base, _, sign = condition.value.partition("_")
        predicate = _PREDICATE[base]
        if t.is_float:
            if condition is Condition.NE:
                return self.builder.fcmp_unordered(predicate, a, b)
            return self.builder.fcmp_ordered(predicate, a, b)
        if sign == "u":
            return self.builder.icmp_unsigned(predicate, a, b)
        return self.builder.icmp_signed(predicate, a, b)

    def all(self, p: ir.Value, q: ir.Value) -> ir.Value:
        return self.builder.and_(p, q)

    def any(self, p: ir.Value, q: ir.Value) -> ir.Value:
        return self.builder.or_(p, q)

    def none(self, p: ir.Value) -> ir.Value:
        return self.builder.not_(p)

    def boolean_to_i32(self, p: ir.Value) -> ir.Value:
        return self.builder.zext(p, self._as(I32, p))

    def select(self, p: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.select(p, a, b)

    def lookup(self, table: ConstantTable, index: ir.Value) -> ir.Value:
        last = ir.Constant(LLVM_TYPE[table.type.integer], len(table) - 1)
        place = self.builder.and_(index, last)
        array = self._array(table)
        where = self.builder.gep(array, [place], LLVM_TYPE[table.type])
        return self.builder.load(where, typ=LLVM_TYPE[table.type])

    def _array(self, table: ConstantTable) -> ir.Value:
        """The constants of a table in memory, defined once in the module."""
        name = f"table {table}"
        found = self.builder.module.globals.get(name)
        if found is None:
            element = LLVM_TYPE[table.type]
            found = ir.GlobalVariable(self.builder.module, ir.ArrayType(element, len(table)), name)
            found.initializer = ir.Constant(found.value_type, self._constants(table))
            found.linkage, found.global_constant, found.align = "internal", True, 64
        return found

    def _constants(self, table: ConstantTable) -> list[ir.Value]:
        element = StraightLineArithmetic(self.builder)  # of lanes, too, these are no vectors
        return [element.constant(table.type, bits) for bits in table.bits]

    def fadd(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.fadd(a, b)

    def fsub(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.fsub(a, b)

    def fmul(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.fmul(a, b)

    def fdiv(self, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.fdiv(a, b)

    def ffma(self, t: Type, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        return self._intrinsic(f"llvm.fma.{t}", a.type, a, b, c)

    def fsqrt(self, t: Type, a: ir.Value) -> ir.Value:
        # LLVM folds `NaN if x < 0 else sqrt(x)` to sqrt(x); the fence preserves our canonical NaN.
        return self.fence(t, self.bare_root(t, a))

    def fence(self, t: Type, a: ir.Value) -> ir.Value:
        """A float that LLVM combines with nothing that it is computed from."""
        return self._intrinsic(f"llvm.arithmetic.fence.{t}", a.type, a)

    def bare_root(self, t: Type, a: ir.Value) -> ir.Value:
        """The square root for arithmetic alone, which LLVM computes in vectors."""
        return self._intrinsic(f"llvm.sqrt.{t}", a.type, a)

    def apply(self, function: PureFunction, *arguments: ir.Value) -> ir.Value:
        return self.builder.call(self._defined(function, arguments), arguments)

    def apply_if(
        self, p: ir.Value, function: PureFunction, otherwise: ir.Value, *arguments: ir.Value
    ) -> ir.Value:
        builder = self.builder
        before = builder.block
        applies = builder.function.append_basic_block("applies")
        onward = builder.function.append_basic_block("onward")
        builder.cbranch(self._some(p), applies, onward, (1, 1000))
        builder.position_at_end(applies)
        found = self._applied(p, function, otherwise, arguments)
        builder.branch(onward)
        builder.position_at_end(onward)
        result = builder.phi(otherwise.type)
        result.add_incoming(found, applies)
        result.add_incoming(otherwise, before)
        return result

    def _applied(
        self,
        p: ir.Value,
        function: PureFunction,
        otherwise: ir.Value,
        arguments: Sequence[ir.Value],
    ) -> ir.Value:
        """The result of `apply_if` where it applies the function."""
        applied = self._defined(function, arguments)
        applied.attributes |= {"cold", "noinline"}
        if function.is_exceptional:
            applied.attributes.add("optnone")
        # The function saves the registers that it uses, so constants stay in theirs.
        applied.calling_convention = "preserve_allcc"
        found = self.builder.call(applied, arguments, cconv=applied.calling_convention)
        return self.select(p, found, otherwise)

    def _some(self, p: ir.Value) -> ir.Value:
        """True if a boolean holds; of a vector, if one of them does."""
        return p

    def _shape(self, arguments: Sequence[ir.Value]) -> str:
        """The suffix of a function's name that tells what arguments it is defined for."""
        return ""

    def _within(self, builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> Arithmetic:
        """The arithmetic of a function's body, for such arguments."""
        return StraightLineArithmetic(builder)

    def _defined(self, function: PureFunction, arguments: Sequence[ir.Value]) -> ir.Function:
        """A function of the instruction table for such arguments, defined once in the module; LLVM
        decides whether calls of it are inlined."""
        name = f"function {function}{self._shape(arguments)}"
        found = self.builder.module.globals.get(name)
        if found is None:
            found = self._define(name, function, [a.type for a in arguments])
        assert isinstance(found, ir.Function)
        return found

    def _define(self, name: str, function: PureFunction, kinds: list[ir.Type]) -> ir.Function:
        result = self._as(function.result, ir.Value(kinds[0], ""))
        found = ir.Function(self.builder.module, ir.FunctionType(result, kinds), name)
        found.linkage = "internal"
        found.attributes |= {"nounwind", "memory(none)"}
        builder = ir.IRBuilder(found.append_basic_block())
        builder.ret(function.meaning(self._within(builder, found.args), *found.args))
        return found

    def fceil(self, t: Type, a: ir.Value) -> ir.Value:
        return self._intrinsic(f"llvm.ceil.{t}", a.type, a)

    def ffloor(self, t: Type, a: ir.Value) -> ir.Value:
        return self._intrinsic(f"llvm.floor.{t}", a.type, a)

    def ftrunc(self, t: Type, a: ir.Value) -> ir.Value:
        return self._intrinsic(f"llvm.trunc.{t}", a.type, a)

    def fnearest(self, t: Type, a: ir.Value) -> ir.Value:
        return self._intrinsic(f"llvm.roundeven.{t}", a.type, a)

    def wrap(self, a: ir.Value) -> ir.Value:
        return self.builder.trunc(a, self._as(I32, a))

    def extend_s(self, a: ir.Value) -> ir.Value:
        return self.builder.sext(a, self._as(I64, a))

    def extend_u(self, a: ir.Value) -> ir.Value:
        return self.builder.zext(a, self._as(I64, a))

    def to_float_s(self, to: Type, t: Type, a: ir.Value) -> ir.Value:
        return self.builder.sitofp(a, self._as(to, a))

    def to_float_u(self, to: Type, t: Type, a: ir.Value) -> ir.Value:
        return self.builder.uitofp(a, self._as(to, a))

    def to_int_s(self, to: Type, t: Type, a: ir.Value) -> ir.Value:
        return self.builder.fptosi(a, self._as(to, a))

    def to_int_u(self, to: Type, t: Type, a: ir.Value) -> ir.Value:
        return self.builder.fptoui(a, self._as(to, a))

    def promote(self, a: ir.Value) -> ir.Value:
        return self.builder.fpext(a, self._as(F64, a))

    def demote(self, a: ir.Value) -> ir.Value:
        return self.builder.fptrunc(a, self._as(F32, a))

    def reinterpret(self, to: Type, t: Type, a: ir.Value) -> ir.Value:
        return self.builder.bitcast(a, self._as(to, a))

    def to_slot(self, t: Type, a: ir.Value) -> ir.Value:
        if t.is_float:
            a = self.builder.bitcast(a, self._as(t.integer, a))
        return self.builder.zext(a, self._as(I64, a)) if t.bits == 32 else a

    def from_slot(self, t: Type, a: ir.Value) -> ir.Value:
        if t.bits == 32:
            a = self.builder.trunc(a, self._as(I32, a))
        return self.builder.bitcast(a, self._as(t, a)) if t.is_float else a


class StraightLineArithmetic(Arithmetic):
    """Arithmetic at a builder, wherever that is."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.builder = builder


def stack_register(builder: ir.IRBuilder) -> ir.Value:
    """The host's stack pointer."""
    module, metadata = builder.module, ir.MetaDataType()
    function = module.intrinsic("llvm.read_register.i64", WORD, [metadata])
    register = "rsp" if IS_X86 else "sp"
    return builder.call(function, [ir.Value(metadata, module.add_metadata(f'!"{register}"'))])
