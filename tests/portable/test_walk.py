# SPDX-License-Identifier: Apache-2.0
"""The arguments of a kernel on a device, as harnesses pass them: the device is Python's memory
here."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from ferryvm.portable.harness.golden import Memory, Passed, passed

MANIFEST = {
    "arguments": [
        {"name": "items", "kind": "items", "type": "i64"},
        {"name": "x", "kind": "array", "type": "f64", "direction": "in"},
        {"name": "x_length", "kind": "length", "type": "i64", "of": "x"},
        {"name": "y", "kind": "array", "type": "f64", "direction": "inout"},
        {"name": "y_length", "kind": "length", "type": "i32", "of": "y"},
        {"name": "k", "kind": "scalar", "type": "f32"},
        {"name": "total", "kind": "result", "type": "f64"},
        {"name": "status", "kind": "status", "type": "i32"},
    ]
}
NUMBERS = (ctypes.c_double * 3)(1.0, 2.0, 3.0)
ARRAY = Memory(ctypes.addressof(NUMBERS), 3)


def _passed(x: Memory, y: Memory, takes_items: bool = True) -> tuple[Passed, list[Any]]:
    buffers: list[Any] = []

    def buffer(address: int, size: int) -> Any:
        buffers.append(ctypes.string_at(address, size))
        return f"buffer {len(buffers)}"

    arguments = [ctypes.c_int64(2), x, y, ctypes.c_float(0.5)]
    made = passed(MANIFEST, arguments, 2, buffer, lambda each: each.value, takes_items)
    return made, buffers


def test_one_array_that_is_passed_twice_has_one_buffer() -> None:
    made, buffers = _passed(ARRAY, ARRAY)
    expected = [2, "buffer 1", 3, "buffer 1", 3, 0.5, "buffer 2", "buffer 3"]
    assert made.given == expected
    assert [len(each) for each in buffers] == [24, 8, 8]
    assert buffers[0] == bytes(NUMBERS)


def test_arrays_that_are_only_read_do_not_come_back() -> None:
    other = (ctypes.c_double * 1)(4.0)
    made, _ = _passed(ARRAY, Memory(ctypes.addressof(other), 1))
    assert [(buffer, size) for buffer, _, size in made.returned] == [
        ("buffer 2", 8),
        ("buffer 3", 8),
        ("buffer 4", 8),
    ]
    assert made.returned[0][1] == ctypes.addressof(other)


@pytest.mark.parametrize(("takes_items", "count"), [(True, 8), (False, 7)])
def test_numbers_of_items_are_arguments_where_the_kernel_takes_them(
    takes_items: bool, count: int
) -> None:
    made, _ = _passed(ARRAY, ARRAY, takes_items)
    assert len(made.given) == count


def test_the_status_is_that_of_the_lowest_item_that_failed() -> None:
    made, _ = _passed(ARRAY, ARRAY)
    made.states[1] = 770
    made.results["total"].value = 2.5
    status, (total,) = made.outcome
    assert (status, total.value) == (770, 2.5)
