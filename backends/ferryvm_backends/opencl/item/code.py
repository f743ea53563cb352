# SPDX-License-Identifier: Apache-2.0
"""The code of a launch's loop: a kernel of one work-item in order, and one of the items.

launch.test ─┬─ few items left ─> one work-item that loops
             └─ many ─> PARALLEL ─> the engine ─> ItemRanges
"""

from __future__ import annotations

import ctypes
import dataclasses
import weakref
from collections.abc import Callable
from typing import Any

from ferryvm import cache
from ferryvm.backend import Activity, BackendError, Code, Options, RefusalError
from ferryvm.ir.c.opencl_group import WORK
from ferryvm.isa.type import WORD_BYTES
from ferryvm.item_range import RangeOutcome, RangeRunner
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.launch_operands import launch_operands
from ferryvm.machine.state import Machine
from ferryvm.region.launch import launch_numbers
from ferryvm.region.region import Region
from ferryvm.skeleton.recognition import pattern_of
from ferryvm.wrapper import CodeWrapper
from ferryvm_backends.opencl import build
from ferryvm_backends.opencl.code import KernelCode
from ferryvm_backends.opencl.device import Device
from ferryvm_backends.opencl.group import has_groups
from ferryvm_backends.opencl.group.range import GroupRanges, Sizes
from ferryvm_backends.opencl.group.slice import GroupKernel, GroupSlices
from ferryvm_backends.opencl.group.text import group_leaves, group_text
from ferryvm_backends.opencl.item import shared_types
from ferryvm_backends.opencl.item.kernel import ItemKernel
from ferryvm_backends.opencl.item.local_size import LocalSize
from ferryvm_backends.opencl.item.memory import CopiedMemory, WrappedMemory
from ferryvm_backends.opencl.item.pattern import PatternKernel
from ferryvm_backends.opencl.item.pattern_text import pattern_text
from ferryvm_backends.opencl.item.range import ItemRanges
from ferryvm_backends.opencl.item.text import item_text
from ferryvm_backends.opencl.launch import BACK, STATUSES, entry_stub
from ferryvm_backends.opencl.report import KernelMetrics
from ferryvm_backends.opencl.resident import needs
from ferryvm_backends.opencl.text import COPIED, WRAPPED


