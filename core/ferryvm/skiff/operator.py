# SPDX-License-Identifier: Apache-2.0
"""The built-in operators, as data: their operands, and their instruction for each type.

Built-in names cannot be redefined, so a program reads the same everywhere.
"""

from __future__ import annotations

import enum

from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Immediate, Instruction, Type
from ferryvm.isa.mathematics import FUNCTIONS
from ferryvm.named_tuple import NamedTuple


class Family(enum.Enum):
    """The operand types of an operator; all operands of one application have the same type."""

    NUMBERS = "numbers"
    INTEGERS = "integers"
    FLOATS = "floats"


class Operator(NamedTuple):
    """An operator and the suffixes of its instructions."""

    name: str
    family: Family
    minimum: int
    maximum: int | None
    """The largest number of operands; None if there is no limit (it is applied from the left)."""
    integer: str = ""
    """The suffix after `i32.` or `i64.`"""
    float: str = ""
    """The suffix after `f32.` or `f64.`"""
    compares: bool = False
    """True if the result is a boolean: i32, 0 or 1."""

    def row(self, type_: Type) -> Instruction:
        """The instruction for operands of this type."""
        return BY_MNEMONIC[f"{type_}.{self.float if type_.is_float else self.integer}"]


_FUNCTIONS = {
    function.name.removeprefix("f64."): len(function.parameters)
    for function in FUNCTIONS.values()
    if function.result is Type.F64 and function.name.replace("f64.", "f32.") in FUNCTIONS
}
"""Mathematical functions that there are for f32 and f64, with the number of operands."""


def _table() -> dict[str, Operator]:
    numbers, integers, floats = Family.NUMBERS, Family.INTEGERS, Family.FLOATS
    rows = [
        Operator("+", numbers, 1, None, "add", "add"),
        Operator("-", numbers, 1, None, "sub", "sub"),
        Operator("*", numbers, 1, None, "mul", "mul"),
        Operator("/", numbers, 1, None, "div_s", "div"),
        Operator("%", integers, 2, 2, "rem_s"),
        Operator("&", integers, 2, None, "and"),
        Operator("|", integers, 2, None, "or"),
        Operator("^", integers, 2, None, "xor"),
        Operator("~", integers, 1, 1, "xor"),
        Operator("<<", integers, 2, 2, "shl"),
        Operator(">>", integers, 2, 2, "shr_s"),
        Operator(">>>", integers, 2, 2, "shr_u"),
        Operator("sqrt", floats, 1, 1, float="sqrt"),
        Operator("abs", floats, 1, 1, float="abs"),
        Operator("floor", floats, 1, 1, float="floor"),
        Operator("ceil", floats, 1, 1, float="ceil"),
        Operator("trunc", floats, 1, 1, float="trunc"),
        Operator("nearest", floats, 1, 1, float="nearest"),
        *(Operator(name, floats, count, count, float=name) for name, count in _FUNCTIONS.items()),
        Operator("copysign", floats, 2, 2, float="copysign"),
        Operator("fma", floats, 3, 3, float="fma"),
        Operator("min", floats, 2, None, float="min"),
        Operator("max", floats, 2, None, float="max"),
        Operator("min-number", floats, 2, None, float="min_number"),
        Operator("max-number", floats, 2, None, float="max_number"),
    ]
    for name, integer, float_ in (
        ("<", "lt_s", "lt"),
        (">", "gt_s", "gt"),
        ("<=", "le_s", "le"),
        (">=", "ge_s", "ge"),
        ("=", "eq", "eq"),
        ("!=", "ne", "ne"),
    ):
        rows.append(Operator(name, numbers, 2, None, integer, float_, compares=True))
    return {row.name: row for row in rows}


OPERATORS = _table()

# These move or copy operands of the stack, which forms cannot name.
_NOT_FORMS = {"static.load", "static.store", "dup", "swap"}
_IMMEDIATES = {Immediate.NONE, Immediate.OFFSET}

DIRECT = {
    row.mnemonic: row
    for row in INSTRUCTIONS
    if row.chapter != "control"
    and row.mnemonic not in _NOT_FORMS
    and (row.immediate in _IMMEDIATES or row.immediate.literal)
}
"""Instructions that are operators under their own mnemonics."""

CONVERSIONS = {str(type_): type_ for type_ in Type}

_CONVERTERS = {
    ("i32", "i64"): "i32.wrap_i64",
    ("i64", "i32"): "i64.extend_i32_s",
    ("f32", "f64"): "f32.demote_f64",
    ("f64", "f32"): "f64.promote_f32",
}


def converter(to: Type, from_: Type) -> Instruction | None:
    """The instruction that converts between two types, None if they are equal."""
    if to is from_:
        return None
    mnemonic = _CONVERTERS.get((to.value, from_.value))
    if mnemonic is None:
        verb = "convert" if to.is_float else "trunc"
        mnemonic = f"{to}.{verb}_{from_}_s"
    return BY_MNEMONIC[mnemonic]


ELEMENTS = {
    "i8": Type.I64,
    "u8": Type.I64,
    "i16": Type.I64,
    "u16": Type.I64,
    "i32": Type.I32,
    "u32": Type.I64,
    "i64": Type.I64,
    "f32": Type.F32,
    "f64": Type.F64,
}
"""The types of numbers that arrays have as elements, each with that of the values that are read and
stored: narrow ones are extended."""
