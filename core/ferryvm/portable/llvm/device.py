# SPDX-License-Identifier: Apache-2.0
"""Kernels of devices as LLVM IR: the function in another address space, and a kernel that calls it.

    define ptx_kernel void @f(i64 %items, ptr addrspace(1) %x, i64 %x_length, ..., ptr addrspace(1) %status) {
      %k.item = ...                        ; the number of the work-item
      ...                                  ; leave if it is not below %items
      %k.failed = call i32 @f_item(i64 %k.item, ...)
      ...                                  ; store it into its status if it is an error
    }

The kernel of a function that is called once is for one work-item, and stores the status in any
case. Statuses are as those of the target `opencl`: see `ferryvm.portable.opencl.source`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ferryvm.portable.c.source import origin
from ferryvm.portable.interface import Interface
from ferryvm.portable.llvm.source import FunctionText
from ferryvm.portable.plain import PlainFunction

SPACE = " addrspace(1)"
"""Global memory, of PTX and of SPIR-V for OpenCL."""


@dataclasses.dataclass(frozen=True)
class GroupSupport:
    """The calls of a device for groups."""

    barrier: str
    """The call at which the members of a group wait for each other."""
    declarations: tuple[str, ...]
    """Of the functions that these calls name."""
    calls: dict[str, tuple[str, ...]]
    """The call that yields a number in each dimension: of the `group`, the `count` of groups, of the
    member, `local`."""
    word: str
    """The type of these numbers."""
    has_size_attribute: bool
    """True if the size of groups is an attribute of the kernel; else it is metadata."""

    def index(self, what: str, dimension: int) -> list[str]:
        """Instructions that make `%k.group0` and the like, an i64."""
        call, name = self.calls[what][dimension], f"%k.{what}{dimension}"
        if self.word == "i64":
            return [f"  {name} = {call}"]
        return [f"  {name}.narrow = {call}", f"  {name} = zext i32 {name}.narrow to i64"]

    def size(self, sizes: Sequence[int]) -> tuple[str, str]:
        """The notes of a kernel's head on the sizes of groups, and the lines behind it."""
        x, y, z = sizes
        if self.has_size_attribute:
            return f' "nvvm.reqntid"="{x},{y},{z}"', ""
        return " !reqd_work_group_size !0", f"!0 = !{{i32 {x}, i32 {y}, i32 {z}}}"


@dataclasses.dataclass(frozen=True)
class Device:
    """A form of kernels that LLVM knows."""

    triple: str
    processor: str
    convention: str
    """The calling convention of kernels."""
    item: str
    """Instructions that make `%k.item`, an i64."""
    declared: str
    """Declarations of functions that they call."""
    group: GroupSupport
    has_exact_division: bool
    """True if quotients and roots of f32 are rounded as IEEE 754 says."""
    has_barred_sums: bool
    """True if the compilers of some receivers compute sums of floats in another order, whatever the
    module says."""
    has_margin: bool
    """True if there may be more work-items than items, whose number is then the first argument."""


_REGISTERS = {"group": "ctaid", "count": "nctaid", "local": "tid"}
_SPECIAL = {
    what: tuple(f"@llvm.nvvm.read.ptx.sreg.{register}.{axis}()" for axis in "xyz")
    for what, register in _REGISTERS.items()
}

NVIDIA_GROUP = GroupSupport(
    "call void @llvm.nvvm.barrier0() convergent",
    (
        "declare void @llvm.nvvm.barrier0() convergent",
        *(f"declare i32 {each}" for axes in _SPECIAL.values() for each in axes),
    ),
    {what: tuple(f"call i32 {each}" for each in axes) for what, axes in _SPECIAL.items()},
    "i32",
    has_size_attribute=True,
)
"""Blocks of threads. The barrier orders accesses to all memory."""

_FUNCTIONS = {
    "group": "@_Z12get_group_idj",
    "count": "@_Z14get_num_groupsj",
    "local": "@_Z12get_local_idj",
}

