# SPDX-License-Identifier: Apache-2.0
"""Conditions under which no item of a launch can fail: `ferryvm.portable.opencl.fit`."""

from __future__ import annotations

import pytest

from ferryvm.ir.graph import Parameter
from ferryvm.isa.type import I64
from ferryvm.portable.opencl.fit import Limit

_PYTHON = (("(ulong)", ""), ("ul", ""), ("&&", "and"), ("/", "//"))


@pytest.mark.parametrize(
    ("scale", "offset"), [(0, 0), (0, 7), (1, 0), (1, 3), (4, 0), (4, 3), (4, 2), (4, 9), (5, 4)]
)
def test_items_fit_if_the_index_of_the_last_one_is_below_the_length(
    scale: int, offset: int
) -> None:
    text = Limit(Parameter(I64), scale, offset).text("count", "length")
    for c, python in _PYTHON:
        text = text.replace(c, python)
    for count in range(1, 12):
        for length in range(60):
            fits = eval(text, {"count": count, "length": length})
            assert fits == (scale * (count - 1) + offset < length), (text, count, length)
