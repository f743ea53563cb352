# SPDX-License-Identifier: Apache-2.0
"""Identifiers of C and its relatives, from names of programs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ferryvm.errors import FerryError
from ferryvm.ir.c.c11 import C11
from ferryvm.ir.c.opencl import plain_opencl

_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
bool true false alignas alignof asm catch class constexpr decltype delete explicit export friend mutable
namespace new noexcept nullptr operator private protected public template this throw try typeid typename
using virtual and or not xor bitand bitor compl NULL errno main stdin stdout stderr
kernel global local constant uchar ushort uint ulong half size_t image2d_t sampler_t event_t
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
"""
_LIBRARY = """
abort abs acos acosh asin asinh atan atan2 atanh atexit atof atoi bsearch calloc cbrt ceil copysign cos cosh
div erf erfc exit exp exp2 expm1 fabs fdim floor fma fmax fmin fmod free frexp getenv hypot ilogb index j0 j1 jn
labs ldexp lgamma log log10 log1p log2 logb lrint lround malloc memchr memcmp memcpy memmove memset modf nan
nearbyint nextafter pow printf putchar puts qsort rand read realloc remainder remquo rint round scalbn signal
signbit sin sinh sqrt srand strlen system tan tanh tgamma time trunc write y0 y1 yn
"""
KEYWORDS = frozenset(_WORDS.split())
"""Words that no exported name may be: keywords of C11, C++ and OpenCL C, and types."""

HELPERS = frozenset(C11.helpers) | frozenset(plain_opencl().helpers)
"""Functions and macros that the printed text calls, which no exported name may hide."""

LIBRARY = frozenset(_LIBRARY.split())
"""Functions of C's library, which compilers know."""

_BUILT_IN = """
abs acos acosh add_sat all any asin asinh as_double as_float as_int as_long async_work_group_copy atan atan2 atomic_add
atomic_and atomic_cmpxchg atomic_dec atomic_inc atomic_max atomic_min atomic_or atomic_sub atomic_xchg atomic_xor barrier
bitselect cbrt ceil clamp clz convert_int copysign cos cosh cross degrees distance dot erf erfc exp exp10 exp2 expm1 fabs
fast_distance fast_length fast_normalize fdim floor fma fmax fmin fmod fract frexp get_global_id get_global_size get_group_id
get_local_id get_local_size get_num_groups get_work_dim hadd half_cos half_exp hypot ilogb isequal isfinite isinf isnan isnormal
ldexp length lgamma log log10 log1p log2 logb mad mad24 mad_hi max mem_fence min mix modf mul24 mul_hi nan native_exp nextafter
normalize popcount pow pown powr prefetch printf radians remainder remquo rhadd rint rootn rotate round rsqrt select shuffle
sign signbit sin sincos sinh sinpi smoothstep sqrt step sub_sat tan tanh tgamma trunc upsample vload2 vload4 vstore2
"""
BUILT_IN = {"opencl": frozenset(_BUILT_IN.split())}
"""Names of built-in functions that no function of a target may have."""

_GENERATED = re.compile(r"[a-z]\d+|b\d+_?.*|ferry_.*|_.*|.*_[if](32|64)")
"""Names that the printer makes, and those of functions of the instruction table."""


def identifier(name: str) -> str:
    """A valid identifier near a name; it is not empty."""
    found = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
    if not found or found[0].isdigit():
        found = f"x{found}"
    if found in KEYWORDS | HELPERS or _GENERATED.fullmatch(found):
        found += "_"
    return found


def identifiers(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Identifiers near some names, all different, and not those that are taken."""
    found: list[str] = []
    used = set(taken)
    for name in names:
        first = wanted = identifier(name)
        number = 1
        while wanted in used or f"{wanted}_length" in used:
            number += 1
            wanted = f"{first}_{number}"
        used |= {wanted, f"{wanted}_length"}
        found.append(wanted)
    return found


def entry_name(name: str | None, origin: str, target: str = "c") -> str:
    """The name of the exported function: the one that is given, or one near that of its origin.

    Raises FerryError for a given name that is no identifier or a keyword.
    """
    taken = KEYWORDS | HELPERS | BUILT_IN.get(target, LIBRARY)
    if name is None:
        made = re.sub(r"\W+", "_", origin, flags=re.ASCII).strip("_") or "kernel"
        made = f"f{made}" if made[0].isdigit() else made
        return made if made not in taken else f"{made}_kernel"
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise FerryError(f"name {name!r}: letters, digits and _ expected, a letter first")
    if name in taken:
        kind = f"a built-in function of {target}"
        if name in HELPERS:
            kind = "a function that exported text calls"
        if name in LIBRARY:
            kind = "a function of C's library"
        if name in KEYWORDS:
            kind = "a keyword of C or OpenCL C"
        raise FerryError(f"name {name!r}: is {kind}; choose another one")
    return name
