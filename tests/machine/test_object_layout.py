# SPDX-License-Identifier: Apache-2.0
"""Objects as a device has them: the arrays outside are found, and only their places are others."""

from __future__ import annotations

import numpy as np
import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.machine.object_layout import ObjectLayout, Words, first_fit
from ferryvm.machine.state import Machine

FIRST = 1 << 20

PROGRAM = """
.struct node value i64 next node
.static kept anyref
.function main
.local a i64[]
.local b u8[]
.local c f64[]
    i64.const 4600
    array.new_default_i64
    local.set a
    i64.const 1
    ref.null node
    struct.new node
    static.set kept
    i64.const 5
    array.new_default_u8
    local.set b
    i64.const 4700
    array.new_default_f64
    local.set c
    halt
"""


@pytest.fixture
def machine() -> Machine:
    """The machine of the program at its end."""
    execution = Engine("reference").start(ferryvm.assemble(PROGRAM))
    execution.run()
    return execution.machine


def words(machine: Machine) -> Words:
    assert machine.objects is not None
    return np.array(machine.objects.space.words[: machine.control.object_top // 8], np.uint64)


def test_arrays_outside_get_places_which_they_keep(machine: Machine) -> None:
    layout = ObjectLayout(machine.verified, FIRST)
    layout.update(machine.control)
    numbers = {"i64[]": 36_800, "f64[]": 37_600}
    names = machine.verified.types.references
    assert {names[each.type].name: each.bytes for each in layout.arrays.values()} == numbers
    places = {address: each.place for address, each in layout.arrays.items()}
    assert sorted(places.values()) == [FIRST, FIRST + 36_800]
    assert (layout.size, layout.outside_bytes) == (FIRST + 74_400, 74_400)
    assert machine.objects is not None
    machine.objects.collect()  # headers move, elements do not
    layout.update(machine.control)
    assert {address: each.place for address, each in layout.arrays.items()} == places


def test_a_device_has_the_words_of_the_host_but_for_places(machine: Machine) -> None:
    layout, before = ObjectLayout(machine.verified, FIRST), words(machine)
    layout.update(machine.control)
    there = layout.to_device(before)
    places = {each.place: each.reference for each in layout.arrays.values()}
    assert {int(there[reference // 8 + 2]): reference for reference in places.values()} == places
    assert np.count_nonzero(there != before) == len(places)
    assert np.array_equal(layout.to_host(there), before)


def test_places_of_dead_arrays_are_given_to_others(machine: Machine) -> None:
    layout = ObjectLayout(machine.verified, FIRST)
    layout.update(machine.control)
    assert machine.objects is not None
    for word in range(2, 5):  # the locals
        machine.memory.stack[word] = 0
    machine.objects.collect()
    layout.update(machine.control)
    assert not layout.arrays
    assert layout.size == FIRST


def test_words_that_are_no_objects_are_refused(machine: Machine) -> None:
    assert machine.objects is not None
    layout = ObjectLayout(machine.verified, FIRST)
    machine.objects.space.words[1] = 0
    with pytest.raises(
        ValueError, match="the objects of the program are damaged: the object at 8 has the header"
    ):
        layout.update(machine.control)


def test_ranges_take_the_lowest_gaps_that_they_fit_into() -> None:
    taken = [(24, 32), (8, 16)]
    assert first_fit(taken, [16, 8, 8], 0, 64) == [32, 0, 16]
    assert first_fit(taken, [16, 16, 8], 0, 56) is None
    assert first_fit([], [], 0, 0) == []


def test_elements_that_moved_out_for_python_leave_a_gap() -> None:
    text = "(define (fill (x f64)) (make-array f64 9 x)) (define (first (xs (array f64))) (array-ref xs 0))"
    instance = Engine("threaded").instantiate(ferryvm.compile(text))
    shared = [instance.fill(0.3), instance.fill(0.7)]  # bits that are no header
    assert [instance.first(array) for array in shared] == [0.3, 0.7]
    machine = instance.idle_execution().machine
    assert machine.objects is not None
    assert machine.objects.space.gaps
    layout = ObjectLayout(machine.verified, FIRST)
    layout.update(machine.control)
    assert [each.bytes for each in layout.arrays.values()] == [72, 72]
    machine.objects.collect()
    assert not machine.objects.space.gaps
