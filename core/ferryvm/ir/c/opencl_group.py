# SPDX-License-Identifier: Apache-2.0
"""OpenCL C for groups: a work-group for each item of the outer launch, a work-item for each member.

    get_group_id ─> item ─> is any to begin? ─┬─ no: one work-item marks it as skipped
                                              └─ members, arrays in local memory ─┬─ done
                                                                 any has left: a slot for the group

A member leaves with nothing but a status: the group begins again in order (`ferryvm.ir.member`). So slots
are those of items that leave at their entry (`ferryvm.ir.c.opencl_item`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ferryvm.ir.c.dialect import Dialect, helper_text
from ferryvm.ir.c.expression import Arithmetic
from ferryvm.ir.c.group import STOPPED
from ferryvm.ir.c.opencl import opencl
from ferryvm.ir.c.opencl_item import ItemEntry, items_dialect, opening
from ferryvm.ir.member.form import GroupForm
from ferryvm.isa.type import CANONICAL_NAN, F32, F64, Type

LOCAL = "CLK_LOCAL_MEM_FENCE"
EVERYWHERE = "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE"
"""Fences of barriers: behind which members read arrays of their group, or any."""

SKIPPED = 0xFFFF
"""The status of members of a group that has not begun."""

_VOTES = "__local volatile uint *const votes"
_BYTES = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}


def group_dialect(
    form: GroupForm,
    function: str,
    types: Sequence[Type],
    *,
    aligned: bool,
    apart: bool,
    objects: bool,
) -> Dialect:
    """The dialect for a group. `function`: the C function of a member; `types`: of the words that it
    takes after the item. The flags are as for
    `ferryvm.ir.c.opencl.opencl`."""
    base = items_dialect(
        ItemEntry(len(types), None, False, ""), aligned=aligned, apart=apart, objects=objects
    )
    given = [f"group_{number}" for number in range(len(form.arrays))]
    arrays = "".join(f", __local uchar *const {name}" for name in given)
    passed = "".join(f", {name}" for name in given)
    return dataclasses.replace(
        base,
        name=f"{base.name} groups",
        helpers={**base.helpers, **_accesses()},
        parameters=f"{base.parameters}, const ulong member, {_VOTES}{arrays}",
        passed=f"{base.passed}, member, votes{passed}",
        entry=_entry(form, function, types, apart, objects),
    )


def _entry(
    form: GroupForm, function: str, types: Sequence[Type], apart: bool, objects: bool
) -> str:
    head = opening(
        len(types), None, apart=apart, objects=objects, group=form.members, place="get_group_id(0)"
    )
    arithmetic = Arithmetic(opencl())
    words = [arithmetic.from_slot(t, f"launch.arguments[{n}]") for n, t in enumerate(types)]
    given = [f"(__local uchar *)array_{number}" for number in range(len(form.arrays))]
    passed = ["control", "memory", "member", "votes", *given, "frame", "item", *words]
    declared = "".join(
        f"    __local ulong array_{number}[{-(-array.bytes // 8) or 1}];\n"
        for number, array in enumerate(form.arrays)
    )
    zeros = "".join(
        f"    for (uint i = member; i < {-(-array.bytes // 8)}u; i += {form.members}u)\n"
        f"        array_{number}[i] = 0;\n"
        for number, array in enumerate(form.arrays)
    )
    stop = "0" if apart else f"*(volatile __global uint *)&suspended->stop ? {SKIPPED}u : 0u"
    return f"""\
{head}\
    const ulong item = launch.first + place;
    const uint member = get_local_id(0);
    __local uint votes[4];
{declared}\
    if (member == 0) {{
        votes[0] = votes[1] = votes[2] = 0;
        votes[{STOPPED}] = {stop};
    }}
{zeros}\
    barrier({LOCAL});
    __private ulong frame[1];
    memory.statics = (__global ulong *)(statics_buffer + statics_at);
    memory.stack = frame;
    memory.stack_at = launch.stack_at;
    memory.stack_end = launch.stack_end;
    memory.heap = heap_buffer + heap_at;
    __private struct ferry_control own;
    __private struct ferry_control *const control = &own;
    own.scratch[0] = launch.forced;
    own.scratch[1] = launch.polls;
    const uint left = {function}({", ".join(passed)});
    if (unlikely(left) && atomic_xchg(&votes[2], 1) == 0) {{
        if (left == {SKIPPED}u)
            skipped[place] = suspended->skipped = 1;
        else
            suspend(left, place, item, suspended, skipped, &launch);
    }}
}}
"""


def _accesses() -> dict[str, str]:
    """The helpers on arrays of groups."""
    found = {}
    for bytes_, c in _BYTES.items():
        pointer = f"__local {c} *"
        load, store = f"group_load_{bytes_}", f"group_store_{bytes_}"
        found[load] = helper_text(
            "ulong",
            load,
            "const __local uchar *array, ulong offset",
            f"return *(const {pointer})(array + (uint)offset);",
        )
        found[store] = helper_text(
            "void",
            store,
            "__local uchar *array, ulong offset, ulong word",
            f"*({pointer})(array + (uint)offset) = ({c})word;",
        )
    for t, c, bits in ((F32, "float", "uint"), (F64, "double", "ulong")):
        name = f"group_canonical_{t}"
        nan = f"{CANONICAL_NAN[t]:#x}{'u' if t is F32 else 'ul'}"
        found[name] = helper_text(
            "void",
            name,
            "__local uchar *array, ulong offset",
            f"volatile __local {bits} *const element = "
            f"(volatile __local {bits} *)(array + (uint)offset);",
            f"const {c} a = as_{c}(*element);",
            "if (a != a)",
            f"    *element = {nan};",
        )
    return found
