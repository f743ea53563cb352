# SPDX-License-Identifier: Apache-2.0
"""OpenCL C for the items of a launch: work-items of an NDRange.

    get_global_id ─> item ─> is any to begin? ─┬─ no: it is marked as skipped
                                               └─ its code ─┬─ done
                                                            └─ left: a slot

A work-item has a control block and frames of its own, in private memory. It cannot make an object,
grow the heap or call the host: there it leaves, as at a trap, in the state before the instruction.
Then it claims a slot by an atomic counter and copies its frames there. So nothing of an item is in
the machine's memory but what it has stored, and items can run in any order.

There are two kinds of code. A work-item calls the function of the items, whose frame begins at word
0 of the private ones; or it runs a block of items, by the loop of the launch on its own copy of the
launch's frame, whose range is the block. A processor is a vector machine for loops, not for
work-items. The addresses that stack checks compare are those that the frames would have on the
machine's stack.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ferryvm.ir.c import opencl_object
from ferryvm.ir.c.context import FORCED_WORD, GUARD_SHIFT, LOWEST_WORD, SLICE_WORD
from ferryvm.ir.c.dialect import Dialect
from ferryvm.ir.c.expression import Arithmetic
from ferryvm.ir.c.opencl import CONSTANTS_READ, DRY, LOOK, PRELUDE, opencl
from ferryvm.isa.type import Type

ENTRY = "ferry_items"
"""The kernel that runs the items."""

MOST_ARGUMENTS = 64
"""Words that items can share: devices pass at least 1024 bytes to a kernel."""

SLOT_WORDS = 5
"""Words of a slot before the frames: item, pc, frame, size, status. If the size is 0 the slot has
items that have not begun, the first one and, as `frame`, the end."""

ENTRY_SLOT_WORDS = 2
"""Words of a slot where all items leave at their entry: item, status."""

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

_MARKS = "    bool marks; /* stores set dirty marks where the host may do without */\n"

MARKS = "memory.marks"
"""The condition under which these stores set marks."""

_SPENT = f"""\
static inline bool is_spent(__private struct ferry_control *control)
{{
    const bool is_over = control->scratch[{SLICE_WORD}] <= {LOOK}ul;
    control->scratch[{SLICE_WORD}] -= is_over ? 0ul : {LOOK}ul;
    return is_over;
}}
"""


_SUSPEND = f"""\
static __global struct ferry_slot *claim(
    __global struct ferry_suspended *suspended, const struct ferry_launch *launch, uint status)
{{
    const uint number = atomic_inc(&suspended->count);
    if (status == FERRY_TRAP || status == FERRY_INTERRUPTED || number + 1u >= launch->enough)
        suspended->stop = 1;
    if (number >= launch->most) {{
        suspended->lost = 1;
        return 0;
    }}
    return &suspended->slots[number];
}}

static void suspend(
    __private const struct ferry_control *control, __private const ulong *frame, ulong item,
    __global struct ferry_suspended *suspended, const struct ferry_launch *launch)
{{
    __global struct ferry_slot *const slot = claim(suspended, launch, control->status);
    if (!slot)
        return;
    slot->item = item;
    slot->pc = control->pc;
    slot->frame = control->fp - launch->sp;
    slot->size = control->sp - launch->sp;
    slot->status = control->status | (ulong)control->trap << {TRAP_SHIFT}
        | (ulong)control->exit_id << {EXIT_SHIFT};
    for (ulong i = 0; i < slot->size; ++i)
        slot->words[i] = frame[launch->sp + i];
}}

"""

_SUSPEND_AT_ENTRY = f"""\
static void suspend(
    uint left, ulong place, ulong item, __global struct ferry_suspended *suspended,
    __global uchar *skipped, const struct ferry_launch *launch)
{{
    const uint status = left & ((1u << {GUARD_SHIFT}) - 1u);
    const uint number = atomic_inc(&suspended->count);
    if (status == FERRY_TRAP || status == FERRY_INTERRUPTED || number + 1u >= launch->enough)
        suspended->stop = 1;
    if (number >= launch->most) {{
        skipped[place] = 1; /* it has not changed anything */
        suspended->skipped = 1;
        return;
    }}
    suspended->slots[number].item = item;
    suspended->slots[number].status = status | (ulong)(left >> {GUARD_SHIFT}) << {EXIT_SHIFT};
}}

"""


def _structures(arguments: int, frame: int | None) -> str:
    slot = "item, status" if frame is None else "item, pc, frame, size, status"
    words = "" if frame is None else f"    ulong words[{frame}];\n"
    suspend = _SUSPEND_AT_ENTRY if frame is None else _SUSPEND
    return f"""\