class RefusedRanges(RangeRunner):
    """Items that cannot be work-items, for a reason."""

    is_paced = True  # the reason is found with the first range, and none is timed before

    def __init__(self, device: Device, reason: str) -> None:
        self._device, self._reason = device, reason

    @property
    def where(self) -> str:
        return f"work-items of {self._device}"

    def run(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        raise BackendError(self._reason)


class ItemCode(CodeWrapper):
    """Code of a launch's loop that leaves for its `ranges` where many items are left."""

    inner: KernelCode

    def __init__(self, inner: KernelCode, region: Region, ranges: RangeRunner) -> None:
        self.inner, self._ranges = inner, ranges
        self._region = region.name
        stub = entry_stub("launch_items")
        weakref.finalize(ranges, stub.close)
        self._call_back, entry = BACK(self._back), stub.items
        entry.back = ctypes.cast(self._call_back, ctypes.c_void_p).value or 0
        entry.in_order = inner.address
        entry.word = WORD_BYTES * launch_numbers(region.verified)[region.entry]
        entry.behind = region.verified.program.code.immediates[region.entry + 1]
        self.address = stub.address
        if isinstance(ranges, ItemRanges):
            ranges.enter_by(entry)

    def _back(self, _key: int, address: int, why: int) -> int:
        """The answer to native code that has come to more items than it can run itself."""
        control, ranges = ControlBlock.from_address(address), self._ranges
        launch = launch_operands(control)
        is_done = isinstance(ranges, ItemRanges) and ranges.run_in_entry(
            control, launch.next, launch.limit, STATUSES[why]
        )
        return int(Status.RUNNING if is_done else Status.PARALLEL)

    @property
    def ranges(self) -> RangeRunner:
        return self._ranges

    def activity(self) -> Activity:
        found = self.inner.activity()
        for runner in self._runners:
            found = self._with(found, runner)
        return found

    @property
    def _runners(self) -> list[ItemRanges]:
        ranges = self._ranges
        if isinstance(ranges, GroupRanges):
            return ranges.runners
        return [ranges] if isinstance(ranges, ItemRanges) else []

    @staticmethod
    def _with(found: Activity, ranges: ItemRanges) -> Activity:
        """The activity with that of a runner."""
        ranges.settle()
        traffic = ranges.traffic
        failures = {
            pc: found.failures.get(pc, 0) + ranges.failures.get(pc, 0)
            for pc in found.failures | ranges.failures
        }
        return dataclasses.replace(
            found,
            entries=found.entries + ranges.entries,
            seconds=found.seconds + ranges.seconds,
            failures=failures,
            to_device=found.to_device + traffic.to_device,
            to_host=found.to_host + traffic.to_host,
            transfer_seconds=found.transfer_seconds + traffic.seconds,
            arrays=(*found.arrays, *map(dataclasses.replace, traffic.arrays.values())),
        )

    def metrics(self) -> object:
        found = self.inner.metrics()
        if not isinstance(found, KernelMetrics):
            return found
        traffic = [runner.traffic for runner in self._runners]
        return dataclasses.replace(
            found,
            activity=self.activity(),
            seconds_to_device=found.seconds_to_device + sum(t.seconds_to_device for t in traffic),
            seconds_to_host=found.seconds_to_host + sum(t.seconds_to_host for t in traffic),
        )


def item_code(
    inner: KernelCode, region: Region, items: Region, options: Options, device: Device, access: str
) -> Code:
    """The code of a launch, with a kernel of its items; `items`: their function. Raises
    BackendError."""
    return ItemCode(inner, region, _ranges(region, items, options, device, access))


def _ranges(
    region: Region, items: Region, options: Options, device: Device, access: str
) -> RangeRunner:
    try:
        if has_groups(items):
            return _groups(region, items, options, device, access)
        text, shape = item_text(region, items, options, device, access)
    except RefusalError as error:
        return RefusedRanges(device, str(error))
    wraps, session = access == WRAPPED, build.session(device)
    kernel, sees_changes = _kernel(device, text.source, shape.arguments, options)
    if wraps and not sees_changes:
        return RefusedRanges(device, "the device does not see the host's changes of memory")
    memory = (WrappedMemory if wraps else CopiedMemory)(session, needs(items, False, text.objects))
    most = 1 if shape.is_block else kernel.most_local(device.handle)
    key = cache.key([build.key(device, text.source, options.quick), "local"])
    local = LocalSize(most, cache.Entry("local", key, "opencl") if options.cache else None)
    pattern = _pattern(items, options, device, access)

    def polled() -> ItemKernel:
        other, _ = item_text(region, items, options, device, access, polls=True)
        return _kernel(device, other.source, shape.arguments, options)[0]

    return ItemRanges(kernel, polled, memory, shape, text.guards, region, local, pattern)


def _groups(
    region: Region, items: Region, options: Options, device: Device, access: str
) -> GroupRanges:
    """The runner of a launch's groups. Raises BackendError."""

    def make(sizes: Sizes, is_exact: bool) -> GroupSlices:
        text = group_text(items, options, device, access, sizes, is_exact)
        shape, members = text.shape, text.form.members
        wraps, session = access == WRAPPED, build.session(device)
        program, retain = _program(device, text.kernel.source, shape.arguments, options)
        kernel = GroupKernel(session.context, program, shape.arguments, members)
        kernel.work = ItemKernel(session.context, program, shape.arguments, members, WORK)
        sees_changes = kernel.run_dry(session.queue)
        retain()
        if wraps and not sees_changes:
            raise BackendError("the device does not see the host's changes of memory")
        most = kernel.work.most_local(device.handle)
        if members > most:
            raise BackendError(
                f"its groups have {members} members; {device} has registers for {most} of them"
            )
        needed = needs(items, False, text.kernel.objects)
        memory = (WrappedMemory if wraps else CopiedMemory)(session, needed)
        made = GroupSlices(kernel, lambda: kernel, memory, shape, (), region, LocalSize(1))
        made.is_sure = is_exact
        return made

    leaves = group_leaves(items, options)
    return GroupRanges(str(device), leaves, len(shared_types(items)), make)


def _pattern(items: Region, options: Options, device: Device, access: str) -> PatternKernel | None:
    """The kernel of the pattern of the items, if they have one."""
    found = None
    if items.function is not None and not options.forcing:
        found = pattern_of(items.verified.program, items.function)
    if found is None:
        return None
    text = pattern_text(found, apart=access == COPIED, aligned=not device.is_cpu)
    kernel, _ = _kernel(device, text.source, text.arguments, options, text.lanes)
    return PatternKernel(found, kernel)


def _kernel(
    device: Device, source: str, arguments: int, options: Options, lanes: int = 1
) -> tuple[ItemKernel, bool]:
    """The kernel of a source; True if the device sees the host's changes of memory."""
    program, retain = _program(device, source, arguments, options)
    session = build.session(device)
    kernel = ItemKernel(session.context, program, arguments, lanes)
    sees_changes = kernel.run_dry(session.queue)
    retain()
    return kernel, sees_changes


def _program(
    device: Device, source: str, arguments: int, options: Options
) -> tuple[Any, Callable[[], object]]:
    """The program of a source, and a function that caches it once its kernels have run."""
    entry = None
    if options.cache:
        entry = cache.Entry("kernel", build.key(device, source, options.quick), "opencl")
    payload = entry.find(build.fault) if entry is not None else None
    is_new = payload is None
    if payload is None:
        payload = build.build(device, source, arguments, options.quick)
    program = build.loaded(device, source, payload, options.quick)

    def retain() -> None:
        if entry is not None and is_new and build.fault(payload) is None:
            entry.try_store(payload)

    return program, retain
