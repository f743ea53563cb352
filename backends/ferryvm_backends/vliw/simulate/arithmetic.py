# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the machine's units, over Python ints.

It is the arithmetic of the instruction table, except for unobservable details: an operation that
was issued above its check always has a result, and arithmetic on floats yields the canonical NaN by
itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ferryvm.ir.graph import Static
from ferryvm.isa.evaluation import PythonArithmetic
from ferryvm.isa.type import CANONICAL_NAN, Type, signed, to_float
from ferryvm_backends.vliw.code.operation import canonical_type, work_of
from ferryvm_backends.vliw.machine.model import Work

_ARITHMETIC = PythonArithmetic()


def compute(name: str, static: tuple[Static, ...], operands: tuple[int, ...]) -> int:
    """The result of an operation, for any operands."""
    if name == "move":
        return operands[0]
    work = work_of(name, static)
    if work is Work.DIVIDE and operands[1] == 0:
        return 0
    if work is Work.SHIFT:
        operands = operands[0], operands[1] % _type(static).bits
    if name in ("to_int_s", "to_int_u") and not _fits(name, static, operands[0]):
        return 0
    method: Callable[..., int] = getattr(_ARITHMETIC, name)
    found = int(method(*static, *operands))
    t = canonical_type(name, static)
    return found if t is None else _canonical(t, found)


def _type(static: tuple[Static, ...]) -> Type:
    t = static[0]
    assert isinstance(t, Type)
    return t


def _canonical(t: Type, bits: int) -> int:
    return CANONICAL_NAN[t] if math.isnan(to_float(t, bits)) else bits


def _fits(name: str, static: tuple[Static, ...], bits: int) -> bool:
    to, t = static
    assert isinstance(to, Type)
    assert isinstance(t, Type)
    value = to_float(t, bits)
    if not math.isfinite(value):
        return False
    whole = math.trunc(value)
    if name == "to_int_u":
        return 0 <= whole <= to.mask
    return signed(to, 1 << (to.bits - 1)) <= whole <= to.mask >> 1