struct ferry_launch {{
    ulong first, limit, block, most, enough;
    ulong sp, fp, stack_at, stack_end, hp, objects, types, forced, polls, marks;
    ulong arguments[{max(arguments, 1)}];
}};
struct ferry_slot {{
    ulong {slot};
{words}\
}};
struct ferry_suspended {{
    uint count, stop, skipped, lost, interrupt, unused[3];
    struct ferry_slot slots[1];
}};

{suspend}\
"""


_REST = """\
static void put_back(
    __private const struct ferry_control *control, ulong item, ulong end,
    __global struct ferry_suspended *suspended, const struct ferry_launch *launch)
{
    __global struct ferry_slot *const slot = claim(suspended, launch, control->status);
    if (!slot)
        return;
    slot->item = item;
    slot->frame = end;
    slot->size = 0;
}

"""


@dataclasses.dataclass(frozen=True)
class ItemEntry:
    """The part of a kernel that runs the items of one work-item."""

    arguments: int
    """Words that all share."""
    frame: int | None
    """Words of private frames; None where all items leave at their entry."""
    has_root: bool
    """True if it runs the loop of the launch."""
    text: str
    """Statements: `item` is the first one."""

    @property
    def stop(self) -> str:
        """True if no further item is to begin. A work-item of one item may see what was true when
        the kernel began: it reads through a cache, since all work-items read this word. Where all
        leave at their entry they do not wait for that: those that find no slot have not begun."""
        if self.frame is None:
            return "false"
        return f"{'*(volatile __global uint *)&' if self.has_root else ''}suspended->stop"


def one_item(function: str, parameters: int, types: Sequence[Type], frame: int | None) -> ItemEntry:
    """The call of the C function of the items; `parameters`: of their function after the item;
    `types`: of the words that the C function takes after it, which may be more; `frame`: of
    `ItemEntry`."""
    arithmetic = Arithmetic(opencl())
    given = [arithmetic.from_slot(t, f"launch.arguments[{n}]") for n, t in enumerate(types)]
    passed = ", ".join(["control", "memory", "frame", "item", *given])
    header = parameters + 1
    if frame is None:
        text = f"""\
    const uint left = {function}({passed});
    if (unlikely(left))
        suspend(left, place, item, suspended, skipped, &launch);
"""
        return ItemEntry(len(types), None, False, text)
    text = f"""\
    if (unlikely({function}({passed}))) {{
        frame[{header}] = frame[{header + 1}] = 0; /* the host knows the frame's header */
        suspend(control, frame, item, suspended, &launch);
    }}
"""
    return ItemEntry(len(types), frame, False, text)


def block_of_items(words: Sequence[int], call: int, frame: int) -> ItemEntry:
    """The loop of the launch; `words`: of its frame that the loop reads, besides its operands;
    `call`: pc of the call of items."""
    given = "".join(
        f"        frame[{word}] = launch.arguments[{n}];\n" for n, word in enumerate(words)
    )
    text = f"""\
{CONSTANTS_READ}\
    const ulong end = launch.limit - item < launch.block ? launch.limit : item + launch.block;
    ulong next = item;
    while (next != end) {{
{given}\
        frame[launch.sp - 3] = end;
        frame[launch.sp - 2] = next;
        frame[launch.sp - 1] = 0;
        own.fp = launch.fp;
        run(control, memory);
        next = frame[launch.sp - 2];
        const bool is_inside = own.fp != launch.fp;
        if (is_inside)
            suspend(control, frame, next - 1, suspended, &launch);
        else if (own.pc == {call}ul)
            --next;
        if (!is_inside || *(volatile __global uint *)&suspended->stop) {{
            if (next != end)
                put_back(control, next, end, suspended, &launch);
            return;
        }}
    }}
"""
    return ItemEntry(len(words), frame, True, text)


def opening(
    arguments: int,
    frame: int | None,
    more: str = "",
    *,
    apart: bool,
    objects: bool,
    group: Sequence[int] = (),
    place: str = "get_global_id(0)",
    name: str = ENTRY,
    runs_dry: bool = True,
) -> str:
    """The structures, then `more`, and the kernel up to where it has its `place` and objects.
    `arguments`: words that items share; `frame`: of frames; `group`: work-items that each group has
    along each axis, none for any number; `place`: the number of the item in the slice; `name`: of
    the kernel; `runs_dry`: it has a dry run. PoCL 3.0 takes the return of that for a condition of
    barriers, and may find that all the rest is never reached."""
    bound = tried = ""
    if objects and apart:
        bound = f"{opencl_object.BOUND}    memory.marks = launch.marks != 0;\n"
    elif objects:
        bound = """\
    memory.objects = launch.objects;
    memory.types = (__global const ulong *)launch.types;
