# SPDX-License-Identifier: Apache-2.0
"""Numbers and names as a reader sees them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ferryvm.isa.type import Type, ValueType, format_value, to_python

_WORD_DIGITS = 16

ABSENT = "\N{EN DASH}"
"""Stands where there is nothing to say."""


def number(value: int) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,}"


def plural(count: int, noun: str) -> str:
    """`1 program`, `2 programs`."""
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def seconds(value: float) -> str:
    """A time with three digits and the unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}" if value < 1000 * scale else f"{value:.0f} s"
    return f"{value * 1e6:.3g} µs"


def word(t: ValueType | None, bits: int) -> str:
    """The value of a word; its bits where it has no type, or a NaN, or too many bits."""
    if t is None or bits > t.mask:
        return f"{bits:#x}"
    text = format_value(t, bits)
    is_nan = isinstance(t, Type) and math.isnan(to_python(t, bits))
    return text if not is_nan else f"{text} {bits:#x}"


def words(types: Sequence[ValueType | None], values: Sequence[int]) -> str:
    """Words with a space between them; missing types are unknown ones."""
    known = [*types, *[None] * len(values)]
    return " ".join(word(t, bits) for t, bits in zip(known, values, strict=False))


def digits(left: int | str | None, right: int | str | None) -> list[tuple[str, bool]]:
    """The hexadecimal digits of a word, each with whether the other word has another one."""
    if not isinstance(left, int):
        return []
    mine = f"{left:0{_WORD_DIGITS}x}"
    other = f"{right:0{_WORD_DIGITS}x}" if isinstance(right, int) else mine
    return [(a, a != b) for a, b in zip(mine, other, strict=True)]
