# SPDX-License-Identifier: Apache-2.0
"""OpenCL C 1.2, for one work-item.

The machine's segments are arguments of the kernel, because pointers inside of buffers are not valid
on a device. The clauses are those of The OpenCL Specification 1.2: contraction is switched off
(6.12.2), shifts by less than the width are those of C (6.3), conversions to float round to nearest
(6.2.3.2), `sqrt` and division of f32 round correctly with the build option for it (5.6.4.2), of f64
always (7.4). Where a device has no such option, `BY_F64` is defined: then those of f32 are those of
f64, rounded.

Bytes of the heap are read and written through packed structures (6.11.1), which may be at any
address; `may_alias`, in compilers that support it, declares that they overlap objects of other
types.
"""

from __future__ import annotations

import dataclasses
import functools

from ferryvm.ir.c import opencl_object
from ferryvm.ir.c.context import SLICE_WORD
from ferryvm.ir.c.dialect import Dialect, helper_text
from ferryvm.ir.c.opencl_launch import launch_word
from ferryvm.ir.c.opencl_object import DIRTY_SHIFT
from ferryvm.ir.graph import BOOLEAN, ValueType
from ferryvm.isa.type import CANONICAL_NAN, F32, F64, I32, I64, Type

_TYPES: dict[ValueType, str] = {
    I32: "uint",
    I64: "ulong",
    F32: "float",
    F64: "double",
    BOOLEAN: "bool",
}
_BYTES = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}

DRY = 0xFFFF_FFFF_FFFF_FFFF
"""A pc with which a kernel only adds 1 to the first word of `scratch`, for a trial run."""

SLICE = f"control->scratch[{SLICE_WORD}]"
"""The rest of a kernel's time slice: a loop's poll costs `LOOK`, that at a function's entry 1."""

BY_F64 = "FERRY_F32_BY_F64"
"""The macro with which division and square root of f32 are those of f64, rounded to f32."""

PACKET_WORDS = 64
"""Words of statics and frames that can be passed to a kernel with its arguments."""

LOOK = 256
"""The cost of a loop's poll, which comes after some thousand iterations, in calls of a function."""

_LOOK_UP = """\
#if FERRY_TABLES == 1
static inline {type} {name}_at(ulong n)
{{
    {type} found;
    const ulong where = (ulong)({name} + n);
    asm("{{ .reg .u64 at; cvta.const.u64 at, %1; ld.b{bits} %0, [at]; }}" : "={letter}"(found) : "l"(where));
    return found;
}}
#else
#define {name}_at(n) {name}[n]
#endif
"""
"""Tables of constants. NVIDIA's `__constant` memory serves one address of a warp at a time; 1: by
an address in the generic space (PTX ISA, 9.7.9.20, cvta), which is cached as global memory is.
`python -m benchmarks math --device gpu --tables 0,1` compares them."""

PRELUDE = """\
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF

#ifndef __ENDIAN_LITTLE__
#error "the machine's words are little-endian"
#endif
#ifndef FERRY_TABLES
#ifdef __NV_CL_C_VERSION
#define FERRY_TABLES 1
#else
#define FERRY_TABLES 0
#endif
#endif
#ifdef __FAST_RELAXED_MATH__
#error "floats are to be computed as IEEE 754 says (-cl-fast-relaxed-math)"
#endif

"""
"""The start of every text."""

_MEMORY = """\
struct ferry_memory {
    __global ulong *statics;
    __global ulong *stack;
    ulong stack_end;
    __global uchar *heap;
"""

_PACKET = f"""\
struct ferry_packet {{
    struct ferry_control control;
    ulong statics_at, statics_count, stack_at, stack_count;
    ulong words[{PACKET_WORDS}];
}};

"""

CONSTANTS_READ = """\
    __constant uint constants[] = { 0 };
    (void)*(volatile __constant uint *)constants;
"""
"""A read of the constants of a kernel that PoCL maps from a file. A value that is selected rarely,
such as the canonical NaN, is loaded under a mask. A load without lanes maps no page, and takes some
Intel processors 25 ns each time until another access has mapped it
(docs/decisions/2026-11-27-rare-constants.md)."""

