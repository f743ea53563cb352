# SPDX-License-Identifier: Apache-2.0
"""Checked products with constants, which compiled code checks by the range of the operand."""

from __future__ import annotations

import pytest

from ferryvm import Engine
from ferryvm.build import Program
from ferryvm.engine import TrapError
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I32, I64, Type


@pytest.mark.parametrize("t", [I32, I64])
@pytest.mark.parametrize("factor", [3, 5, 9])
def test_products_with_small_constants_trap_where_they_overflow(t: Type, factor: int) -> None:
    program = Program()
    product = program.function("product", {"x": t}, [t])
    product.local_get("x")
    getattr(product, f"{t}_const")(factor)
    getattr(product, f"{t}_mul_checked")()
    getattr(product, f"{t}_const")(1)
    getattr(product, f"{t}_add_checked")()
    program.export(product, "product")
    call = Engine("llvm").instantiate(program.build()).exports["product"]
    low, high = -(1 << t.bits - 1), (1 << t.bits - 1) - 1
    edges = [
        low,
        high,
        0,
        -1,
        1,
        *(limit // factor + step for limit in (low, high) for step in (-1, 0, 1)),
    ]
    for x in edges:
        wanted = x * factor
        if low <= wanted <= high and wanted + 1 <= high:
            assert call(x) == wanted + 1
            continue
        with pytest.raises(TrapError) as caught:
            call(x)
        assert caught.value.kind is Trap.INTEGER_OVERFLOW
