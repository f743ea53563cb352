# SPDX-License-Identifier: Apache-2.0
"""Native code on arrays and structs ends as the reference does: the same results, traps,
objects."""

from __future__ import annotations

import dataclasses

import pytest

from ferryvm.asm import assemble
from ferryvm.engine import Engine
from ferryvm.engine.observer import Observer
from ferryvm.isa.element import Element
from ferryvm.isa.object import LARGEST_INLINE
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.policy import Profile

from ...engine.object_program import ALL, LISTS, TREES, on_elements
from ...tier import sample
from ..ending import ended
from .compiled import COMPILED

SOON = dataclasses.replace(COMPILED, profile=Profile(loop_threshold=3, function_threshold=3))
"""Where compiled code leaves for an allocation, control is soon in compiled code again."""

LARGE, SMALL = 1 << 20, 4 << 10
"""Limits of objects in bytes."""


def assert_alike(text: str, objects: int = LARGE) -> None:
    """Fail unless a program ends alike on both."""
    program, limits = assemble(text), Limits(objects=objects)
    native = ended(Engine(policy=SOON, limits=limits), program)
    assert native == ended(Engine("reference", limits=limits), program)


@pytest.mark.rotate("element", "is_outside")
@pytest.mark.parametrize("is_outside", [False, True])
@pytest.mark.parametrize("element", Element)
def test_every_instruction_on_arrays_of_numbers(element: Element, is_outside: bool) -> None:
    assert_alike(on_elements(element, is_outside))


def test_every_instruction_on_arrays_of_references() -> None:
    text = ALL.replace("array.get_{kind}", "array.get_ref i31ref[]")
    for name in ("set", "new", "new_default", "fill", "copy"):
        text = text.replace(f"array.{name}_{{kind}}", f"array.{name}_ref i31ref[]")
    number = "i32.const {}\n    ref.i31"
    assert_alike(
        text.format(
            array="i31ref[]",
            length=LARGEST_INLINE // 8 + 1,
            first=number.format(-5),
            second=number.format(9),
            more="",
        )
    )


def test_lists_are_made_and_added_up_while_the_collector_runs() -> None:
    """The lists together do not fit."""
    assert_alike(LISTS.format(length=40, times=6), SMALL)


@pytest.mark.nightly
def test_an_allocation_that_does_not_fit_leaves_all_frames_of_a_recursion() -> None:
    assert_alike(TREES.format(depth=6), SMALL)


def test_objects_that_do_not_fit_end_the_program_alike() -> None:
    assert_alike(TREES.format(depth=8), SMALL)


TRAP = """
.struct cell value i64
.struct other weight f64 more i64
.function main
.local i i64
.local a f64[]
.local c cell
.local any anyref
:next
{body}
    local.get i
    i64.const 1
    i64.add
    local.set i
    local.get i
    i64.const 20
    i64.lt_s
    jump_if next
    halt
"""


@pytest.mark.parametrize(
    "body",
    sample(
        [
            "local.get a  array.length  drop",
            "local.get a  i64.const 0  array.get_f64  drop",
            "i64.const 10  array.new_default_f64  local.get i  array.get_f64  drop",
            "i64.const 9  array.new_default_f32  i64.const -1  f32.const 1.0  array.set_f32",
            "i64.const 9  array.new_default_u8  local.get i  i32.const 1  i64.const 5  array.fill_u8",
            "i64.const -1  array.new_default_f64  drop",
            "i64.const 200_000  array.new_default_f64  drop",
            "local.get c  struct.get cell.value  drop",
            "local.get c  i64.const 5  struct.set cell.value",
            "i64.const 4  struct.new cell  ref.cast other  drop",
            "i32.const 4  ref.i31  ref.cast cell  drop",
            "i32.const -4  ref.i31  i31.get_s  i32.const -7  ref.i31  i31.get_u  i32.add  drop",
            "local.get any  ref.cast f64[]  drop",
            "ref.null i31ref  i31.get_u  drop",
            "i64.const 3  array.new_default_f64  ref.cast arrayref  array.length  drop",
            "i64.const 3  array.new_default_f64  ref.cast i64[]  array.length  drop",
            "local.get c  local.get a  ref.eq  drop",
        ],
        7,
    ),
)
def test_traps_are_those_of_the_reference(body: str) -> None:
    lines = "\n".join(f"    {each}" for each in body.split("  ") if each)
    assert_alike(TRAP.format(body=lines))


def test_small_objects_are_made_without_leaving() -> None:
    observer, engine = Observer(), Engine(policy=COMPILED)
    observer.watch(engine)
    assert engine.start(assemble(TREES.format(depth=10))).run().status is Status.HALT
    (placement,) = observer.placements
    assert placement.code is not None
    assert placement.code.activity().entries == 4  # at the start, and after an output each time
