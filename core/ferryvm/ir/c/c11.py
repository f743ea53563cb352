# SPDX-License-Identifier: Apache-2.0
"""C11 for gcc and clang.

`memcpy` moves bits between types and memory; compilers turn it into single instructions, so no
access depends on type-based aliasing. The clauses below are those of the standard (ISO/IEC
9899:2011): unsigned arithmetic wraps (6.2.5); a shift by less than the width is defined (6.5.7),
and that of a negative number to the right is arithmetic in both compilers; a conversion of a float
is defined if the result fits (6.3.1.4), which the IR has checked.
"""

from __future__ import annotations

from collections.abc import Iterator

from ferryvm.ir.c.contraction import WITHOUT_VECTORS
from ferryvm.ir.c.dialect import Dialect, helper_text
from ferryvm.ir.graph import BOOLEAN, ValueType
from ferryvm.isa.emitter import Atomic
from ferryvm.isa.type import CANONICAL_NAN, F32, F64, I32, I64, Type

_TYPES: dict[ValueType, str] = {
    I32: "uint32_t",
    I64: "uint64_t",
    F32: "float",
    F64: "double",
    BOOLEAN: "bool",
}

_PRELUDE = """\
#include <stdbool.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the machine's words are little-endian"
#endif
#if __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16 /* which concerns half precision */
#error "this compiler computes with more digits than a type has; floats would differ"
#endif
#ifdef __FAST_MATH__
#error "this compiler is told not to keep IEEE 754 results (-ffast-math)"
#endif
"""

_FENCE = """\
#ifdef __has_builtin
#if __has_builtin(__arithmetic_fence)
#define fenced(a) __arithmetic_fence(a)
#endif
#endif
#ifndef fenced
#define fenced(a) (a)
#endif
"""

_UNROLLED = """\
#if defined(__GNUC__) && !defined(__clang__)
#define UNROLLED _Pragma("GCC unroll 8")
#else
#define UNROLLED
#endif
"""

_WIDTHS = {
    F64: [("if defined(__AVX512F__)", 512), ("elif defined(__AVX__)", 256), ("else", 128)],
    F32: [("if defined(__AVX__)", 256), ("else", 128)],
}
"""The bits of vectors that processors have in registers."""

_HOST_STACK = """\
static inline uint64_t host_stack(void)
{
    uint64_t address;
#if defined(__x86_64__)
    __asm__("mov %%rsp, %0" : "=r"(address));
#elif defined(__aarch64__)
    __asm__("mov %0, sp" : "=r"(address));
#else
    address = (uint64_t)(uintptr_t)__builtin_frame_address(0);
#endif
    return address;
}
"""

_INTERRUPTED = """\
static inline bool interrupted(struct ferry_control *control)
{
    return __atomic_load_n(&control->interrupt, __ATOMIC_RELAXED) != 0;
}
"""

# An address of no bytes need not be valid, but the standard wants one even then (7.24.1).
_MOVE = """\
static inline void object_move(uint64_t to, uint64_t from, uint64_t size)
{
    if (size != 0)
        __builtin_memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
}
"""

_CLEAR = """\
static inline void object_clear(uint64_t address, uint64_t size)
{
    __builtin_memset((void *)(uintptr_t)address, 0, size);
}
"""

_NANOSECONDS = """\
#include <time.h>
static inline uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
"""


_COMPARISONS = {Atomic.MIN_S: "<", Atomic.MIN_U: "<", Atomic.MAX_S: ">", Atomic.MAX_U: ">"}


def _moved(to: Type, t: Type, name: str) -> str:
    a, b = _TYPES[t], _TYPES[to]
    move = "__builtin_memcpy(&result, &a, sizeof result);"
    return helper_text(b, name, f"{a} a", f"{b} result;", move, "return result;")


def _on_objects(bytes_: int, c: str) -> dict[str, str]:
    """The helpers for words and elements of a size at an address; `c`: the type of these."""
    load, store, fill = (f"object_{name}_{bytes_}" for name in ("load", "store", "fill"))
    return {
        load: helper_text(
            "uint64_t",
            load,
            "uint64_t address",
            f"{c} value;",
            "__builtin_memcpy(&value, (const void *)(uintptr_t)address, sizeof value);",
            "return value;",
        ),
        store: helper_text(
            "void",
            store,
            "uint64_t address, uint64_t word",
            f"const {c} value = ({c})word;",
            "__builtin_memcpy((void *)(uintptr_t)address, &value, sizeof value);",
        ),
        fill: helper_text(
            "void",
            fill,
            "uint64_t address, uint64_t count, uint64_t word",
            "for (uint64_t i = 0; i < count; ++i)",
            f"    object_store_{bytes_}(address + {bytes_} * i, word);",
        ),
    }


