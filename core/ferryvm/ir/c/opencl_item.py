# SPDX-License-Identifier: Apache-2.0
"""OpenCL C for the items of a launch: one work-item of an NDRange for each.

    get_global_id ─> item ─> is any to begin? ─┬─ no: it is marked as skipped
                                               └─ the function of the items ─┬─ done
                                                                             └─ left: a slot

A work-item has a control block and frames of its own, in private memory. It cannot make an object,
grow the heap or call the host: there it leaves, as at a trap, in the state before the instruction.
Then it claims a slot by an atomic counter and copies its frames there. So nothing of an item is in
the machine's memory but what it has stored, and items can run in any order.

The function's own frame begins at word 0 of the private ones. The addresses that stack checks
compare are those that the frames would have on the machine's stack.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ferryvm.ir.c import opencl_object
from ferryvm.ir.c.context import FORCED_WORD, SLICE_WORD
from ferryvm.ir.c.dialect import Dialect
from ferryvm.ir.c.expression import Arithmetic
from ferryvm.ir.c.opencl import DRY, LOOK, PRELUDE, opencl
from ferryvm.isa.type import Type

ENTRY = "ferry_items"
"""The kernel that runs the items."""

MOST_ARGUMENTS = 64
"""Words of arguments that items can share: devices pass at least 1024 bytes to a kernel."""

SLOT_WORDS = 5
"""Words of a slot before the frames: item, pc, frame, size, status."""

TRAP_SHIFT, EXIT_SHIFT = 8, 32
"""Bits of the last of these from which on there are the trap and the number of a guard."""

_MEMORY = """\
struct ferry_memory {
    __global ulong *statics;
    __private ulong *stack;
    ulong stack_at;
    ulong stack_end;
    __global uchar *heap;
    const volatile __global uint *interrupt; /* for loops of items */
"""

_OBJECTS = """\
    ulong objects;
    __global const ulong *types;
"""

_SPENT = f"""\
static inline bool is_spent(__private struct ferry_control *control)
{{
    const bool is_over = control->scratch[{SLICE_WORD}] <= {LOOK}ul;
    control->scratch[{SLICE_WORD}] -= is_over ? 0ul : {LOOK}ul;
    return is_over;
}}
"""


def _structures(arguments: int, frame: int) -> str:
    return f"""\
struct ferry_launch {{
    ulong first, limit, most, enough;
    ulong stack_at, stack_end, hp, objects, types, forced, polls;
    ulong arguments[{max(arguments, 1)}];
}};
struct ferry_slot {{
    ulong item, pc, frame, size, status;
    ulong words[{frame}];
}};
struct ferry_suspended {{
    uint count, stop, skipped, lost, interrupt, unused[3];
    struct ferry_slot slots[1];
}};

static void suspend(
    __private const struct ferry_control *control, __private const ulong *frame, ulong item,
    __global struct ferry_suspended *suspended, ulong most, ulong enough)
{{
    const uint number = atomic_inc(&suspended->count);
    const bool is_last = control->status == FERRY_TRAP || control->status == FERRY_INTERRUPTED;
    if (is_last || number + 1u >= enough)
        suspended->stop = 1;
    if (number >= most) {{
        suspended->lost = 1;
        return;
    }}
    __global struct ferry_slot *const slot = &suspended->slots[number];
    slot->item = item;
    slot->pc = control->pc;
    slot->frame = control->fp;
    slot->size = control->sp;
    slot->status = control->status | (ulong)control->trap << {TRAP_SHIFT}
        | (ulong)control->exit_id << {EXIT_SHIFT};
    for (ulong i = 0; i < control->sp; ++i)
        slot->words[i] = frame[i];
}}

"""


def _entry(dialect: Dialect, function: str, types: Sequence[Type], frame: int, apart: bool) -> str:
    objects = "objects" in dialect.name.split()
    arithmetic = Arithmetic(dialect)
    given = [arithmetic.from_slot(t, f"launch.arguments[{n}]") for n, t in enumerate(types)]
    passed = ", ".join([dialect.passed, "frame", "item", *given])
    bound = ""
    if objects:
        bound = (
            opencl_object.BOUND
            if apart
            else "    memory.objects = launch.objects;\n"
            "    memory.types = (__global const ulong *)launch.types;\n"
        )
    tried = ""
    if objects and not apart:
        tried = "        ++*(__global ulong *)launch.objects;\n        suspended->lost = 1;\n"
    return f"""\
{_structures(len(types), frame)}__kernel void {ENTRY}(
    __global uchar *restrict statics_buffer, ulong statics_at,
    __global uchar *restrict heap_buffer, ulong heap_at,
    __global struct ferry_suspended *suspended, __global uchar *restrict skipped,
    const struct ferry_launch launch{opencl_object.PARAMETERS if apart and objects else ""})
{{
    struct ferry_memory memory;
    memory.interrupt = &suspended->interrupt;
    if (launch.first == FERRY_DRY) {{
        suspended->count += 1u + *memory.interrupt;
{tried}\
        return;
    }}
    const ulong place = get_global_id(0);
    const ulong item = launch.first + place;
    if ((long)item >= (long)launch.limit)
        return;
    if (*(volatile __global uint *)&suspended->stop) {{
        skipped[place] = 1;
        suspended->skipped = 1;
        return;
    }}
    __private ulong frame[{frame}];
    memory.statics = (__global ulong *)(statics_buffer + statics_at);
    memory.stack = frame;
    memory.stack_at = launch.stack_at;
    memory.stack_end = launch.stack_end;
    memory.heap = heap_buffer + heap_at;
{bound}\
    __private struct ferry_control own;
    __private struct ferry_control *const control = &own;
    own.trap = own.exit_id = 0;
    own.hp = own.heap_capacity = launch.hp;
    own.object_top = own.object_end = own.prepared = own.prepared_bytes = 0;
    own.scratch[{FORCED_WORD}] = launch.forced;
    own.scratch[{SLICE_WORD}] = launch.polls;
    if (unlikely({function}({passed})))
        suspend(control, frame, item, suspended, launch.most, launch.enough);
}}
"""


def items_dialect(
    function: str,
    types: Sequence[Type],
    frame: int,
    *,
    aligned: bool,
    apart: bool,
    objects: bool,
) -> Dialect:
    """The dialect for the items of a launch, whose entry calls the C function `function`.

