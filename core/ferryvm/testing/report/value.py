# SPDX-License-Identifier: Apache-2.0
"""Values that go wrong more often than others, by type, declared as data."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

from ferryvm.isa import Type
from ferryvm.isa.type import CANONICAL_NAN, F32, from_float, to_float
from ferryvm.machine.difference import is_nan


@dataclasses.dataclass(frozen=True)
class ValueClass:
    """Values of a type that go wrong more often than others."""

    name: str
    is_float: bool
    holds: Callable[[Type, int], bool]


def _largest(t: Type) -> int:
    """Bits of the largest finite float: one below those of infinity."""
    return from_float(t, math.inf) - 1


def _sign(t: Type) -> int:
    return 1 << (t.bits - 1)


def _magnitude(t: Type, bits: int) -> int:
    return bits & (_sign(t) - 1)


def _is_subnormal(t: Type, bits: int) -> bool:
    return 0 < _magnitude(t, bits) < 1 << (23 if t is F32 else 52)


def _is_half(t: Type, bits: int) -> bool:
    value = to_float(t, bits)
    return math.isfinite(value) and abs(math.fmod(value, 1.0)) == 0.5


VALUES: tuple[ValueClass, ...] = (
    ValueClass("zero", False, lambda _, bits: bits == 0),
    ValueClass("one", False, lambda _, bits: bits == 1),
    ValueClass("minus one", False, lambda t, bits: bits == t.mask),
    ValueClass("smallest", False, lambda t, bits: bits == _sign(t)),
    ValueClass("largest", False, lambda t, bits: bits == t.mask >> 1),
    ValueClass("zero", True, lambda _, bits: bits == 0),
    ValueClass("negative zero", True, lambda t, bits: bits == _sign(t)),
    ValueClass("one", True, lambda t, bits: bits == from_float(t, 1.0)),
    ValueClass("minus one", True, lambda t, bits: bits == from_float(t, -1.0)),
    ValueClass("integral and a half", True, _is_half),
    ValueClass("subnormal", True, _is_subnormal),
    ValueClass("largest finite", True, lambda t, bits: _magnitude(t, bits) == _largest(t)),
    ValueClass("infinity", True, lambda t, bits: bits == from_float(t, math.inf)),
    ValueClass("negative infinity", True, lambda t, bits: bits == from_float(t, -math.inf)),
    ValueClass("canonical NaN", True, lambda t, bits: bits == CANONICAL_NAN[t]),
    ValueClass("another NaN", True, lambda t, bits: is_nan(t, bits) and bits != CANONICAL_NAN[t]),
)
"""Of operands and literals, by their type: integers first."""


@functools.lru_cache(1 << 16)
def classes_of(t: Type, bits: int) -> tuple[int, ...]:
    """The class of a value, by its number among the value classes of its type."""
    of_type = [value for value in VALUES if value.is_float is t.is_float]
    return tuple(number for number, value in enumerate(of_type) if value.holds(t, bits))
