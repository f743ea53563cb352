# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferryvm.isa import F32, F64, I32, I64, Type
from ferryvm.isa.type import from_float
from ferryvm.skiff.number import Number, looks_numeric, number_bits, parse_number


@pytest.mark.parametrize(
    ("text", "value", "suffix"),
    [
        ("10", 10, None),
        ("-3", -3, None),
        ("+3", 3, None),
        ("0xfF", 255, None),
        ("-0x10", -16, None),
        ("0b101", 5, None),
        ("0o17", 15, None),
        ("10i32", 10, I32),
        ("0xffi64", 255, I64),
        ("0xf32", 0xF32, None),
        ("2.5", "2.5", None),
        (".5", ".5", None),
        ("5.", "5.", None),
        ("1e-3", "1e-3", None),
        ("1E5f32", "1E5", F32),
        ("7f64", "7", F64),
        ("inf", "inf", None),
        ("-inff32", "-inf", F32),
        ("nan", "nan", None),
    ],
)
def test_literals_are_parsed(text: str, value: int | str, suffix: Type | None) -> None:
    number = parse_number(text)
    assert number is not None
    assert (number.value, number.suffix) == (value, suffix)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "+",
        "->",
        "e5",
        "i32",
        "0x",
        "1i8",
        "1e",
        "2.5i32",
        "1_000",
        "0b2",
        "\u0661",
        "infinity",
        "-nan",
        "9" * 2000,
    ],
)
def test_other_atoms_are_no_numbers(text: str) -> None:
    assert parse_number(text) is None


def test_atoms_that_start_like_a_number_can_only_be_meant_as_one() -> None:
    assert [looks_numeric(text) for text in ("1a", "-2x", ".5.", "-", "a1", "->")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "type_", "bits"),
    [
        ("2147483647", I32, 0x7FFFFFFF),
        ("2147483648", I32, None),
        ("-2147483648", I32, 0x80000000),
        ("-2147483649", I32, None),
        ("0xffffffff", I32, 0xFFFFFFFF),
        ("0x100000000", I32, None),
        ("-0x80000001", I32, None),
        ("9223372036854775808", I64, None),
        ("0xffffffffffffffff", I64, 0xFFFFFFFFFFFFFFFF),
        ("1", F64, 0x3FF0000000000000),
        ("1", F32, 0x3F800000),
        ("1e400", F64, None),
        ("3.5e38", F32, None),
        ("inf", F32, 0x7F800000),
        ("-inf", F64, 0xFFF0000000000000),
        ("nan", F32, 0x7FC00000),
        ("-0.0", F64, 0x8000000000000000),
        ("1e-400", F64, 0),
        # Just above the middle between two f32s, and on it as an f64: rounding twice would go down.
        ("1.00000005960464477539062500001", F32, 0x3F800001),
        ("16777217", F32, 0x4B800000),
        ("9" * 400, F64, None),
    ],
)
def test_bits_of_literals(text: str, type_: Type, bits: int | None) -> None:
    number = parse_number(text)
    assert number is not None
    assert number_bits(number, type_) == bits


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_shortest_text_of_an_f32_reads_back_as_it(value: float) -> None:
    text = str(np.float32(value))
    assert number_bits(Number(text, text), F32) == from_float(F32, value)
