# SPDX-License-Identifier: Apache-2.0
"""The region IR to LLVM IR.

    lower ─┬─> lower_body ─────────────────────────┐  the region's own: status f(control)
           └─> lower_function ─> lower_body, copies │  others: {result, exited} f(control, frame, …)
                                                    ▼
              blocks, with parts around one function: access, side_exit, poll, call; Arithmetic

Arithmetic is lowered by calling, for each operation, the emitter method of its name; see
`ferryvm.ir.rule` for the others. A VM function becomes a native one. Frames are written only when
something leaves, each by its own function as the native stack unwinds.
"""

from __future__ import annotations

import itertools

from ferryvm.backend import Options
from ferryvm.ir.graph import Module
from ferryvm.ir.operation import HOST_STACK_BYTES
from ferryvm.machine.control import Status
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, stack_register, word
from ferryvm_backends.llvm.body import lower_body
from ferryvm_backends.llvm.context import (
    FORCED_IN,
    HOST_STACK_LIMIT,
    LoweringContext,
    at_start,
    status_constant,
)
from ferryvm_backends.llvm.lane import lower_lanes
from ferryvm_backends.llvm.lane_count import lane_count, vector_bits
from ferryvm_backends.llvm.recursion import lower_function
from ferryvm_backends.llvm.storage import Storage
from ferryvm_backends.llvm.symbol import CROWDED, CYCLES, ENTRIES, ENTRY, INSTRUCTIONS, STACK
from ferryvm_backends.llvm.variant import Variant

_WIDEST = 512
"""Bits of vectors that LLVM avoids for processors of Intel, since a few of their operations slow
the core down: code with mathematical functions has many."""


def lower(module: Module, options: Options, polls: bool = True) -> ir.Module:
    """The LLVM module of a region; its visible symbols are `ENTRY`, `ACTIVITY` and, for a launch in
    lanes, `LANES`.

    `polls`: look at the interrupt flag in loops.
    """
    shared = LoweringContext(module, options, polls)
    _lower_root(shared, module)
    for number, body in module.functions.items():
        lower_function(shared, number, body)
    if module.lanes is not None:
        lower_lanes(shared, module, lane_count(module.lanes, options))
    for native, body in shared.records.values():
        lower_body(shared, Variant(body, {}), at_start(native))
    shared.writers.settle()
    return shared.native


def _lower_root(shared: LoweringContext, module: Module) -> None:
    """The function that others call: it counts, then runs the region's own body."""
    entry = shared.entered(ENTRY)
    builder = at_start(entry)
    storage = Storage(builder)
    (control,) = entry.args
    variant = Variant(module.root, shared.functions)

    entries = shared.count(storage, ENTRIES, word(1))
    if shared.is_forced:
        rest = builder.add(builder.urem(entries, word(7)), word(1))
        storage.store(rest, storage.offset(control, FORCED_IN), "control")
    _check_stack(shared, storage, control, any(body.recurs for body in module.bodies))
    # Its frame is made only after the check, and inlining it would have LLVM optimise it twice.
    root = shared.entered("region")
    root.linkage = "internal"
    root.attributes.add("noinline")
    operations = itertools.chain.from_iterable(body.operations for body in module.bodies)
    if vector_bits() == _WIDEST and any(operation.name == "apply" for operation in operations):
        root.attributes.add(f'"prefer-vector-width"="{_WIDEST}"')
    lower_body(shared, variant, at_start(root))
    if module.streams:
        root = _fenced(shared, root)
    if not shared.options.observe:
        builder.ret(builder.call(root, [control], tail="tail"))
        return
    clock = shared.native.intrinsic("llvm.readcyclecounter", WORD, [])
    began, fuel = builder.call(clock, []), storage.field(control, "fuel")
    status = builder.call(root, [control])
    shared.count(storage, CYCLES, builder.sub(builder.call(clock, []), began))
    if shared.options.counting:
        shared.count(storage, INSTRUCTIONS, builder.sub(fuel, storage.field(control, "fuel")))
    builder.ret(status)


def _fenced(shared: LoweringContext, root: ir.Function) -> ir.Function:
    """A function that orders the streaming stores of another one before all later stores."""
    fenced = shared.entered("fenced")
    fenced.linkage = "internal"
    builder = at_start(fenced)
    status = builder.call(root, [fenced.args[0]])
    builder.call(shared.native.intrinsic("llvm.x86.sse.sfence", ir.VoidType(), []), [])
    builder.ret(status)
    return fenced


def _check_stack(
    shared: LoweringContext, storage: Storage, control: ir.Value, recurs: bool
) -> None:
    """Leave at once if the thread's stack has no headroom for all frames; else set the limit of
    recursion, so that the headroom remains."""
    builder = storage.builder
    top = stack_register(builder)
    needed = storage.load(shared.activity_word(storage, STACK), "activity")
    lowest = builder.add(storage.field(control, "host_stack"), needed)
    with builder.if_then(builder.icmp_unsigned("<", top, lowest), likely=False):
        shared.count(storage, CROWDED, word(1))
        status = status_constant(Status.LEAVE)
        storage.set_field(control, "status", status)
        builder.ret(status)
    if recurs:
        deepest = builder.sub(top, word(HOST_STACK_BYTES))
        is_higher = builder.icmp_unsigned(">", lowest, deepest)
        limit = builder.select(is_higher, lowest, deepest)
        storage.store(limit, storage.offset(control, HOST_STACK_LIMIT), "control")