def _canonical_element(t: Type) -> str:
    """The helper that makes an element in memory canonical if it is a NaN. The load is volatile, so
    that no compiler uses the operand of the store before it instead."""
    bits = f"{CANONICAL_NAN[t]:#x}{'u' if t is F32 else 'ull'}"
    pointer = f"volatile {_TYPES[t.integer]} *"
    return helper_text(
        "void",
        f"object_canonical_{t}",
        "uint64_t address",
        f"{pointer}const element = ({pointer})(uintptr_t)address;",
        f"const {_TYPES[t]} a = {t}_of_bits(*element);",
        "if (a != a)",
        f"    *element = {bits};",
    )


def _updates(bytes_: int) -> Iterator[tuple[str, str]]:
    """The helpers for atomic updates of an element, which order no other access."""
    c = f"uint{8 * bytes_}_t"
    for kind in Atomic:
        name, signed = f"object_{kind.value}_{bytes_}", f"(int{8 * bytes_}_t)"
        if kind in _COMPARISONS:
            sign = signed if kind in (Atomic.MIN_S, Atomic.MAX_S) else ""
            body = [
                f"{c} *const at = ({c} *)(uintptr_t)address;",
                f"const {c} value = ({c})word;",
                f"{c} old = __atomic_load_n(at, __ATOMIC_RELAXED);",
                f"while ({sign}value {_COMPARISONS[kind]} {sign}old",
                "       && !__atomic_compare_exchange_n(",
                "           at, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))",
                "    ;",
                "return old;",
            ]
        else:
            function = "exchange_n" if kind is Atomic.EXCHANGE else f"fetch_{kind.value}"
            given = f"({c} *)(uintptr_t)address, ({c})word, __ATOMIC_RELAXED"
            body = [f"return __atomic_{function}({given});"]
        yield name, helper_text("uint64_t", name, "uint64_t address, uint64_t word", *body)
    name = f"object_compare_exchange_{bytes_}"
    yield (
        name,
        helper_text(
            "uint64_t",
            name,
            "uint64_t address, uint64_t expected, uint64_t word",
            f"{c} old = ({c})expected;",
            "__atomic_compare_exchange_n(",
            f"    ({c} *)(uintptr_t)address, &old, ({c})word, false,",
            "    __ATOMIC_RELAXED, __ATOMIC_RELAXED);",
            "return old;",
        ),
    )


def _lanes(t: Type) -> dict[str, str]:
    """Vectors of GNU C: their lanes, at most eight; their type; a lane of an array of them."""
    size, upper = t.bits // 8, str(t).upper()
    widths = [f"#{test}\n#define WIDE_{upper} {bits // t.bits}\n" for test, bits in _WIDTHS[t]]
    return {
        f"WIDE_{upper}": "".join(widths) + "#endif\n",
        f"lanes_{t}": f"typedef {_TYPES[t]} lanes_{t}"
        f" __attribute__((vector_size({size} * WIDE_{upper})));\n",
        f"LANE_{upper}": f"#define LANE_{upper}(vectors, lane) \\\n"
        f"    ((vectors)[(lane) / WIDE_{upper}][(lane) % WIDE_{upper}])\n",
    }