    `types`: of the arguments after the item; `frame`: words of the frames of an item; the rest as
    for `ferryvm.ir.c.opencl.opencl`. A work-item that has no slot, after `most`, sets `lost`: its
    frames are gone.
    """
    base = opencl(aligned=aligned, apart=apart, objects=objects)
    fields = (opencl_object.FIELDS if apart else _OBJECTS) if objects else ""
    looks = {"interrupted": "#define interrupted(control) (*memory.interrupt != 0)\n"}
    if apart:
        looks = {
            "is_spent": _SPENT,
            "interrupted": "#define interrupted(control) is_spent(control)\n",
        }
    helpers = {
        **{name: text for name, text in base.helpers.items() if name not in ("is_spent",)},
        **looks,
        "entered": "#define entered(control) false\n",
        "frame_address": "#define frame_address(frame) "
        "(memory.stack_at + sizeof(ulong) * (ulong)((frame) - memory.stack))\n",
    }
    without_entry = dataclasses.replace(
        base,
        name=f"{base.name} items",
        prelude=f"{PRELUDE}{_MEMORY}{fields}}};\n#define FERRY_DRY {DRY:#x}ul\n",
        helpers=helpers,
        segments={**base.segments, "objects": "memory.objects", "types": "memory.types"},
        parameters="__private struct ferry_control *const control, const struct ferry_memory memory",
        frame_space="__private ",
        has_root=False,
    )
    return dataclasses.replace(
        without_entry, entry=_entry(without_entry, function, types, frame, apart)
    )