_TAKEN = "    *control = packet.control;\n"
_UNPACKED = """\
    for (ulong i = 0; i < packet.statics_count; ++i)
        memory.statics[packet.statics_at + i] = packet.words[i];
    for (ulong i = 0; i < packet.stack_count; ++i)
        memory.stack[packet.stack_at + i] = packet.words[packet.statics_count + i];
"""


def _entry(apart: bool, objects: bool) -> str:
    more = ",\n    const struct ferry_packet packet" if apart else ""
    more += opencl_object.PARAMETERS if apart and objects else ""
    tried = opencl_object.TRIED if objects and not apart else ""
    bound = opencl_object.BOUND if apart and objects else ""
    return f"""\
{_PACKET if apart else ""}__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ferry_region(
    __global uchar *restrict control_buffer, ulong control_at,
    __global uchar *restrict statics_buffer, ulong statics_at,
    __global uchar *restrict stack_buffer, ulong stack_at, ulong stack_bytes,
    __global uchar *restrict heap_buffer, ulong heap_at{more})
{{
    __global struct ferry_control *const control =
        (__global struct ferry_control *)(control_buffer + control_at);
    struct ferry_memory memory;
{_TAKEN if apart else ""}\
    if ({"packet.control.pc" if apart else "control->pc"} == FERRY_DRY) {{
        ++control->scratch[0];
{tried}\
        return;
    }}
    memory.statics = (__global ulong *)(statics_buffer + statics_at);
    memory.stack = (__global ulong *)(stack_buffer + stack_at);
    memory.stack_end = (ulong)memory.stack + stack_bytes;
    memory.heap = heap_buffer + heap_at;
{bound}\
{_UNPACKED if apart else CONSTANTS_READ}\
    run(control, memory);
}}
"""


_INTERRUPTED = """\
static inline bool interrupted(__global struct ferry_control *control)
{
    return *(volatile __global uint *)&control->interrupt != 0;
}
"""

_SLICED = f"""\
static inline bool is_spent(__global struct ferry_control *control, ulong cost)
{{
    const bool is_over = {SLICE} <= cost; /* and from then on each time */
    {SLICE} = is_over ? 0ul : {SLICE} - cost;
    return is_over;
}}
"""

# LLVM 14 packs pairs of loop-carried floats into vectors, which lengthens the recurrence. Not in
# loops that are to be unswitched: assembly may not be copied.
_CARRIED = """\
static inline double carried(double a)
{
#if defined(__clang__) && defined(__x86_64__)
    __asm__("" : "+x"(a));
#endif
    return a;
}
"""

# Intel's OpenCL for processors (2026.22) computes sums of floats in vectors, in another order, also
# without options that permit it. Its vectoriser heeds the hint; others may not reorder sums anyway.
_IN_ORDER = """\
#if defined(__clang__) && !defined(__NV_CL_C_VERSION)
#define in_order() _Pragma("clang loop vectorize(disable)")
#else
#define in_order()
#endif
"""


def _hint(name: str, parameter: str, builtin: str, given: str, otherwise: str) -> str:
    """A macro that expands to a builtin call if the compiler has it, else to `otherwise`."""
    return f"""\
#ifdef __has_builtin
#if __has_builtin({builtin})
#define {name}({parameter}) {builtin}({given})
#endif
#endif
#ifndef {name}
#define {name}({parameter}) {otherwise}
#endif
"""


def _counts() -> dict[str, str]:
    found = {}
    for t, one in ((I32, "1u"), (I64, "1ul")):
        c = _TYPES[t]
        found[f"popcnt_{t}"] = helper_text(c, f"popcnt_{t}", f"{c} a", "return popcount(a);")
        found[f"clz_{t}"] = helper_text(c, f"clz_{t}", f"{c} a", "return clz(a);")
        low = f"return popcount(~a & (a - {one}));"  # the bits below the lowest one
        found[f"ctz_{t}"] = helper_text(c, f"ctz_{t}", f"{c} a", low)
        found |= _overflows(t, c, c.removeprefix("u"))
    return found