"""
        tried = """\
        ++*(__global ulong *)launch.objects;
        suspended->lost = 1;
"""
    others = "".join(f" | get_global_id({axis})" for axis in range(1, len(group)))
    dry = f"""\
    if (launch.first == FERRY_DRY) {{
        if (get_global_id(0){others})
            return;
        suspended->count += 1u + *memory.interrupt;
{tried}\
        return;
    }}
"""
    # Behind a barrier a member sees what others have stored.
    alone = "" if group else "restrict "
    sizes = ", ".join(map(str, [*group, 1, 1][:3]))
    attribute = f" __attribute__((reqd_work_group_size({sizes})))" if group else ""
    return f"""\
{_structures(arguments, frame)}{more}__kernel{attribute} void {name}(
    __global uchar *{alone}statics_buffer, ulong statics_at,
    __global uchar *{alone}heap_buffer, ulong heap_at,
    __global struct ferry_suspended *suspended, __global uchar *restrict skipped,
    const struct ferry_launch launch{opencl_object.PARAMETERS if apart and objects else ""})
{{
    struct ferry_memory memory;
    memory.interrupt = &suspended->interrupt;
    const ulong place = {place};
{dry if runs_dry else ""}\
{bound}\
"""


def _first_item(stop: str) -> str:
    return f"""\
    const ulong item = launch.first + place * launch.block;
    if ((long)item >= (long)launch.limit)
        return;
    if ({stop}) {{
        skipped[place] = 1;
        suspended->skipped = 1;
        return;
    }}
"""


BEGIN = _first_item("*(volatile __global uint *)&suspended->stop")
"""Statements that set the first item of a work-item, unless none is to begin."""


def _entry(entry: ItemEntry, apart: bool, objects: bool) -> str:
    rest = _REST if entry.has_root else ""
    head = opening(entry.arguments, entry.frame, rest, apart=apart, objects=objects)
    return f"""\
{head}{_first_item(entry.stop)}\
    __private ulong frame[{entry.frame or 1}];
    memory.statics = (__global ulong *)(statics_buffer + statics_at);
    memory.stack = frame;
    memory.stack_at = launch.stack_at;
    memory.stack_end = launch.stack_end;
    memory.heap = heap_buffer + heap_at;
    __private struct ferry_control own;
    __private struct ferry_control *const control = &own;
    own.trap = own.exit_id = 0;
    own.hp = own.heap_capacity = launch.hp;
    own.object_top = own.object_end = own.prepared = own.prepared_bytes = 0;
    own.scratch[{FORCED_WORD}] = launch.forced;
    own.scratch[{SLICE_WORD}] = launch.polls;
    own.scratch[{LOWEST_WORD}] = 0;
{entry.text}\
}}
"""


def items_dialect(entry: ItemEntry, *, aligned: bool, apart: bool, objects: bool) -> Dialect:
    """The dialect for the items of a launch. The flags are as for `ferryvm.ir.c.opencl.opencl`. A
    work-item that has no slot, after `most`, sets `lost`: its frames are gone.
    """
    base = opencl(aligned=aligned, apart=apart, objects=objects)
    fields = (f"{opencl_object.FIELDS}{_MARKS}" if apart else _OBJECTS) if objects else ""
    looks = {"interrupted": "#define interrupted(control) (*memory.interrupt != 0)\n"}
    if apart:
        looks = {
            "is_spent": _SPENT,
            "interrupted": "#define interrupted(control) is_spent(control)\n",
        }
    helpers = {
        **{name: text for name, text in base.helpers.items() if name != "is_spent"},
        **looks,
        "entered": "#define entered(control) false\n",
        "frame_address": "#define frame_address(frame) "
        "(memory.stack_at + sizeof(ulong) * (ulong)((frame) - memory.stack))\n",
    }
    return dataclasses.replace(
        base,
        name=f"{base.name} items",
        prelude=f"{PRELUDE}{_MEMORY}{fields}}};\n#define FERRY_DRY {DRY:#x}ul\n",
        helpers=helpers,
        segments={**base.segments, "objects": "memory.objects", "types": "memory.types"},
        parameters="__private struct ferry_control *const control, const struct ferry_memory memory",
        frame_space="__private ",
        has_root=entry.has_root,
        entry=_entry(entry, apart, objects),
    )
