# SPDX-License-Identifier: Apache-2.0
"""Calls that catch, in the IR: as text, in a run, and where it is not as compilers rely on it."""

from __future__ import annotations

import re

import pytest
from tests.engine.throwing import PROGRAMS

import ferryvm
from ferryvm.ir.lift import lift
from ferryvm.ir.operation import IrError
from ferryvm.ir.parse import parse_module
from ferryvm.ir.passes import optimise
from ferryvm.ir.text import module_text
from ferryvm.ir.verify import verify_module
from ferryvm.machine.control import Status
from ferryvm.region.region import region, regions
from ferryvm.verify import verify

from .comparison import compare, visits

TEXT = """
.tag none
.tag pair i64 f32
.function main
    i64.const 5
    call work
    halt
.function work (n i64) -> i64
    i64.const 8
:try
    local.get n
    call thrower
    i64.add
    return
:end
:handler
    drop
    i64.sub
    return
.catch pair from try to end using handler depth 1
.function thrower (n i64) -> i64
    local.get n
    f32.const 2.5
    throw pair
"""

LIFTED = """
module main

region main function=0 entry=0
entry @0 ():
  %0: i64 = call 1 2 i64:5 @1 [_ _ _ i64:2 i64:2]
  halt @2 [_ _ %0]

function work function=1 entry=3 -> i64
entry @3 (%0: i64):
  %1: i64 = call 2 4 %0 @5 [%0 _ _ i64:8 _ i64:6 i64:4]
  %2: i64 = caught (1)
  switch %2 b1() caught2()
b1 @6 ():
  %3: i64 = add i64 %1, i64:8
  return %3
caught2 @8 ():
  %4: i64 = thrown 0
  %5: f32 = thrown 1
  %6: i64 = sub i64 i64:8, %4
  return %6

function thrower function=2 entry=11 -> i64
entry @11 (%0: i64):
  throw 1 3 @13 [%0 _ _ %0 f32:2.5]
"""

_CAUGHT = "  %2: i64 = caught (1)\n"
_SECOND = "  %5: f32 = thrown 1\n"

FAULTS = {
    "caught before its call": (
        (_CAUGHT, "  %7: i64 = add i64 %0, i64:1\n" + _CAUGHT),
        "a call directly in front expected",
    ),
    "nothing caught": (("caught (1)", "caught ()"), "tag numbers, each once expected"),
    "a tag caught twice": (("caught (1)", "caught (1 1)"), "tag numbers, each once expected"),
    "no such tag": (("caught (1)", "caught (2)"), "a tag below 2 expected, found 2"),
    "thrown where it has returned": (
        ("  %3: i64 = add i64 %1", "  %7: i64 = thrown 0\n  %3: i64 = add i64 %1"),
        "the edge of a tag expected",
    ),
    "thrown anywhere": (
        ("  throw 1 3", "  %7: i64 = thrown 0\n  throw 1 3"),
        "the edge of one tag that is caught expected",
    ),
    "thrown behind a call": (
        (_SECOND, "  %7: i64 = call 2 4 %0 @5 [%0 _ _ i64:8 _ i64:6 i64:4]\n" + _SECOND),
        "it is behind something that is no computation",
    ),
    "no such value": (("thrown 1", "thrown 2"), "a value below 2 expected, found 2"),
    "another type": ((_SECOND, "  %5: i64 = thrown 1\n"), "f32 expected, found i64"),
    "no such tag thrown": (("throw 1 3", "throw 2 3"), "a tag below 2 expected, found 2"),
    "too few operands": (("throw 1 3", "throw 1 4"), "2 operands from word 4 on expected"),
    "operands in the header": (("throw 1 3", "throw 1 2"), "2 operands from word 2 on expected"),
    "operands of another type": (
        ("throw 1 3 @13 [%0 _ _ %0 f32:2.5]", "throw 1 3 @13 [%0 _ _ f32:2.5 f32:2.5]"),
        "i64 expected, found f32",
    ),
    "thrown by a region": (
        ("  halt @2 [_ _ %0]", "  throw 0 2 @2 [_ _ %0]"),
        "a function expected, whose caller may catch it",
    ),
}


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRYVM_CHECK_IR", "1")


def test_a_call_that_catches_is_a_switch_on_the_tag() -> None:
    verified = verify(ferryvm.assemble(TEXT))
    module = lift(region(verified, "main"), exceptions=True)
    optimise(module, 2, verified)
    lines = [re.sub(r"%\d+", "%", line.strip()) for line in module_text(module).splitlines()]
    at = lines.index("%: i64 = caught (1)")
    assert lines[at - 1 : at + 5] == [
        "%: i64 = call 2 4 % @5 [% _ _ i64:8 _ i64:6 i64:4]",
        "%: i64 = caught (1)",
        "switch % b1() caught2()",
        "caught2 @8 ():",
        "%: i64 = thrown 0",
        "%: i64 = sub i64 i64:8, %",
    ]
    assert "throw 1 3 @13 [% _ _ % f32:2.5]" in lines


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_reported(fault: str) -> None:
    (old, new), message = FAULTS[fault]
    assert LIFTED.count(old) == 1, fault
    verified = verify(ferryvm.assemble(TEXT))
    verify_module(parse_module(LIFTED), verified)
    with pytest.raises(IrError, match=re.escape(message)):
        verify_module(parse_module(LIFTED.replace(old, new)), verified)


def test_a_call_catches_also_where_nobody_asks_which_tag() -> None:
    text = LIFTED.replace("  switch %2 b1() caught2()\n", "  jump b1()\n")
    head, _, tail = text.partition("caught2 @8")
    module = parse_module(head + tail[tail.index("\nfunction") :])
    verify_module(module, verify(ferryvm.assemble(TEXT)))
    optimise(module, 2)
    assert " = caught (1)\n" in module_text(module)


HEAP = """
.tag none
.function main
    i64.const 5
    call work
    halt
.function work (n i64) -> i64
.local seen i64
    i64.const 64
    heap.alloc
    local.set n
    local.get n
    i64.load
    local.set seen
:try
    local.get n
    call thrower
:end
    return
:handler
    local.get n
    i64.load
    local.get seen
    i64.sub
    return
.catch none from try to end using handler
.function thrower (n i64) -> i64
    local.get n
    i64.const 7
    i64.store
    throw none
"""


def test_loads_before_a_call_are_not_those_of_its_handler() -> None:
    verified = verify(ferryvm.assemble(HEAP))
    module = lift(region(verified, "main"), exceptions=True)
    optimise(module, 2, verified)
    (work,) = [body for body in module.bodies if body.name == "work"]
    assert [o.name for o in work.operations].count("heap_load") == 2


@pytest.mark.rotate("text", "level", most=2)
@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_regions_that_throw_leave_in_the_state_of_the_reference(text: str, level: int) -> None:
    verified = verify(ferryvm.assemble(text))
    found = {
        compare(each, machine, lambda module: optimise(module, level, verified), polls=1000)
        for each, machine in visits(verified, most=400)
    }
    assert Status.LEAVE in found


def test_without_being_asked_for_calls_catch_nothing() -> None:
    for text in PROGRAMS.values():
        for each in regions(verify(ferryvm.assemble(text))):
            bodies = lift(each).bodies
            names = {o.name for body in bodies for b in body.blocks for o in (*b.operations, b.end)}
            assert names.isdisjoint({"caught", "thrown", "throw"})
