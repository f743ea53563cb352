# SPDX-License-Identifier: Apache-2.0
"""The functions by which the items of kernels know their places and wait: `ferryvm.item` and
others.

Compiled code has none of them: they stand for parameters and instructions
(`ferryvm.python.control_flow.kernel_call`). Where CPython executes a kernel, as
`ferryvm.testing.check_kernel` does, they ask the item that runs in the thread.
"""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from ferryvm.errors import FerryError


class KernelError(FerryError):
    """A kernel was launched with sizes that do not fit, is used outside of a launch, or its items
    do not all wait at one barrier."""


class WorkItem(abc.ABC):
    """An item of a launch that CPython executes."""

    @abc.abstractmethod
    def index(self, function: Callable[..., Any], axis: int) -> int:
        """The value of one of the functions of indices and sizes."""

    @abc.abstractmethod
    def wait(self) -> None:
        """Wait for the other items of the group."""

    @abc.abstractmethod
    def array(self, shape: Any, dtype: Any) -> Any:
        """The array of the group."""

    @abc.abstractmethod
    def combine(self, function: Callable[..., Any], value: Any, *others: Any) -> Any:
        """The value of one of the operations of a group."""


class Running(threading.local):
    """The item that runs in a thread."""

    item: WorkItem | None = None


running = Running()


def _item(name: str) -> WorkItem:
    if running.item is None:
        _refuse(name)
    return running.item


def _refuse(name: str) -> NoReturn:
    message = f"ferryvm.{name} is called outside of a kernel; ferryvm.launch runs kernels"
    raise KernelError(message)


def item(axis: int = 0) -> int:
    """The index of the item among all of the launch, along an axis. Raises KernelError outside of a
    kernel, as all of these functions."""
    return _item("item").index(item, axis)


def local_item(axis: int = 0) -> int:
    """The index of the item in its group, along an axis."""
    return _item("local_item").index(local_item, axis)


def group_number(axis: int = 0) -> int:
    """The index of the item's group, along an axis."""
    return _item("group_number").index(group_number, axis)


def group_size(axis: int = 0) -> int:
    """The number of items of a group, along an axis; a constant of compiled code."""
    return _item("group_size").index(group_size, axis)


def group_count(axis: int = 0) -> int:
    """The number of groups of the launch, along an axis."""
    return _item("group_count").index(group_count, axis)


def item_count(axis: int = 0) -> int:
    """The number of items of the launch, along an axis."""
    return _item("item_count").index(item_count, axis)


def barrier() -> None:
    """Wait until all items of the group have come here; they see then what each did before.

    The launch raises KernelError where an item of the group ends, or waits elsewhere.
    """
    _item("barrier").wait()


def group_array(shape: int | tuple[int, ...], dtype: Any) -> Any:
    """The array of the group, one for all of its items; its elements are 0 when the group begins.

    `shape`: the same for all items: constants, arguments and `group_size()`. `dtype`: a type of
    NumPy, or its name in ferryvm, such as "f64", "i32", "u8".
    """
    return _item("group_array").array(shape, dtype)


def group_sum(value: Any) -> Any:
    """The sum of the values of all items of the group, as an element of an array: an int makes a
    numpy.int64, a float a numpy.float64. Sums of integers wrap.

    All items of the group come to it, as to a barrier, with values of one type: int32, int64,
    float32 or float64. docs/parallel.md states the order of sums.
    """
    return _item("group_sum").combine(group_sum, value)


def group_min(value: Any) -> Any:
    """The least of the values of all items of the group, NaN if one is; as `group_sum`."""
    return _item("group_min").combine(group_min, value)


def group_max(value: Any) -> Any:
    """The largest of the values of all items of the group, NaN if one is; as `group_sum`."""
    return _item("group_max").combine(group_max, value)


def group_scan(value: Any) -> Any:
    """The sum of the values of the items of the group up to this one, itself included; as
    `group_sum`."""
    return _item("group_scan").combine(group_scan, value)


def group_scan_before(value: Any) -> Any:
    """The sum of the values of the items of the group before this one; 0 in the first one."""
    return _item("group_scan_before").combine(group_scan_before, value)


def group_broadcast(value: Any, item: int = 0) -> Any:
    """The value of one item of the group, as an element of an array; as `group_sum`. `item`: its
    number in the group, in row-major order, which is that of the first item for all."""
    return _item("group_broadcast").combine(group_broadcast, value, item)


INDICES: tuple[Callable[..., int], ...] = (
    item,
    local_item,
    group_number,
    group_size,
    group_count,
    item_count,
)
"""The functions that have an index or a size for a value."""

OPERATIONS: tuple[Callable[..., Any], ...] = (
    group_sum,
    group_min,
    group_max,
    group_scan,
    group_scan_before,
    group_broadcast,
)
"""The operations of a group."""

FUNCTIONS: tuple[Callable[..., Any], ...] = (*INDICES, barrier, group_array, *OPERATIONS)


def is_index(function: object) -> bool:
    """True for a function that has an index or a size for a value."""
    return any(function is each for each in INDICES)


def is_work_item(function: object) -> bool:
    """True for each of these functions."""
    return any(function is each for each in FUNCTIONS)


def is_group_operation(function: object) -> bool:
    """True for an operation of a group."""
    return any(function is each for each in OPERATIONS)


def is_waiting_function(function: object) -> bool:
    """True for a function in which items wait for each other."""
    return function is barrier or is_group_operation(function)