def _overflows(t: Type, c: str, s: str) -> dict[str, str]:
    """The helpers that test if a signed result does not fit; `s`: the signed type."""
    tests = {
        "add": f"return ({s})((a ^ (a + b)) & (b ^ (a + b))) < 0;",
        "sub": f"return ({s})((a ^ b) & (a ^ (a - b))) < 0;",
        "mul": "return (long)(int)a * (long)(int)b != (long)(int)(a * b);",
    }
    names = {name: f"{name}_overflows_{t}" for name in tests}
    found = {
        names[name]: helper_text("bool", names[name], f"{c} a, {c} b", test)
        for name, test in tests.items()
    }
    if t is I64:  # as `ferryvm.isa.overflow`; PoCL has no builtin functions in code with frames
        found[names["mul"]] = helper_text(
            "bool",
            names["mul"],
            f"{c} a, {c} b",
            "const double distance = (double)(long)a * (double)(long)b - (double)(long)(a * b);",
            "return distance > 4294967296.0 || distance < -4294967296.0;",
        )
    return found


def _unless_by_f64(rounded: str, *body: str) -> tuple[str, ...]:
    """The body of a function of f32, or an expression of f64, rounded, where `BY_F64` is
    defined."""
    return (f"#ifdef {BY_F64}", f"return (float){rounded};", "#else", *body, "#endif")


def _floats(t: Type) -> dict[str, str]:
    c, bits = _TYPES[t], _TYPES[t.integer]
    suffix = "u" if t is F32 else "ul"
    found = {
        f"bits_of_{t}": helper_text(bits, f"bits_of_{t}", f"{c} a", f"return as_{bits}(a);"),
        f"{t}_of_bits": helper_text(c, f"{t}_of_bits", f"{bits} a", f"return as_{c}(a);"),
    }
    rounded = {
        "sqrt": "sqrt",
        "ceil": "ceil",
        "floor": "floor",
        "trunc": "trunc",
        "nearest": "rint",
    }
    short = "f" if t is F32 else ""
    for name, builtin in rounded.items():
        body: tuple[str, ...] = (
            # Use the processor's instruction if it has one.
            "#if defined(__clang__) && defined(__SSE4_1__)",
            f"return __builtin_{builtin}{short}(a);",
            "#else",
            # PoCL's own converts a NaN to an integer, which is undefined at compile time.
            f"return a != a ? a : {builtin}(a);",
            "#endif",
        )
        if t is F32 and name == "sqrt":
            body = _unless_by_f64("sqrt((double)a)", *body)
        found[f"{name}_{t}"] = helper_text(c, f"{name}_{t}", f"{c} a", *body)
    if t is F32:
        quotient = _unless_by_f64("((double)a / (double)b)", "return a / b;")
        found["divide_f32"] = helper_text(c, "divide_f32", f"{c} a, {c} b", *quotient)
    found[f"fma_{t}"] = helper_text(c, f"fma_{t}", f"{c} a, {c} b, {c} c", "return fma(a, b, c);")
    nan = f"as_{c}({CANONICAL_NAN[t]:#x}{suffix})"
    found[f"canonical_{t}"] = helper_text(
        c, f"canonical_{t}", f"{c} a", f"return a != a ? {nan} : a;"
    )
    found[f"unordered_{t}"] = helper_text(
        "bool", f"unordered_{t}", f"{c} a, {c} b", "return a != a | b != b;"
    )
    return found


