# SPDX-License-Identifier: Apache-2.0
"""OpenCL C for groups: a work-group for each item of the outer launch, a work-item for each member.

    check    members ─> would any leave? ─ yes: a mark for the group, which does not begin
    work     members ─> arrays in local memory, barriers ─> has any failed? ─ yes: a mark likewise

Two kernels with the same arguments. The host runs the second one for groups without a mark
(`ferryvm.ir.member.boundary`), and undoes it where that makes marks.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from ferryvm.ir.c.dialect import Dialect, helper_text
from ferryvm.ir.c.expression import Arithmetic
from ferryvm.ir.c.opencl import opencl
from ferryvm.ir.c.opencl_atomic import group_atomics
from ferryvm.ir.c.opencl_item import ENTRY, ItemEntry, items_dialect, opening
from ferryvm.ir.member.form import GroupForm
from ferryvm.isa.type import CANONICAL_NAN, F32, F64, Type

WORK = "ferry_groups"
"""The kernel that runs groups; the other one, which checks them, has the name of that of items."""

LOCAL = "CLK_LOCAL_MEM_FENCE"
EVERYWHERE = "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE"
"""Fences of barriers: behind which members read arrays of their group, or any."""

# LLVM 14 moves the same calls at the ends of blocks into a common successor, also barriers, and
# then stores in front of them. So a loop that a barrier ends gets two back edges, which become two
# loops, of which the inner one ends when the first member leaves it (PoCL 3.0).
BARRIER = """\
#ifdef __has_attribute
#if __has_attribute(nomerge)
#define group_barrier(fence) __attribute__((nomerge)) barrier(fence)
#endif
#endif
#ifndef group_barrier
#define group_barrier(fence) barrier(fence)
#endif
"""

_BYTES = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}


def group_dialect(
    form: GroupForm,
    check: str,
    work: str,
    types: Sequence[Type],
    *,
    aligned: bool,
    apart: bool,
    objects: bool,
) -> Dialect:
    """The dialect for a group. `check`, `work`: the C functions of a member; `types`: of the words
    that they take after the item. The flags are as for `ferryvm.ir.c.opencl.opencl`."""
    base = items_dialect(
        ItemEntry(len(types), None, False, ""), aligned=aligned, apart=apart, objects=objects
    )
    given = [f"group_{number}" for number in range(len(form.arrays))]
    arrays = "".join(f", __local uchar *const {name}" for name in given)
    passed = "".join(f", {name}" for name in given)
    return dataclasses.replace(
        base,
        name=f"{base.name} groups",
        helpers={
            **base.helpers,
            "group_barrier": BARRIER,
            **_accesses(aligned),
            **group_atomics(),
        },
        parameters=f"{base.parameters}, const ulong member{arrays}",
        passed=f"{base.passed}, member{passed}",
        entry=_Kernels(form, types, apart, objects).text(check, work),
    )


class _Kernels:
    def __init__(self, form: GroupForm, types: Sequence[Type], apart: bool, objects: bool) -> None:
        self._form, self._types = form, types
        self._apart, self._objects = apart, objects

    def text(self, check: str, work: str) -> str:
        """Both kernels."""
        none = ["0"] * len(self._form.arrays)
        arrays = [f"(__local uchar *)array_{number}" for number in range(len(none))]
        structures = self._opening(ENTRY).partition("__kernel")[0]
        return f"""\
{structures}{self._kernel(ENTRY)}\
    if ({self._call(check, none)})
        skipped[place] = suspended->skipped = 1;
}}

{self._kernel(WORK, self._zeros())}\
    if ({self._call(work, arrays)})
        skipped[place] = suspended->skipped = 1;
}}
"""

    def _opening(self, name: str) -> str:
        return opening(
            len(self._types),
            None,
            apart=self._apart,
            objects=self._objects,
            group=self._form.axes or (self._form.members,),
            place="get_group_id(0)",
            name=name,
            runs_dry=name == ENTRY,
        )

    def _kernel(self, name: str, arrays: str = "") -> str:
        """A kernel up to the call of its function."""
        _, _, head = self._opening(name).partition("__kernel")
        return f"""\
__kernel{head}\
    const ulong item = launch.first + place;
    const {self._member()};
{arrays}\
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
"""

    def _member(self) -> str:
        """The number of the member. One axis of a GPU has a number that compilers take for small; the
        vectoriser of a processor does not see that truncated numbers are consecutive."""
        axes = self._form.axes
        if not axes:
            return f"{'uint' if self._apart else 'ulong'} member = get_local_id(0)"
        indices = [
            f"{math.prod(axes[:axis])}ul * get_local_id({axis})" for axis in range(len(axes))
        ]
        return f"ulong member = {' + '.join(indices)}"

    def _zeros(self) -> str:
        """The arrays of a group, made zero."""
        lines = []
        for number, array in enumerate(self._form.arrays):
            words = max(-(-array.bytes // 8), 1)
            lines.append(f"    __local ulong array_{number}[{words}];\n")
        for number, array in enumerate(self._form.arrays):
            if not array.is_stored_first:
                words = max(-(-array.bytes // 8), 1)
                step = self._form.members
                lines.append(f"    for (uint i = (uint)member; i < {words}u; i += {step}u)\n")
                lines.append(f"        array_{number}[i] = 0;\n")
        if any(not array.is_stored_first for array in self._form.arrays):
            lines.append(f"    barrier({LOCAL});\n")
        return "".join(lines)

    def _call(self, function: str, arrays: Sequence[str]) -> str:
        arithmetic = Arithmetic(opencl())
        words = [
            arithmetic.from_slot(t, f"launch.arguments[{n}]") for n, t in enumerate(self._types)
        ]
        passed = ["control", "memory", "member", *arrays, "frame", "item", *words]
        return f"{function}({', '.join(passed)})"


def _accesses(is_narrow: bool) -> dict[str, str]:
    """The helpers on arrays of groups; `is_narrow`: by offsets of 32 bits, which a GPU computes
    sooner. A vectoriser does not see that elements are neighbours if these may wrap."""
    found = {}
    place = "array + (uint)offset" if is_narrow else "array + offset"
    for bytes_, c in _BYTES.items():
        pointer = f"__local {c} *"
        load, store = f"group_load_{bytes_}", f"group_store_{bytes_}"
        found[load] = helper_text(
            "ulong",
            load,
            "const __local uchar *array, ulong offset",
            f"return *(const {pointer})({place});",
        )
        found[store] = helper_text(
            "void",
            store,
            "__local uchar *array, ulong offset, ulong word",
            f"*({pointer})({place}) = ({c})word;",
        )
    for t, c, bits in ((F32, "float", "uint"), (F64, "double", "ulong")):
        name = f"group_canonical_{t}"
        nan = f"{CANONICAL_NAN[t]:#x}{'u' if t is F32 else 'ul'}"
        found[name] = helper_text(
            "void",
            name,
            "__local uchar *array, ulong offset",
            f"volatile __local {bits} *const element = (volatile __local {bits} *)({place});",
            f"const {c} a = as_{c}(*element);",
            "if (a != a)",
            f"    *element = {nan};",
        )
    return found
