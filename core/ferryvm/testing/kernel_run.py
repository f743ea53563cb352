# SPDX-License-Identifier: Apache-2.0
"""Kernels executed by CPython, for comparison: each item of a group is a thread, one of which runs
at a time.

group ── resume item 0 ──> it waits or ends ── resume item 1 ──> …    all have waited: from the first again
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

from ferryvm.errors import Position
from ferryvm.python.control_flow.kernel_graph import group_dtype
from ferryvm.python.control_flow.kernel_source import Layout
from ferryvm.python.group.kernel import Kernel, arranged
from ferryvm.python.hosted import work_item
from ferryvm.python.hosted.work_item import KernelError, WorkItem, running
from ferryvm.testing.group_order import group_results

_Place = tuple[tuple[CodeType, int], ...]
"""The calls of an item that waits, innermost first: code and instruction."""


def run_kernel(
    kernel: Kernel[...],
    n: int | Sequence[int],
    /,
    *arguments: Any,
    group: int | Sequence[int] | None = None,
) -> None:
    """Launch a kernel in CPython, slowly: items in order, and those of a group up to each barrier.
    A debugger and `print` show what each does.

    Arguments as of `ferryvm.launch`. Raises KernelError as that does, and what an item raises.
    """
    layout, counts = arranged(kernel.__name__, n, group)
    function = kernel.function
    if layout.group is None:
        for index in np.ndindex(*counts):
            with _running(_Item(layout, counts, index)):
                function(*arguments)
        return
    for number in np.ndindex(*counts):
        members = [_Member(layout, counts, i, number) for i in np.ndindex(*layout.group)]
        _Group(kernel.__name__, members).run(lambda: function(*arguments))


@contextlib.contextmanager
def _running(item: WorkItem) -> Iterator[None]:
    """State the item that runs in this thread."""
    before, running.item = running.item, item
    try:
        yield
    finally:
        running.item = before


class _Item(WorkItem):
    """An item of a launch without groups."""

    def __init__(
        self,
        layout: Layout,
        counts: tuple[int, ...],
        index: tuple[int, ...],
        group: tuple[int, ...] | None = None,
    ) -> None:
        self._layout = layout
        sizes = layout.group or (1,) * layout.dimensions
        numbers = group or (0,) * layout.dimensions
        self._values: dict[Callable[..., Any], Sequence[int]] = {
            work_item.item: [g * s + i for g, s, i in zip(numbers, sizes, index, strict=True)],
            work_item.item_count: [c * s for c, s in zip(counts, sizes, strict=True)],
        }
        if group is not None:
            self._values |= {
                work_item.local_item: index,
                work_item.group_number: group,
                work_item.group_size: sizes,
                work_item.group_count: counts,
            }

    def index(self, function: Callable[..., Any], axis: int) -> int:
        """The value of one of the functions of indices and sizes."""
        if function not in self._values:
            raise _needs_groups(function.__name__)
        if not 0 <= axis < self._layout.dimensions:
            dimensions = self._layout.dimensions
            raise KernelError(f"axis {axis} of a launch that has {dimensions} dimensions")
        return self._values[function][axis]

    def wait(self) -> None:
        """Refuse: there is no group."""
        raise _needs_groups("barrier")

    def array(self, shape: Any, dtype: Any) -> Any:
        """Refuse: there is no group."""
        raise _needs_groups("group_array")

    def combine(self, function: Callable[..., Any], value: Any, *others: Any) -> Any:
        """Refuse: there is no group."""
        raise _needs_groups(function.__name__)


def _needs_groups(name: str) -> KernelError:
    return KernelError(f"ferryvm.{name} needs groups; pass group= to ferryvm.launch")


class _Member(_Item):
    """An item of a group, in a thread of its own."""

    group: _Group
    """Its group."""

    def __init__(
        self,
        layout: Layout,
        counts: tuple[int, ...],
        index: tuple[int, ...],
        group: tuple[int, ...],
    ) -> None:
        super().__init__(layout, counts, index, group)
        self.number = int(np.ravel_multi_index(index, layout.group or ()))
        self.of = group[0] if len(group) == 1 else group
        self.place: _Place | None = None
        """The barrier at which it waits; None: it has ended, or has not begun."""
        self.given: tuple[Any, Sequence[Any]] = None, ()
        """The arguments of an operation of the group."""
        self.error: BaseException | None = None
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._is_over = False

    def begin(self, call: Callable[[], None]) -> None:
        """Make its thread, which waits until it is resumed."""
        self._thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self._thread.start()

    def _run(self, call: Callable[[], None]) -> None:
        self._go.acquire()
        try:
            if not self._is_over:
                with _running(self), np.errstate(all="ignore"):
                    call()
        except _OverError:
            pass
        except BaseException as error:  # noqa: BLE001  # raised by the launch
            self.error = error
        finally:
            self.place = None
            self._stopped.release()

    def resume(self) -> None:
        """Let it run until it waits or ends."""
        self._go.release()
        self._stopped.acquire()

    def end(self) -> None:
        """Let it end where it waits, or before it begins."""
        self._is_over = True
        self.resume()

    def wait(self) -> None:
        """Wait for the other items of the group."""
        self._wait_at(sys._getframe(2))  # of the caller of `barrier`

    def _wait_at(self, frame: FrameType) -> None:
        self.place = tuple(_calls(frame))
        self._stopped.release()
        self._go.acquire()
        if self._is_over:
            raise _OverError

    def array(self, shape: Any, dtype: Any) -> Any:
        """The array of the group."""
        frame = sys._getframe(2)
        return self.group.array((frame.f_code, frame.f_lasti), shape, dtype)

    def combine(self, function: Callable[..., Any], value: Any, *others: Any) -> Any:
        """The value of one of the operations of the group."""
        frame = sys._getframe(2)
        self.given = value, others
        self._wait_at(frame)
        found = self.group.combined(function)[self.number]
        self._wait_at(frame)
        return found


class _OverError(BaseException):
    """Ends an item whose launch is over."""


def _calls(frame: FrameType | None) -> Iterator[tuple[CodeType, int]]:
    while frame is not None and frame.f_globals.get("__name__") != __name__:
        yield frame.f_code, frame.f_lasti
        frame = frame.f_back


class _Group:
    """The items of a group, and its arrays."""

    def __init__(self, name: str, members: Sequence[_Member]) -> None:
        self._name, self._members = name, members
        self._arrays: dict[tuple[CodeType, int], Any] = {}
        for each in members:
            each.group = self

    def array(self, place: tuple[CodeType, int], shape: Any, dtype: Any) -> Any:
        """The array that a place of the code stands for."""
        if place not in self._arrays:
            self._arrays[place] = np.zeros(shape, group_dtype(dtype))
        found = self._arrays[place]
        if found.shape != (shape if isinstance(shape, tuple) else (shape,)):
            raise KernelError(f"the shape of a group array is one for all items, found {shape}")
        return found

    def combined(self, function: Callable[..., Any]) -> Any:
        """The results of the items, by an operation."""
        values = [each.given[0] for each in self._members]
        return group_results(function, values, self._members[0].given[1])

    def run(self, call: Callable[[], None]) -> None:
        """Call the kernel for each item. Raises what the first one that raises does."""
        open_ = [*self._members]
        for each in open_:
            each.begin(call)
        try:
            while open_:
                for each in open_:
                    each.resume()
                    if each.error is not None:
                        raise each.error
                self._check()
                open_ = [each for each in open_ if each.place is not None]
        finally:
            for each in self._members:
                if each._thread.is_alive():
                    each.end()
                each._thread.join()

    def _check(self) -> None:
        """Raise KernelError unless all items wait at one barrier, or all have ended."""
        first = self._members[0]
        other = next((each for each in self._members if each.place != first.place), None)
        if other is not None:
            raise KernelError(
                f"{self._name}, group {first.of}: items do not all wait at one barrier: "
                f"{_shown(first)}; {_shown(other)}"
            )


def _shown(member: _Member) -> str:
    if member.place is None:
        return f"item {member.number} has ended"
    code, instruction = member.place[0]
    found = [*code.co_positions()][instruction // 2]
    return f"item {member.number} waits at {Position(code.co_filename, found[0] or 0, (found[2] or 0) + 1)}"