def _accesses(aligned: bool, apart: bool) -> dict[str, str]:
    packed = """\
#ifdef __has_attribute
#if __has_attribute(may_alias)
#define FERRY_ALIAS , may_alias
#endif
#endif
#ifndef FERRY_ALIAS
#define FERRY_ALIAS
#endif
"""
    for size, c in _BYTES.items():
        packed += (
            f"struct ferry_bytes_{size} {{ {c} value; }} __attribute__((packed FERRY_ALIAS));\n"
        )
    found = {"ferry_bytes": packed}
    # Helpers use the name of the structures' text, so it is printed.
    for size, c in _BYTES.items():
        place = f"((__global struct ferry_bytes_{size} *)(heap + address))->value"
        fast = f"*(__global {c} *)(heap + address)"
        both = aligned and size > 1
        test = f"if ((address & {size - 1}) == 0)"
        load = [f"{test}", f"    return {fast};"] if both else []
        store = [f"{test} {{", f"    {fast} = ({c})word;", "    return;", "}"] if both else []
        note = f"heap[~(address >> {DIRTY_SHIFT})] = 1;"
        last = f"heap[~((address + {size - 1}) >> {DIRTY_SHIFT})] = 1;"
        notes = ([note, last] if size > 1 else [note]) if apart else []
        found[f"load_{size}"] = "/* ferry_bytes */\n" + helper_text(
            "ulong",
            f"load_{size}",
            "const __global uchar *heap, ulong address",
            *load,
            f"return {place.replace('__global', 'const __global')};",
        )
        found[f"store_{size}"] = "/* ferry_bytes */\n" + helper_text(
            "void",
            f"store_{size}",
            "__global uchar *heap, ulong address, ulong word",
            *notes,
            *store,
            f"{place} = ({c})word;",
        )
    return found


def _looks(apart: bool) -> dict[str, str]:
    if not apart:
        entered = "#define entered(control) interrupted(control)\n"
        return {"interrupted": _INTERRUPTED, "entered": entered}
    return {
        "is_spent": _SLICED,
        "interrupted": f"#define interrupted(control) is_spent(control, {LOOK}ul)\n",
        "entered": "#define entered(control) is_spent(control, 1ul)\n",
    }


@functools.cache
def opencl(aligned: bool = False, apart: bool = False, objects: bool = False) -> Dialect:
    """The dialect for a device. `aligned`: unaligned accesses are split into bytes. `apart`: the
    device's memory is not the host's. Then stores mark the chunks that they change, in one byte for
    each chunk before the heap, downwards; a kernel leaves after a number of polls, since it cannot
    see the interrupt flag; and an argument, the packet, has the control block and a few changed
    words, since a copy takes microseconds. `objects`: for code that uses references, see
    `ferryvm.ir.c.opencl_object`."""
    helpers = {
        "unlikely": _hint("unlikely", "p", "__builtin_expect", "p, 0", "(p)"),
        "unreachable": _hint("unreachable", "", "__builtin_unreachable", "", "do {} while (0)"),
        **_counts(),
        **_floats(F32),
        **_floats(F64),
        **_accesses(aligned, apart),
        **(opencl_object.objects(_BYTES, apart) if objects else {}),
        **_looks(apart),
        **({} if aligned else {"carried": _CARRIED, "in_order": _IN_ORDER}),
    }
    fields = opencl_object.FIELDS if apart and objects else ""
    more = {"aligned": aligned, "apart": apart, "objects": objects}
    return Dialect(
        name=" ".join(["OpenCL C 1.2", *(name for name, holds in more.items() if holds)]),
        types=_TYPES,
        signed={I32: "int", I64: "long"},
        suffixes={I32: "u", I64: "ul", F32: "f", F64: ""},
        prelude=f"{PRELUDE}{_MEMORY}{fields}}};\n#define FERRY_DRY {DRY:#x}ul\n",
        helpers=helpers,
        segments={
            "statics": "memory.statics",
            "stack": "memory.stack",
            "stack_end": "memory.stack_end",
            "heap": "memory.heap",
            "functions": "ferry_functions",
            "table": "ferry_table",
            "objects": "memory.objects" if apart else "control->objects",
            "types": "memory.types" if apart else "((__global const ulong *)control->types)",
        },
        parameters="__global struct ferry_control *const control, const struct ferry_memory memory",
        passed="control, memory",
        entry=_entry(apart, objects),
        constant="__constant ",
        look_up=_LOOK_UP,
        byte="uchar",
        space="__global ",
        # LLVM 14 would compute pairs of values in vectors, also in loops, to store them at an exit.
        exit_stores="volatile ",
        internal="static ",
        cold="static ",
        launch_word=launch_word if apart else None,
    )


@functools.cache
def plain_opencl() -> Dialect:
    """The dialect for functions with plain arguments, which know no machine."""
    return dataclasses.replace(opencl(objects=True), name="OpenCL C 1.2 plain", prelude=PRELUDE)
