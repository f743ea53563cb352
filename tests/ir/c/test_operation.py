# SPDX-License-Identifier: Apache-2.0
"""Every operation that only computes, compiled, against the reference's arithmetic."""

from __future__ import annotations

import ctypes
import itertools
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from ferryvm.ir.c import C11
from ferryvm.ir.c.expression import Arithmetic
from ferryvm.ir.c.function_helper import function_definitions
from ferryvm.ir.graph import BOOLEAN, Static, ValueType
from ferryvm.ir.operation import PURE, SHAPES, AttributeKind, IrError, computed_types
from ferryvm.ir.simplify import evaluate
from ferryvm.isa.emitter import Condition
from ferryvm.isa.mathematics import FUNCTIONS
from ferryvm.isa.mathematics.table import TABLES
from ferryvm.isa.type import CANONICAL_NAN, F32, F64, I32, I64, Type, from_float, to_float
from ferryvm.machine.declaration import declarations

from ...tier import sample
from .native import COMPILERS, each_compiler, load, needs_compiler

PLAIN: dict[ValueType, list[int]] = {
    BOOLEAN: [0, 1],
    I32: [0, 1, 2, 31, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0xDEAD_BEEF],
    I64: [0, 1, 63, 0x7FFF_FFFF_FFFF_FFFF, 1 << 63, (1 << 64) - 1, 0x1234_5678_9ABC_DEF0],
}
FLOATS = (0.0, -0.0, 1.0, -1.5, 2.5, 0.1, -0.5, 1e-320, 3e38, -1e300, float("inf"), -float("inf"))
NANS = {
    F32: [0x7FC0_0000, 0xFFC0_0000, 0x7F80_0001],
    F64: [0x7FF8 << 48, 0xFFF8 << 48, (0x7FF0 << 48) + 1],
}
VALUES = PLAIN | {t: [from_float(t, x) for x in FLOATS] + NANS[t] for t in (F32, F64)}
INTEGER_ONLY = ("shl", "shr_s", "shr_u")

Case = tuple[str, tuple[Static, ...], tuple[ValueType, ...], ValueType]


def cases() -> Iterator[Case]:
    """Every operation for all types that it is there for."""
    for name in sorted(PURE):
        for static in _statics(name):
            try:
                operands, result = computed_types(name, static)
            except IrError:
                continue
            kinds: tuple[ValueType, ...] = (I32, I64, F32, F64) if name == "select" else (I64,)
            for t in kinds:
                types = tuple(o if isinstance(o, Type) or o is BOOLEAN else t for o in operands)
                made = result if isinstance(result, Type) or result is BOOLEAN else t
                yield name, static, types, made  # type: ignore[misc]  # what is left is a type


def _statics(name: str) -> Iterator[tuple[Static, ...]]:
    possible: dict[AttributeKind, Iterable[Static]] = {
        AttributeKind.TYPE: Type,
        AttributeKind.CONDITION: Condition,
        AttributeKind.FUNCTION: FUNCTIONS.values(),
        AttributeKind.TABLE: TABLES.values(),
    }
    yield from itertools.product(*(possible[kind] for kind in SHAPES[name].static))


def operands_of(case: Case) -> Iterator[tuple[int, ...]]:
    """Bits that satisfy the operation's preconditions."""
    name, static, types, _ = case
    for bits in itertools.product(*(VALUES[t] for t in types)):
        if name in INTEGER_ONLY:
            t = types[0]
            assert isinstance(t, Type)
            bits = (bits[0], bits[1] % t.bits)
        if name == "rem_s" and bits[1] == types[1].mask:  # type: ignore[union-attr]  # a Type
            continue
        if name == "div_s" and bits[1] == types[1].mask:  # type: ignore[union-attr]  # a Type
            bits = (bits[0] >> 1, bits[1])
        if name in ("to_int_s", "to_int_u") and not _fits(name, static, bits[0]):
            continue
        if evaluate(name, static, bits) is not None:
            yield bits


def _fits(name: str, static: tuple[Static, ...], bits: int) -> bool:
    to, t = static
    assert isinstance(to, Type)
    assert isinstance(t, Type)
    value = to_float(t, bits)
    low, high = (-(1 << to.bits - 1), 1 << to.bits - 1) if name[-1] == "s" else (0, 1 << to.bits)
    return low <= value < high


def as_word(t: ValueType, bits: int) -> int:
    """The bits as a test compares them: any NaN of arithmetic is as good as another."""
    if isinstance(t, Type) and t.is_float and to_float(t, bits) != to_float(t, bits):
        return CANONICAL_NAN[t]
    return bits


