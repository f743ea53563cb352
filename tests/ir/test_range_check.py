# SPDX-License-Identifier: Apache-2.0
"""Range checks are asked in front of loops where that can be done, and leave where they did."""

from __future__ import annotations

import itertools
import random
import re

import pytest

import ferryvm
from ferryvm.ir.graph import Module
from ferryvm.ir.lift import lift
from ferryvm.ir.passes import optimise
from ferryvm.ir.passes.range_check import hoist_range_checks
from ferryvm.region.region import region
from ferryvm.verify import Verified, verify

from ..heap_vector import on_heap
from .change import changed
from .comparison import compare, visits

LOOP = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  jump b1({start})
b1 @1 (%2: i64):
  %3: boolean = compare i64 {condition} %2, {bound}
  branch %3 b2() b3()
b2 @2 ():
  %4: i64 = {value}
  %5: i64 = {limit}
  %6: boolean = compare i64 ge_u %4, %5
  trap_if INDEX_OUT_OF_BOUNDS %6 @2 [_ _ %0 %1]
  {more}
  %7: i64 = add i64 %2, {step}
  poll @1 [_ _ %0 %1]
  jump b1(%7)^
b3 @3 ():
  return %0
"""
USUAL = {
    "start": "i64:0",
    "condition": "lt_s",
    "bound": "%0",
    "value": "add i64 %1, %2",
    "limit": "heap_load 8 %1",
    "more": "%8: i64 = static 0",
    "step": "i64:1",
}


def asked(**parts: str) -> str:
    return changed(hoist_range_checks, LOOP.format(**{**USUAL, **parts}))


def test_a_check_depends_on_what_is_asked_in_front() -> None:
    text = asked()
    assert "= all %" in text
    preheader, loop = text.split("checked.b1 @1")
    assert preheader.count("heap_load 8") == 1
    assert "heap_capacity" in preheader
    assert loop.count("heap_load 8") == 1


OVERFLOWS = "%8: boolean = {} i64 %2, %0\n  trap_if INTEGER_OVERFLOW %8 @2 [_ _ %0 %1]"


@pytest.mark.parametrize("name", ["add_overflows", "sub_overflows", "mul_overflows"])
def test_an_overflow_is_excluded_before_the_loop(name: str) -> None:
    loop = asked(more=OVERFLOWS.format(name)).split("checked.b1 @1")[1]
    (flag,) = re.findall(rf"(%\d+): boolean = {name}", loop)
    assert re.search(rf"= all {flag}, %\d+\n  trap_if INTEGER_OVERFLOW", loop)


def test_an_index_from_the_end_is_a_plain_one_where_it_is_not_negative() -> None:
    value = (
        "add i64 %2, %1\n  %9: boolean = compare i64 lt_s %4, i64:0\n"
        "  %10: i64 = select %9, %0, i64:0\n  %11: i64 = add i64 %4, %10"
    )
    text = LOOP.replace("ge_u %4", "ge_u %11").format(**{**USUAL, "value": value})
    loop = changed(hoist_range_checks, text).split("checked.b1 @1")[1]
    assert len(re.findall(r"= all %\d+, %\d+", loop)) == 2  # the sign, and the check
    assert re.search(r"= all (%\d+), %\d+\n  %\d+: i64 = select", loop)


WITHOUT_RANGE = [
    {"more": "heap_store 8 %1, %2"},
    {"more": "call_indirect () 4 i64:0 @2 [_ _ %0 %1 i64:0 i64:0]"},
    {"condition": "le_s"},
    {"condition": "lt_u"},
    {"condition": "ne"},
    {"bound": "%2"},
    {"step": "%2"},
    {"value": "mul i64 %2, %2"},
    {"value": "shl i64 %1, %2"},
    {"value": "bit_xor i64 %1, %2"},
    {"limit": "heap_load 8 %2"},
    {"limit": "heap_load 4 %1"},
]


@pytest.mark.parametrize("parts", WITHOUT_RANGE, ids=lambda parts: next(iter(parts.values())))
def test_what_varies_otherwise_is_not_asked(parts: dict[str, str]) -> None:
    text = asked(**parts)
    assert "trap_if" in text
    assert "checked" not in text
    assert "= all" not in text


def constant(limit: int, **parts: str) -> str:
    """The loop with a count and a limit that can be computed, after the pass."""
    text = LOOP.format(**{**USUAL, "bound": "i64:10", "value": "add i64 %2, i64:5", **parts})
    text = text.replace("  %5: i64 = heap_load 8 %1\n", "").replace("%5", f"i64:{limit}")
    return changed(hoist_range_checks, text)


@pytest.mark.parametrize(("limit", "passed"), [(14, "true"), (15, "false"), (16, "false")])
def test_the_last_value_decides(limit: int, passed: str) -> None:
    assert f"jump checked.b1({passed})" in constant(limit)


@pytest.mark.parametrize(
    ("parts", "answer"),
    [
        ({}, "false"),
        ({"start": f"i64:{1 << 31}"}, "false"),
        ({"start": f"i64:{(1 << 31) + 1}"}, "true"),
        ({"start": "i64:-1"}, "true"),
        ({"step": f"i64:{1 << 31}"}, "false"),
        ({"step": f"i64:{(1 << 31) + 1}"}, "true"),
        ({"step": "i64:0"}, "true"),
        ({"step": "i64:-1"}, "true"),
        ({"bound": f"i64:{1 << 31}"}, "false"),
        ({"bound": f"i64:{(1 << 31) + 1}"}, "true"),
        ({"bound": "i64:-5"}, "false"),
    ],
)
def test_a_count_that_may_wrap_is_in_doubt(parts: dict[str, str], answer: str) -> None:
    assert f"branch {answer} checked.b1(true) range.b1()" in constant(100, **parts)


DESCENDING = {"start": "i64:9", "condition": "gt_s", "bound": "i64:-1", "step": "i64:-1"}


@pytest.mark.parametrize(
    ("limit", "parts", "passed"),
    [
        (14, {}, "true"),
        (15, {}, "false"),
        (15, {"condition": "ge_s", "bound": "i64:0"}, "false"),
        (14, {"value": "sub i64 i64:14, %2"}, "true"),
        (15, {"value": "sub i64 i64:14, %2"}, "false"),
        (15, {"value": "add i64 %2, i64:-1"}, "true"),
    ],
)
def test_the_ends_of_a_descending_variable_decide(
    limit: int, parts: dict[str, str], passed: str
) -> None:
    assert f"jump checked.b1({passed})" in constant(limit, **(DESCENDING | parts))


@pytest.mark.parametrize(
    ("parts", "answer"),
    [
        ({"start": f"i64:{(1 << 31) - 1}"}, "false"),
        ({"start": f"i64:{1 << 31}"}, "true"),
        ({"start": "i64:-1"}, "true"),
        ({"bound": "i64:-2"}, "true"),
        ({"step": f"i64:{-(1 << 31)}"}, "false"),
    ],
)
def test_a_descending_variable_that_may_be_negative_is_in_doubt(
    parts: dict[str, str], answer: str
) -> None:
    text = constant(100, **(DESCENDING | parts))
    assert f"branch {answer} checked.b1(true) range.b1()" in text


@pytest.mark.parametrize(
    "parts",
    [{"step": f"i64:{-(1 << 31) - 1}"}, {"step": "%1"}, {"condition": "ge_s"}, {"step": "i64:1"}],
)
def test_other_loops_that_go_down_have_no_variable(parts: dict[str, str]) -> None:
    bound = {"bound": "i64:-3"} if "condition" in parts else {}
    assert "checked" not in constant(15, **(DESCENDING | parts | bound))


def test_a_second_limit_of_one_value_is_compared_with_the_first_before_the_loop() -> None:
    second = (
        "%8: boolean = compare i64 ge_u %4, %0\n  trap_if INDEX_OUT_OF_BOUNDS %8 @2 [_ _ %0 %1]"
    )
    parts = {"value": "mul i64 %2, %2", "limit": "add i64 %1, i64:9", "more": second}
    text = LOOP.replace("  %5: i64 = {limit}\n", "").replace(
        "b1({start})", "b0()\nb0 @0 ():\n  %5: i64 = {limit}\n  jump b1({start})"
    )
    found = changed(hoist_range_checks, text.format(**{**USUAL, **parts}))
    before, loop = found.split("checked.b1 @1")
    limit, other = re.findall(r"compare i64 gt_u (%\d+), (%\d+)", before)[0]
    assert (limit, other) != (other, limit)
    assert len(re.findall(r"= all %\d+, %\d+", loop)) == 1
    assert loop.count("trap_if") == 2


PROGRAM = """
(define (f v start n step base scale)
  (define i start)
  (define s 0)
  (while (< i n)
    (set! s (+ s (vector-ref v (+ base (* scale i)))))
    (set! i (+ i step)))
  s)
