# SPDX-License-Identifier: Apache-2.0
"""Declarations of the built-in functions that kernels call, in place of PoCL's header of all.

PoCL includes a header before each text, `opencl-c.h` of clang, in which the built-in functions are
declared for all types and vectors: 17,000 lines, which it reads once to preprocess the text and
once to compile it. With the guard of this header defined it reads none of them, and the types and
macros are still there, for they are in other headers. A small kernel is then built in 43 ms instead
of 125, and found in PoCL's cache in 8 ms instead of 22.

Invariant: a function that is called and not declared here is an error of the build, since OpenCL C
has no implicit declarations; so no kernel can differ from one that was built with the header.
"""

from __future__ import annotations

from ferryvm_backends.opencl.device import POCL, Device

OPTION = "-D_OPENCL_H_"
"""The option of a build without the header: its guard (PoCL 3.0, include/_kernel.h)."""

_VERSION = "PoCL 3.0"
"""The version whose headers are known, in CL_PLATFORM_VERSION."""

_PURE = """\
uint clz(uint)
ulong clz(ulong)
uint popcount(uint)
ulong popcount(ulong)
size_t get_global_id(uint)
size_t get_group_id(uint)
size_t get_local_id(uint)
"""
_ROUNDED = ("ceil", "floor", "rint", "sqrt", "trunc")
_UPDATES = ("add", "and", "max", "min", "or", "xchg")


def is_replaced(device: Device) -> bool:
    """True if the header is left out for a device: one of the PoCL whose headers are known."""
    return device.is_cpu and device.platform == POCL and _VERSION in device.platform_version


def _floats(t: str) -> list[str]:
    return [*(f"{t} {name}({t})" for name in _ROUNDED), f"{t} fma({t}, {t}, {t})"]


def _declarations() -> str:
    def declared(prototype: str, attributes: str) -> str:
        return f"{prototype} __attribute__(({attributes}));"

    pure = [*_PURE.splitlines(), *_floats("float")]
    updates = []
    for t in ("int", "uint"):
        for space in ("__global", "__local"):
            pointer = f"volatile {space} {t} *"
            updates += [f"{t} atomic_{name}({pointer}, {t})" for name in _UPDATES]
            updates += [f"{t} atomic_inc({pointer})", f"{t} atomic_cmpxchg({pointer}, {t}, {t})"]
    long = []
    for space in ("__global", "__local"):
        pointer = f"volatile {space} ulong *"
        long += [f"ulong atom_{name}({pointer}, ulong)" for name in ("add", "xchg")]
        long.append(f"ulong atom_cmpxchg({pointer}, ulong, ulong)")
    return "\n".join(
        [
            *(declared(each, "overloadable, const") for each in pure),
            "#ifdef cl_khr_fp64",
            "#pragma OPENCL EXTENSION cl_khr_fp64 : enable",
            *(declared(each, "overloadable, const") for each in _floats("double")),
            "#endif",
            *(declared(each, "overloadable") for each in updates),
            declared("void barrier(cl_mem_fence_flags)", "overloadable, convergent"),
            "#ifdef cl_khr_int64_base_atomics",
            "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable",
            *(declared(each, "overloadable") for each in long),
            "#endif",
            "#line 1",
            "",
        ]
    )


DECLARATIONS = _declarations()
"""The declarations, to stand before a text; its lines have their numbers."""