def _helpers() -> dict[str, str]:
    found = {
        "unlikely": "#define unlikely(p) __builtin_expect(p, 0)\n",
        "unreachable": "#define unreachable() __builtin_unreachable()\n",
        "fenced": _FENCE,
        "UNROLLED": _UNROLLED,
        **_lanes(F64),
        **_lanes(F32),
    }
    for t, long in ((I32, ""), (I64, "ll")):
        c = _TYPES[t]
        for name in ("clz", "ctz"):
            count = f"return a == 0 ? {t.bits} : ({c})__builtin_{name}{long}(a);"
            found[f"{name}_{t}"] = helper_text(c, f"{name}_{t}", f"{c} a", count)
        ones = f"return ({c})__builtin_popcount{long}(a);"
        found[f"popcnt_{t}"] = helper_text(c, f"popcnt_{t}", f"{c} a", ones)
        for name in ("add", "sub", "mul"):
            s = c.removeprefix("u")
            flag = f"return __builtin_{name}_overflow(({s})a, ({s})b, &result);"
            helper = f"{name}_overflows_{t}"
            found[helper] = helper_text("bool", helper, f"{c} a, {c} b", f"{s} result;", flag)
    for t, short in ((F32, "f"), (F64, "")):
        c, suffix = _TYPES[t], "u" if t is F32 else "ull"
        found[f"bits_of_{t}"] = _moved(t.integer, t, f"bits_of_{t}")
        found[f"{t}_of_bits"] = _moved(t, t.integer, f"{t}_of_bits")
        # clang knows that the square root of a negative number is a NaN, and then considers any NaN
        # as good as the canonical one.
        root = f"return fenced(__builtin_sqrt{short}(a));"
        found[f"sqrt_{t}"] = helper_text(c, f"sqrt_{t}", f"{c} a", root)
        fused = f"return __builtin_fma{short}(a, b, c);"
        found[f"fma_{t}"] = helper_text(c, f"fma_{t}", f"{c} a, {c} b, {c} c", fused)
        for name, builtin in (
            ("ceil", "ceil"),
            ("floor", "floor"),
            ("trunc", "trunc"),
            ("nearest", "rint"),  # the rounding mode is always to nearest even
        ):
            rounded = f"return __builtin_{builtin}{short}(a);"
            found[f"{name}_{t}"] = helper_text(c, f"{name}_{t}", f"{c} a", rounded)
        nan = f"{t}_of_bits({CANONICAL_NAN[t]:#x}{suffix})"
        canonical = f"return a != a ? {nan} : a;"
        found[f"canonical_{t}"] = helper_text(c, f"canonical_{t}", f"{c} a", canonical)
        found[f"unordered_{t}"] = helper_text(
            "bool", f"unordered_{t}", f"{c} a, {c} b", "return __builtin_isunordered(a, b);"
        )
        found[f"object_canonical_{t}"] = _canonical_element(t)
    for bytes_ in (1, 2, 4, 8):
        c = f"uint{8 * bytes_}_t"
        found[f"load_{bytes_}"] = helper_text(
            "uint64_t",
            f"load_{bytes_}",
            "const uint8_t *heap, uint64_t address",
            f"{c} value;",
            "__builtin_memcpy(&value, heap + address, sizeof value);",
            "return value;",
        )
        found[f"store_{bytes_}"] = helper_text(
            "void",
            f"store_{bytes_}",
            "uint8_t *heap, uint64_t address, uint64_t word",
            f"const {c} value = ({c})word;",
            "__builtin_memcpy(heap + address, &value, sizeof value);",
        )
        found |= _on_objects(bytes_, c)
        if bytes_ >= 4:
            found |= _updates(bytes_)
    found["object_move"] = _MOVE
    found["object_clear"] = _CLEAR
    found["heap_move"] = "#define heap_move(to, from, size) object_move(to, from, size)\n"
    found["interrupted"] = _INTERRUPTED
    found["entered"] = "#define entered(control) interrupted(control)\n"
    found["host_stack"] = _HOST_STACK
    found["nanoseconds"] = _NANOSECONDS
    return found


C11 = Dialect(
    name="C11",
    types=_TYPES,
    signed={I32: "int32_t", I64: "int64_t"},
    suffixes={I32: "u", I64: "ull", F32: "f", F64: ""},
    prelude=_PRELUDE,
    helpers=_helpers(),
    segments={
        **{
            name: f"control->{name}"
            for name in ("statics", "stack", "stack_end", "heap", "objects")
        },
        **{
            name: f"((const uint64_t *)control->{name})" for name in ("functions", "table", "types")
        },
    },
    parameters="struct ferry_control *restrict control",
    passed="control",
    apart="__attribute__((noinline)) ",
    internal="static ",
    cold="static __attribute__((noinline, cold)) ",
    external='__attribute__((visibility("default"))) ',
    unfused=WITHOUT_VECTORS,
)
"""For gcc and clang, on any 64-bit processor."""
