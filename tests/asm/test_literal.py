# SPDX-License-Identifier: Apache-2.0
"""Literals stand for the bits they should, and every bit pattern has one that reads back."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferryvm.asm import literal
from ferryvm.asm.literal import LiteralFault
from ferryvm.isa.type import F32, F64, I32, I64, Type, to_float


@pytest.mark.parametrize(
    ("type_", "text", "bits"),
    [
        (I32, "0", 0),
        (I32, "-1", 0xFFFF_FFFF),
        (I32, "4294967295", 0xFFFF_FFFF),
        (I32, "-2147483648", 0x8000_0000),
        (I64, "0xFFFF_ffff_ffff_ffff", 2**64 - 1),
        (I64, "-0x8000000000000000", 2**63),
        (I64, "+1_000_000", 1_000_000),
        (I64, "0b1010", 10),
        (I64, "007", 7),
        (F64, "1", 0x3FF0_0000_0000_0000),
        (F64, "1_0.5e-1", 0x3FF0_CCCC_CCCC_CCCD),
        (F64, ".5", 0x3FE0_0000_0000_0000),
        (F64, "5.", 0x4014_0000_0000_0000),
        (F64, "-0.0", 0x8000_0000_0000_0000),
        (F64, "inf", 0x7FF0_0000_0000_0000),
        (F64, "-inf", 0xFFF0_0000_0000_0000),
        (F64, "nan", 0x7FF8_0000_0000_0000),
        (F64, "5e-324", 1),
        (F64, "1e-999999999999", 0),
        (F64, "0x1.8p+3", 0x4028_0000_0000_0000),
        (F64, "-0x0p0", 0x8000_0000_0000_0000),
        (F64, "0x0.0000000000001p-1022", 1),
        (F64, "bits:0x7ff0000000000001", 0x7FF0_0000_0000_0001),
        (F32, "nan", 0x7FC0_0000),
        (F32, "bits:0xffc00001", 0xFFC0_0001),
        (F32, "3.4028235e38", 0x7F7F_FFFF),
        (F32, "1e-45", 1),
        (F32, "0x1p-149", 1),
        (F32, "0.1", 0x3DCC_CCCD),
    ],
)
def test_literal_stands_for_these_bits(type_: Type, text: str, bits: int) -> None:
    assert literal.literal_bits(type_, text) == bits


@pytest.mark.parametrize(
    ("type_", "text", "message"),
    [
        (I32, "4294967296", "4294967296 is out of range for i32: -2147483648 to 4294967295"),
        (I32, "-2147483649", "-2147483649 is out of range for i32"),
        (I64, "9" * 5000, "an integer of 5000 characters is out of every range"),
        (I64, "1.5", "expected an i64 literal, found '1.5'"),
        (I64, "1__0", "expected an i64 literal, found '1__0'"),
        (I64, "٣", "expected an i64 literal, found '٣'"),
        (F64, "1e309", "1e309 is out of range for f64; write inf if that is meant"),
        (F32, "3.5e38", "3.5e38 is out of range for f32"),
        (F64, "0x10", "expected an f64 literal, found '0x10'; for a bit pattern write bits:0x10"),
        (F64, "Infinity", "expected an f64 literal, found 'Infinity'"),
        (F64, "e5", "expected an f64 literal, found 'e5'"),
        (F32, "0x1.0000001p0", "0x1.0000001p0 is not exactly an f32"),
        (F64, "0x1p-1075", "0x1p-1075 is not exactly an f64"),
        (F64, "0x1p99999", "0x1p99999 is not exactly an f64"),
        (F64, "bits:0x10000000000000000", "out of range for f64 bit pattern"),
        (F64, "bits:nan", "expected an f64 bit pattern as an integer literal, found 'nan'"),
    ],
)
def test_wrong_literal_is_refused_with_its_reason(type_: Type, text: str, message: str) -> None:
    with pytest.raises(LiteralFault) as caught:
        literal.literal_bits(type_, text)
    assert message in str(caught.value)


def test_f32_literal_is_rounded_once() -> None:
    # Just above the middle of two f32; as an f64 it is the middle, which goes to the even one.
    middle = Fraction(1) + Fraction(1, 2**24)
    text = "1.000000059604644775390626"
    assert Fraction(text) > middle == Fraction(float(text))
    assert literal.literal_bits(F32, text) == 0x3F80_0001
    assert literal.literal_bits(F32, "1.000000059604644775390625") == 0x3F80_0000
    assert literal.literal_bits(F32, "1.000000059604644775390624") == 0x3F80_0000
    assert literal.literal_bits(F32, "-" + text) == 0xBF80_0001


@given(st.sampled_from(Type).flatmap(lambda t: st.tuples(st.just(t), st.integers(0, t.mask))))
def test_every_bit_pattern_reads_back(case: tuple[Type, int]) -> None:
    type_, bits = case
    assert literal.literal_bits(type_, literal.format_literal(type_, bits)) == bits


@given(st.sampled_from([F32, F64]), st.floats(allow_nan=False, allow_infinity=False))
def test_decimal_text_is_rounded_to_the_nearest(type_: Type, value: float) -> None:
    text = f"{Fraction(value).numerator}e0" if value == int(value) else repr(value)
    try:
        bits = literal.literal_bits(type_, text)
    except LiteralFault:
        assert type_ is F32
        assert abs(value) > to_float(F32, 0x7F7F_FFFF)
        return
    error = abs(Fraction(to_float(type_, bits)) - Fraction(text))
    for neighbour in (bits - 1, bits + 1):
        if 0 <= neighbour <= type_.mask and abs(to_float(type_, neighbour)) < float("inf"):
            assert error <= abs(Fraction(to_float(type_, neighbour)) - Fraction(text))


@given(st.binary())
def test_bytes_read_back(data: bytes) -> None:
    text = literal.format_bytes(data)
    assert text.isascii()
    assert literal.string_bytes(text) == data


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_names_read_back_and_stand_on_one_line(name: str) -> None:
    text = literal.format_name(name)
    assert literal.name(text) == name
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("even?", "even?"),
        ("string->f64", "string->f64"),
        ("set!", "set!"),
        ("i64", '"i64"'),
        ("", '""'),
        ("2nd", '"2nd"'),
        ("two words", '"two words"'),
        ("größe", '"größe"'),
        ('q"\n', '"q\\"\\n"'),
    ],
)
def test_name_is_bare_where_that_is_unmistakable(name: str, text: str) -> None:
    assert literal.format_name(name) == text


def test_unknown_escape_is_refused() -> None:
    with pytest.raises(LiteralFault, match=r"unknown escape \\q; \\n \\r \\t"):
        literal.string_bytes('"\\q"')