(f (make-vector i64 12) {} {} {} {} {})
"""
EDGES = (
    (0, 3, -1, 1 << 31, (1 << 63) - 1),
    (0, 5, 12, 13, (1 << 31) + 1),
    (1, 3, 0, -1, (1 << 31) + 7),
    (0, -2, 2, 1 << 62, -(1 << 62)),
    (1, 2, 0, -1, 1 << 61, (1 << 31) + 1),
)
CASES = [
    (0, 12, 1, 0, 1),  # all in range
    (0, 13, 1, 0, 1),  # the last one is not
    (0, 6, 1, 0, 2),
    (0, 6, 1, 1, 2),
    (0, 6, 2, 2, 2),
    (0, 4, 1, 12, 1),
    *random.Random(4).sample(list(itertools.product(*EDGES)), 40),
]


def program(case: tuple[int, ...]) -> Verified:
    return verify(ferryvm.compile(on_heap(PROGRAM.format(*case))))


def improve(module: Module) -> None:
    optimise(module, 2)
    for body in module.bodies:
        hoist_range_checks(body)


def test_the_loop_of_the_cases_is_asked() -> None:
    module = lift(region(program(CASES[0]), "f/loop.1"))
    optimise(module, 2)
    assert [hoist_range_checks(body) for body in module.bodies] == [1]


@pytest.mark.rotate("case", most=20)
@pytest.mark.parametrize("case", CASES)
def test_a_loop_leaves_where_it_did_whatever_the_answer(case: tuple[int, ...]) -> None:
    seen = 0
    for found, machine in visits(program(case), most=300, times=1):
        if found.name.startswith("f"):
            compare(found, machine, improve)
            seen += 1
    assert seen


MASKED = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  jump b1(i64:0, %1)
b1 @1 (%2: i64, %3: i64):
  %4: boolean = compare i64 lt_s %2, %0
  branch %4 b2() b3()
b2 @2 ():
  %5: boolean = mul_overflows i64 %3, i64:{factor}
  trap_if INTEGER_OVERFLOW %5 @2 [_ _ %0 %1]
  %6: i64 = mul i64 %3, i64:{factor}
  %7: i64 = {next}
  %8: i64 = add i64 %2, i64:1
  poll @1 [_ _ %0 %1]
  jump b1(%8, %7)^
b3 @3 ():
  return %3
"""


@pytest.mark.parametrize(
    ("factor", "next_", "is_sure"),
    [
        ((1 << 31) - 1, "bit_and i64 %6, i64:4294967295", True),
        ((1 << 32) + 1, "bit_and i64 %6, i64:4294967295", False),
        (3, "bit_xor i64 %6, i64:4294967295", False),
        (3, "shr_u i64 %6, i64:3", False),
    ],
)
def test_a_masked_value_overflows_nothing_if_the_first_one_is_in_its_range(
    factor: int, next_: str, is_sure: bool
) -> None:
    text = changed(hoist_range_checks, MASKED.format(factor=factor, next=next_))
    assert ("compare i64 gt_u %1, i64:4294967295" in text) is is_sure
    assert bool(re.search(r"= all %\d+, %\d+\n  trap_if INTEGER_OVERFLOW", text)) is is_sure
