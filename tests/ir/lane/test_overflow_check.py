# SPDX-License-Identifier: Apache-2.0
"""Lanes of small numbers run without checks of overflow, and lanes of others leave where items
do."""

from __future__ import annotations

import pytest

from ferryvm.ir.graph import Body, Module
from ferryvm.ir.lane import overflow_check
from ferryvm.ir.lane.item import item_body
from ferryvm.ir.lane.overflow_check import SMALL, share_overflow_checks
from ferryvm.ir.lane.vectorise import lanes_of
from ferryvm.ir.parse import parse_module
from ferryvm.ir.text import body_text
from ferryvm.ir.verify import verify_module
from ferryvm.isa.type import I64

from .case import HEAD, LANES, memory
from .evaluator import ItemEvaluator, LaneEvaluator, Suspended

SUMS = """  jump head(i64:0, i64:1)
head @20 (%20: i64, %21: i64):
  %22: boolean = compare i64 lt_s %20, i64:3
  branch %22 body() done()
body @21 ():
  %2: boolean = add_overflows i64 %0, %1
  trap_if INTEGER_OVERFLOW %2 @21 [%0 %1 _ _ %20]
  %3: i64 = add i64 %0, %1
  %4: boolean = add_overflows i64 %3, %20
  trap_if INTEGER_OVERFLOW %4 @22 [%0 %1 _ _ %20 %3]
  %5: i64 = add i64 %3, %20
  %6: boolean = mul_overflows i64 %3, %5
  trap_if INTEGER_OVERFLOW %6 @23 [%0 %1 _ _ %20 %3 %5]
  %7: i64 = mul i64 %3, %5
  %8: i64 = shr_s i64 %7, i64:1
  %9: boolean = sub_overflows i64 %8, %0
  trap_if INTEGER_OVERFLOW %9 @24 [%0 %1 _ _ %20 %7]
  %10: i64 = sub i64 %8, %0
  %11: boolean = compare i64 eq %10, i64:7
  trap_if UNREACHABLE %11 @25 [%0 %1 _ _ %20 %10]
  %23: i64 = bit_xor i64 %21, %10
  %24: i64 = add i64 %20, i64:1
  poll @20 [%0 %1 _ _ %24 %23]
  jump head(%24, %23)^
done @26 ():
  leave @26 [%0 %1 _ _ %20 %21]
"""
LEAST, MOST = -(1 << 63), (1 << 63) - 1
ENDS = [
    0,
    5,
    -9,
    SMALL - 1,
    SMALL,
    -SMALL,
    3037000499,
    3037000493,
    MOST - 4,
    MOST,
    LEAST,
    LEAST + 3,
]


def vectorised() -> tuple[Module, Body]:
    module = parse_module(HEAD + SUMS)
    module.lanes = lanes_of(module)
    verify_module(module)
    return module, module.lanes


def items(module: Module, first: int, shared: int) -> dict[int, Suspended]:
    found = {}
    for lane in range(LANES):
        number = first + lane & I64.mask
        left = ItemEvaluator(item_body(module), memory()).run(number, shared & I64.mask)
        assert left is not None
        found[lane] = left
    return found


def lanes(body: Body, first: int, shared: int) -> dict[int, Suspended]:
    return LaneEvaluator(body, memory(), LANES).run(first & I64.mask, shared & I64.mask)


def test_lanes_leave_where_items_do_for_numbers_of_any_size() -> None:
    module, body = vectorised()
    for first in ENDS:
        for shared in ENDS:
            assert lanes(body, first, shared) == items(module, first, shared), (first, shared)


def test_a_limit_that_is_too_large_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overflow_check, "SMALL", 1 << 33)
    monkeypatch.setattr(overflow_check, "exact_range", lambda *_: overflow_check.Range(0, 9))
    module, body = vectorised()
    assert lanes(body, 3037000499, 3037000499) != items(module, 3037000499, 3037000499)


def test_small_numbers_have_no_checks_of_overflow_but_all_others() -> None:
    _, body = vectorised()
    blocks = {block.label: block for block in body.blocks}
    (small,) = (block for label, block in blocks.items() if label.startswith("small"))
    (any_,) = (block for label, block in blocks.items() if label.startswith("any"))

    def exits(operations: list[object]) -> int:
        return sum(getattr(each, "name", "") == "suspend" for each in operations)

    assert exits([*any_.operations]) - exits([*small.operations]) == 4
    assert exits([*small.operations]) == 1
    assert str(SMALL) in body_text(body)


@pytest.mark.parametrize("what", ["element_load i64 %1, i64:0", "rem_s i64 %0, i64:3"])
def test_numbers_of_unknown_size_keep_their_checks(what: str) -> None:
    text = (HEAD + SUMS).replace("  jump head", f"  %30: i64 = {what}\n  jump head", 1)
    text = text.replace("i64 %0, %1", "i64 %30, %30")
    module = parse_module(text)
    body = lanes_of(module)
    assert body.varying is not None
    assert share_overflow_checks(body) == 0
    assert not any(block.label.startswith("small") for block in body.blocks)