OPENCL_GROUP = GroupSupport(
    "call spir_func void @_Z7barrierj(i32 3) convergent",
    (
        "declare spir_func void @_Z7barrierj(i32) convergent",
        *(f"declare spir_func i64 {each}(i32)" for each in _FUNCTIONS.values()),
    ),
    {
        what: tuple(f"call spir_func i64 {each}(i32 {axis})" for axis in range(3))
        for what, each in _FUNCTIONS.items()
    },
    "i64",
    has_size_attribute=False,
)
"""Work-groups. The barrier orders accesses to local and global memory."""

NVIDIA = Device(
    "nvptx64-nvidia-cuda",
    "sm_70",
    "ptx_kernel",
    """\
  %k.group = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %k.size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %k.local = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %k.group64 = zext i32 %k.group to i64
  %k.size64 = zext i32 %k.size to i64
  %k.local64 = zext i32 %k.local to i64
  %k.first = mul i64 %k.group64, %k.size64
  %k.item = add i64 %k.first, %k.local64
""",
    """\
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
""",
    NVIDIA_GROUP,
    has_exact_division=True,
    has_barred_sums=False,
    has_margin=True,
)
"""Graphics processors of NVIDIA from Volta on."""

OPENCL = Device(
    "spirv64v1.2-unknown-unknown",
    "",
    "spir_kernel",
    "  %k.item = call spir_func i64 @_Z13get_global_idj(i32 0)\n",
    "declare spir_func i64 @_Z13get_global_idj(i32)\n",
    OPENCL_GROUP,
    has_exact_division=False,
    has_barred_sums=True,
    has_margin=False,
)
"""Devices of OpenCL 2.1 and later, and those with the extension cl_khr_il_program."""


def device_module(function: PlainFunction, device: Device) -> str:
    """The module with the kernel of a function. Its interface has a status."""
    interface = function.interface
    text = FunctionText(function, SPACE, device.has_exact_division, device.has_barred_sums)
    inner = f"{interface.name}_{'item' if interface.is_item else 'once'}"
    parameters = text.parameters()
    body = text.function(f"define internal i32 @{inner}({', '.join(parameters)}) alwaysinline")
    parts = [
        f"; {origin(function)}\n",
        f'target triple = "{device.triple}"\n',
        body,
        _kernel(interface, device, inner, parameters),
        *text.declarations(),
        device.declared if interface.is_item else "",
    ]
    return "\n".join(part for part in parts if part)


def _kernel(interface: Interface, device: Device, inner: str, given: list[str]) -> str:
    status = f"ptr{SPACE} %{interface.status}"
    taken = [*given, status]
    passed = list(given)
    if interface.is_item:
        first = f"i64 %{interface.arguments[0].name}"
        assert given[0] == first
        passed[0] = "i64 %k.item"
        if not device.has_margin:
            del taken[0]
    head = f"define {device.convention} void @{interface.name}({', '.join(taken)}) {{"
    call = f"  %k.failed = call i32 @{inner}({', '.join(passed)})"
    if not interface.is_item:
        return f"{head}\n{call}\n  store i32 %k.failed, {status}, align 4\n  ret void\n}}\n"
    within = ""
    if device.has_margin:
        within = (
            f"  %k.over = icmp sge i64 %k.item, %{interface.arguments[0].name}\n"
            "  br i1 %k.over, label %k.end, label %k.run\nk.run:\n"
        )
    return (
        f"{head}\n{device.item}{within}{call}\n"
        "  %k.has_failed = icmp ne i32 %k.failed, 0\n"
        "  br i1 %k.has_failed, label %k.error, label %k.end\nk.error:\n"
        f"  %k.at = getelementptr i32, {status}, i64 %k.item\n"
        f"  store i32 %k.failed, ptr{SPACE} %k.at, align 4\n  br label %k.end\n"
        "k.end:\n  ret void\n}\n"
    )
