# SPDX-License-Identifier: Apache-2.0
"""Instructions as functions of Python numbers, for the functions that are compiled in the place of
built-in ones."""

from __future__ import annotations

from typing import Any

from ferryvm import record
from ferryvm.python.value.kind import FLOAT, INT, Number


@record.dataclass(frozen=True)
class Raw:
    """A call of it is the instruction alone, without checks."""

    instruction: str
    """Its name in `ferryvm.build`."""
    operands: tuple[Number, ...]
    result: Number

    def __call__(self, *operands: Any) -> Any:
        """CPython never calls it: it does what the built-in function does."""
        raise NotImplementedError(self.instruction)


class Unchecked(Raw):
    """An operation on indices from 0 on, whose results fit into 64 bits."""

    def __call__(self, a: int, b: int) -> int:
        """CPython's value, where it executes a statement."""
        return a + b if self.instruction == "i64_add" else a * b


index_sum = Unchecked("i64_add", (INT, INT), INT)
index_product = Unchecked("i64_mul", (INT, INT), INT)
fmod = Raw("f64_fmod", (FLOAT, FLOAT), FLOAT)
remainder = Raw("f64_remainder", (FLOAT, FLOAT), FLOAT)
power = Raw("f64_pow", (FLOAT, FLOAT), FLOAT)
fma = Raw("f64_fma", (FLOAT, FLOAT, FLOAT), FLOAT)
trunc = Raw("f64_trunc", (FLOAT,), FLOAT)
exp = Raw("f64_exp", (FLOAT,), FLOAT)
bits = Raw("i64_reinterpret_f64", (FLOAT,), INT)
from_bits = Raw("f64_reinterpret_i64", (INT,), FLOAT)
leading_zeros = Raw("i64_clz", (INT,), INT)
ones = Raw("i64_popcnt", (INT,), INT)