def printed(chosen: list[Case], constants: dict[int, tuple[int, ...]]) -> str:
    """Functions `op0`, `op1` … from words to a word; operands of some are constants."""
    arithmetic = Arithmetic(C11)
    functions = []
    for number, (name, static, types, result) in enumerate(chosen):
        lines = []
        for place, t in enumerate(types):
            if number in constants:
                bits = constants[number][place]
                text = str(bool(bits)).lower()
                text = arithmetic.constant(t, bits) if isinstance(t, Type) else text
            else:
                text = f"w[{place}] != 0"
                text = arithmetic.from_slot(t, f"w[{place}]") if isinstance(t, Type) else text
            lines.append(f"const {C11.types[t]} v{place} = {text};")
        names = [f"v{place}" for place in range(len(types))]
        computed = getattr(arithmetic, name)(*static, *names)
        lines.append(f"const {C11.types[result]} result = {computed};")
        slot = arithmetic.to_slot(result, "result") if isinstance(result, Type) else "result"
        lines.append(f"return {slot};")
        body = "\n".join(f"    {line}" for line in lines)
        functions.append(f"uint64_t op{number}(const uint64_t *w)\n{{\n{body}\n}}\n")
    applied = function_definitions(C11, arithmetic.used)
    helpers = [*C11.definitions(arithmetic.used), *applied]
    return "\n".join([C11.prelude, declarations(C11), *helpers, *functions])


@needs_compiler
@pytest.mark.parametrize("compiler", sample(COMPILERS, 1))
def test_every_operation_computes_what_the_reference_does(compiler: str, tmp_path: Path) -> None:
    chosen = list(cases())
    assert {name for name, *_ in chosen} == PURE
    library = load(printed(chosen, {}), tmp_path, compiler, level=2)
    for number, case in enumerate(chosen):
        name, static, types, result = case
        function = library[f"op{number}"]
        function.restype = ctypes.c_uint64
        for bits in operands_of(case):
            expected = evaluate(name, static, bits)
            assert expected is not None
            found = function((ctypes.c_uint64 * len(bits))(*bits))
            what = f"{name} {static} of {[hex(b) for b in bits]} as {types}"
            if name in ("select", "reinterpret", "to_slot", "from_slot"):  # bits stay as they are
                assert found == expected, what
            else:
                assert as_word(result, found) == as_word(result, expected), what


@pytest.mark.nightly
@needs_compiler
@pytest.mark.parametrize("compiler", sample(COMPILERS[::-1], 1))
def test_operations_on_constants_are_folded_to_the_same_bits(compiler: str, tmp_path: Path) -> None:
    random_ = random.Random(20261121)
    chosen, constants = [], {}
    for case in cases():
        possible = list(operands_of(case))
        for bits in random_.sample(possible, min(4, len(possible))):
            constants[len(chosen)] = bits
            chosen.append(case)
    library = load(printed(chosen, constants), tmp_path, compiler, level=2)
    for number, (name, static, _, result) in enumerate(chosen):
        function = library[f"op{number}"]
        function.restype = ctypes.c_uint64
        expected = evaluate(name, static, constants[number])
        assert expected is not None
        found = as_word(result, function(None))
        assert found == as_word(result, expected), f"{name} {static} of {constants[number]}"


@needs_compiler
@each_compiler
def test_canonical_makes_one_nan_of_all_even_behind_a_root(compiler: str, tmp_path: Path) -> None:
    arithmetic = Arithmetic(C11)
    functions = "".join(
        f"uint64_t root_{t}(uint64_t w) {{ const {C11.types[t]} a = {arithmetic.from_slot(t, 'w')};"
        f" const {C11.types[t]} b = {arithmetic.fsqrt(t, 'a')};"
        f" const {C11.types[t]} c = {arithmetic.canonical(t, 'b')};"
        f" return {arithmetic.to_slot(t, 'c')}; }}\n"
        for t in (F32, F64)
    )
    text = "\n".join([C11.prelude, declarations(C11), *C11.definitions(arithmetic.used), functions])
    library = load(text, tmp_path, compiler, level=3)
    for t in (F32, F64):
        function = library[f"root_{t}"]
        function.restype, function.argtypes = ctypes.c_uint64, [ctypes.c_uint64]
        for bits in (from_float(t, -2.0), *NANS[t]):
            assert function(bits) == CANONICAL_NAN[t]
