# SPDX-License-Identifier: Apache-2.0
"""Variables whose floats are compared, and nothing else, have one kind."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ferryvm.isa import BY_MNEMONIC
from ferryvm.python.compiled.program import Unit
from ferryvm.python.value.kind import Array
from ferryvm.testing import check

XS = np.array([0.5, 0.1, 0.25, 0.1])
FEW = ["reference", "threaded"]


def nearest(xs):
    least, label = math.inf, 0
    for i in range(len(xs)):
        x = xs[i]
        if not (x >= least and label < 9):
            least = x
            label = i
    return label


def rounded(xs, ys):
    """A numpy.float32 is compared with a Python float, and with a numpy.float64, in other ways."""
    least, above = 0.3, 0
    for i in range(len(xs)):
        if xs[i] > least:
            above += 1
        if ys[i] < least:  # noqa: PLR1730  # min would be another use
            least = ys[i]
    return above


def returned(xs):
    least = math.inf
    for x in xs:
        if x < least:  # noqa: PLR1730  # min would be another use
            least = x
    return least


@pytest.mark.nightly
def test_a_loop_that_compares_a_float_with_elements_has_one_version() -> None:
    unit = Unit(nearest, [Array("float64", 1)])
    opcodes = unit.program.code.opcodes.tolist()
    assert opcodes.count(BY_MNEMONIC["array.get_f64"].opcode) == 1
    assert check(nearest, XS, backends=FEW) == 1


def test_kinds_that_a_comparison_tells_apart_are_told_apart() -> None:
    narrow = np.array([0.1] * 4, np.float32)
    assert check(rounded, narrow, XS, backends=FEW) == 2


def test_a_float_that_is_returned_keeps_its_kind() -> None:
    assert type(check(returned, XS, backends=FEW)) is np.float64
    assert type(check(returned, XS[:0], backends=FEW)) is float


def totals(out, xs, ys):
    for i in range(len(out)):
        total = 0.0
        for j in range(len(xs)):
            total = total + xs[j] * ys[i] - 1
        out[i] = total


def divided(out, xs):
    total = 0.0
    for x in xs:
        total += x
    out[0] = 1.0 / total


def test_a_loop_that_adds_up_floats_and_stores_them_has_one_version() -> None:
    kinds = [Array("float64", 1)] * 3
    opcodes = Unit(totals, kinds).program.code.opcodes.tolist()
    assert opcodes.count(BY_MNEMONIC["array.set_f64"].opcode) == 1
    check(totals, np.zeros(3), XS, XS[:3].copy(), backends=FEW)
    narrow = XS.astype(np.float32)
    check(totals, np.zeros(3), narrow, narrow[:3].copy(), backends=FEW)
    check(totals, np.zeros(3, np.float32), XS, narrow[:3].copy(), backends=FEW)


def test_a_sum_that_divides_keeps_its_kind() -> None:
    check(divided, np.zeros(1), np.zeros(2), backends=FEW)
    with pytest.raises(ZeroDivisionError):
        check(divided, np.zeros(1), np.zeros(0), backends=FEW)


def test_one_text_in_place_of_names_of_backends_is_refused() -> None:
    with pytest.raises(TypeError, match=r"backends is 'llvm'; names are needed: \['llvm'\]"):
        check(_identity, 1, backends="llvm")


def _identity(x: int) -> int:
    return x
