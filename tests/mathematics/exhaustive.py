# SPDX-License-Identifier: Apache-2.0
"""Compare an f32 function with the correctly rounded one for all 2^32 operands.

    python -m tests.mathematics.exhaustive exp_f32 --jobs 2
    python -m tests.mathematics.exhaustive exp_f32 --stride 1009

The meaning is printed as C and compiled without contraction. The C library's function of f64, in
vectors for most, gives an interval of 2^-46 around its result, sixteen times the error of its
vector functions, 4 units in the last place (glibc wiki, "libmvec"), or more. If both ends round to
one f32, that is the right result; MPFR decides the others, about one in a million. A finished part
is noted in a file, so that a run that was stopped goes on; `--fresh` begins again.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from mpmath import mp
from tests.mathematics.c_function import (
    functions,
    is_off_main_path,
    main_path,
    operation_count,
)
from tests.mathematics.function import FUNCTIONS, exact
from tests.mathematics.meaning import operand_count
from tests.mathematics.progress import Progress

from ferryvm.ir.c import C11
from ferryvm.ir.c.function_helper import body_definition
from ferryvm.ir.function_body import meaning_body
from ferryvm.isa.type import F32, I32

PART = 1 << 26
"""Operands of a part."""

CHECK = """
#include <math.h>
enum { BLOCK = 4096 };

/* Not zero if the result may be wrong: it is not what both ends of the interval round to. */
static inline uint32_t is_suspect(double reference, uint32_t result)
{
    const uint32_t low = bits_of_f32((float)(reference * (1 - 0x1p-46)));
    const uint32_t high = bits_of_f32((float)(reference * (1 + 0x1p-46)));
    return reference != reference ? result ^ 0x7fc00000u : (low ^ result) | (low ^ high);
}
"""

HARNESS = """
/* The main path of a block in vectors, and where that is no result the whole meaning. */
static void evaluate(const uint32_t *operand, uint32_t *result, int size)
{
    static _Thread_local int32_t is_off[BLOCK];
    int32_t is_any = 0;
    for (int i = 0; i < size; ++i) {
        result[i] = bits_of_f32(main_path(f32_of_bits(operand[i])));
        is_off[i] = is_off_main_path(f32_of_bits(operand[i]));
    }
    for (int i = 0; i < size; ++i)
        is_any |= is_off[i];
    if (is_any == 0)
        return;
    for (int i = 0; i < size; ++i)
        if (is_off[i])
            result[i] = bits_of_f32(meaning(f32_of_bits(operand[i])));
}

/* Reports operands that need a closer look: pairs (operand, result) in `found`. */
uint64_t run(uint64_t first, uint64_t count, uint64_t stride, uint32_t *found, uint64_t room)
{
    static _Thread_local uint32_t operand[BLOCK], result[BLOCK];
    static _Thread_local double reference[BLOCK];
    uint64_t reports = 0;
    for (uint64_t done = 0; done < count; done += BLOCK) {
        const int size = count - done < BLOCK ? (int)(count - done) : BLOCK;
        for (int i = 0; i < size; ++i)
            operand[i] = (uint32_t)(first + (done + i) * stride);
        evaluate(operand, result, size);
        for (int i = 0; i < size; ++i)
            reference[i] = REFERENCE(f32_of_bits(operand[i]));
        uint32_t bad = 0;
        for (int i = 0; i < size; ++i)
            bad |= is_suspect(reference[i], result[i]);
        if (bad == 0)
            continue;
        for (int i = 0; i < size; ++i) {
            if (!is_suspect(reference[i], result[i]))
                continue;
            if (reports < room) {
                found[2 * reports] = operand[i];
                found[2 * reports + 1] = result[i];
            }
            ++reports;
        }
    }
    return reports;
}
"""

MIRRORED = """
/* The same for operands with the sign bit: each result has to be that without it, mirrored. */
uint64_t run_mirrored(
    uint64_t first, uint64_t count, uint64_t stride, uint32_t *found, uint64_t room)
{
    static _Thread_local uint32_t operand[BLOCK], plain[BLOCK], mirrored[BLOCK];
    uint64_t reports = 0;
    for (uint64_t done = 0; done < count; done += BLOCK) {
        const int size = count - done < BLOCK ? (int)(count - done) : BLOCK;
        const uint32_t start = (uint32_t)(first + done * stride), step = (uint32_t)stride;
        uint32_t bad = 0;
        for (int i = 0; i < size; ++i)
            operand[i] = start + i * step;
        evaluate(operand, plain, size);
        for (int i = 0; i < size; ++i)
            operand[i] |= 0x80000000u;
        evaluate(operand, mirrored, size);
        for (int i = 0; i < size; ++i)
            bad |= (plain[i] == 0x7fc00000u ? plain[i] : plain[i] ^ MIRROR) ^ mirrored[i];
        if (bad == 0)
            continue;
        for (int i = 0; i < size; ++i)
            if (((plain[i] == 0x7fc00000u ? plain[i] : plain[i] ^ MIRROR) ^ mirrored[i]) != 0) {
                if (reports < room) {
                    found[2 * reports] = (start + i * step) | 0x80000000u;
                    found[2 * reports + 1] = mirrored[i];
                }
                ++reports;
            }
    }
    return reports;
}
"""
"""For odd and even functions: half of the operands need no reference."""

ONE_BY_ONE = """\
        for (int i = 0; i < size; ++i)
            reference[i] = REFERENCE(f32_of_bits(operand[i]));
"""

VECTOR = """
__attribute__((simd("notinbranch"), const, nothrow)) double vector_reference(double) __asm__("{name}");
#define REFERENCE vector_reference
"""
"""The reference by vectors: libmvec, whose documented error is 4 units in the last place."""

TRIGONOMETRIC = """
__attribute__((simd("notinbranch"), const, nothrow)) double vector_sin(double) __asm__("sin");
__attribute__((simd("notinbranch"), const, nothrow)) double vector_cos(double) __asm__("cos");
__attribute__((simd("notinbranch"), const, nothrow)) double vector_tan(double) __asm__("tan");
static inline double cosine(double r, int n)
{
    const double chosen = n & 1 ? vector_sin(r) : vector_cos(r);
    return (n + 1) & 2 ? -chosen : chosen;
}
#define sine(r, n) cosine(r, (n) - 1)
static inline double tangent(double r, int n)
{
    const double t = vector_tan(r);
    return n & 1 ? -1 / t : t;
}

/* 2 / pi, after 64 zero bits */
static const uint64_t quotient[] = { 0, WORDS };

/* For |x| of 2^24 or more: x = n pi / 2 + r by 128 bits of 2 / pi (Payne and Hanek, 1983). */
static inline double reduced(uint32_t operand, int *n)
{
    const uint32_t mantissa = (operand & 0x7fffffu) | 0x800000u;
    const int start = (int)(operand >> 23 & 255) - 150 - 2 + 64, word = start >> 6, bit = start & 63;
    const uint64_t *const at = quotient + word;
    const uint64_t high = bit ? at[0] << bit | at[1] >> (64 - bit) : at[0];
    const uint64_t low = bit ? at[1] << bit | at[2] >> (64 - bit) : at[1];
    const unsigned __int128 product = (((unsigned __int128)high << 64) | low) * mantissa;
    const unsigned __int128 fraction = product << 2;
    *n = (int)(product >> 126) + (int)(fraction >> 127);
    const double turns = (double)(int64_t)(fraction >> 64) * 0x1p-64 + (double)(uint64_t)fraction * 0x1p-128;
    return turns * 0x1.921fb54442d18p0;
}

static void references(const uint32_t *operand, double *result, int size)
{
    static _Thread_local double r[BLOCK];
    static _Thread_local int n[BLOCK];
    int is_huge = 1;
    for (int i = 0; i < size; ++i)
        is_huge &= (operand[i] >= 0x4b800000u) & (operand[i] < 0x7f800000u);
    if (is_huge) {
        for (int i = 0; i < size; ++i)
            r[i] = reduced(operand[i], &n[i]);
        for (int i = 0; i < size; ++i)
            result[i] = NAME_OF_IT(r[i], n[i]);
        return;
    }
    for (int i = 0; i < size; ++i)
        result[i] = REFERENCE(f32_of_bits(operand[i]));
}
"""
"""The C library reduces huge operands slowly."""

NAMES = {"sin": "sine", "cos": "cosine", "tan": "tangent"}

SCALAR = ("exp", "exp2", "expm1", "log", "log2")
"""Functions of which the C library's scalar code is the reference."""

SIGN = 1 << 31

MIRROR = {
    **dict.fromkeys(("sin", "tan", "asin", "atan", "sinh", "tanh", "cbrt", "erf"), SIGN),
    **dict.fromkeys(("cos", "cosh"), 0),
}
"""Bits by which results for x and -x differ, for odd and even functions."""

FLAGS = "-O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -shared -fPIC -w"
"""No flag changes a value: errno and exception flags are not looked at."""

ROOM = 1 << 20


def built(text: str, folder: Path, *libraries: str) -> ctypes.CDLL:
    """The compiled text."""
    source, library = folder / "function.c", folder / "function.so"
    source.write_text(text)
    command = ["gcc", *FLAGS.split(), "-o", str(library), str(source), *libraries, "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def reference_name(name: str) -> str:
    """The C library's function of f64."""
    return name.removesuffix("_f32")


def source_text(name: str) -> str:
    """The C text that compares one function."""
    meaning = FUNCTIONS[name]
    text = functions([("meaning", meaning, 1), ("main_path", main_path(meaning), 1)])
    body = meaning_body(is_off_main_path(meaning), (F32,))
    text += body_definition(C11, "is_off_main_path", I32, body)[0]
    reference = reference_name(name)
    if reference in SCALAR:
        text += f"#define REFERENCE {reference}\n"
    else:
        # The name in C is another one, so that the compiler does not think of its built-in.
        text += VECTOR.format(name=reference)
    harness = HARNESS
    if reference in NAMES:
        with mp.workprec(400):
            words = int(mp.floor(2 / mp.pi * mp.mpf(2) ** 256))
        shifted = ", ".join(f"{words >> each & (1 << 64) - 1:#x}u" for each in (192, 128, 64, 0))
        helpers = TRIGONOMETRIC.replace("NAME_OF_IT", NAMES[reference]).replace("WORDS", shifted)
        start = HARNESS.index("/* Reports")
        harness = HARNESS[:start] + helpers + HARNESS[start:]
        harness = harness.replace(ONE_BY_ONE, "        references(operand, reference, size);\n")
    text += CHECK + harness
    mirror = MIRROR.get(reference)
    return text if mirror is None else f"{text}#define MIRROR {mirror:#x}u\n{MIRRORED}"


def reports(
    run: ctypes._CFuncPtr, first: int, count: int, stride: int = 1
) -> list[tuple[int, int]]:
    """Operands that need a closer look, with their results."""
    found = (ctypes.c_uint32 * (2 * ROOM))()
    run.restype = ctypes.c_uint64
    number = run(
        ctypes.c_uint64(first),
        ctypes.c_uint64(count),
        ctypes.c_uint64(stride),
        found,
        ctypes.c_uint64(ROOM),
    )
    if number > ROOM:
        print(f"{number} reports from {first:#010x}, {ROOM} examined", file=sys.stderr)
    number = min(number, ROOM)
    return [(found[2 * n], found[2 * n + 1]) for n in range(number)]


def examined(name: str, suspects: list[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Operand, result and right result of what is wrong."""
    for operand, result in suspects:
        right = exact(name, operand)
        if right != result:
            yield operand, result, right


def main() -> None:
    """Compare and print; exit code 1 if an operand is wrong."""
    parser = argparse.ArgumentParser()
    known = [each for each in FUNCTIONS if operand_count(each) == 1]
    parser.add_argument("names", nargs="+", choices=[*known, "all"], metavar="name")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--stride", type=int, help="every so many operands only")
    parser.add_argument("--fresh", action="store_true", help="forget finished parts")
    parser.add_argument("--hard", type=Path, help="write the operands that MPFR decided")
    options = parser.parse_args()
    names = known if "all" in options.names else options.names
    sys.exit(1 if sum(_compare(name, options) for name in names) else 0)


def _compare(name: str, options: argparse.Namespace) -> int:
    """The number of wrong operands of one function."""
    text = source_text(name)
    is_mirrored = reference_name(name) in MIRROR
    print(f"{name}: {operation_count(FUNCTIONS[name], 1)} operations", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        library = built(text, Path(folder))

        def run(first: int, count: int, stride: int = 1) -> list[tuple[int, int]]:
            found = reports(library.run, first, count, stride)
            if is_mirrored:
                found += reports(library.run_mirrored, first, count, stride)
            return found

        if options.stride:
            count = (1 << (31 if is_mirrored else 32)) // options.stride
            suspects = run(0, count, options.stride)
            count *= 2 if is_mirrored else 1
            hard = [operand for operand, _ in suspects]
            wrong = list(examined(name, suspects))
        else:
            progress = Progress(name, text, options.fresh)
            hard, wrong = _whole(name, progress, run, options.jobs, is_mirrored)
            count = 1 << 32
    for operand, result, right in wrong[:64]:
        print(f"  {operand:08x} -> {result:08x}, correctly rounded {right:08x}")
    print(f"{name}: {count} operands, {len(hard)} decided by MPFR, {len(wrong)} wrong", flush=True)
    if options.hard:
        options.hard.write_text("".join(f"{operand:08x}\n" for operand in hard))
    return len(wrong)


def _whole(
    name: str,
    progress: Progress,
    run: Callable[[int, int], list[tuple[int, int]]],
    jobs: int,
    is_mirrored: bool,
) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Suspects and wrong operands; mirrored ones are compared together with the others."""
    parts = range(0, 1 << (31 if is_mirrored else 32), PART)
    starts = [first for first in parts if first not in progress.parts]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        # ctypes releases the interpreter's lock
        for first, suspects in zip(
            starts, pool.map(lambda first: run(first, PART), starts), strict=True
        ):
            wrong = list(examined(name, suspects))
            entry = {"first": first, "hard": [o for o, _ in suspects], "wrong": wrong}
            progress.add(entry)
            print(f"\r{len(progress.parts)} of {len(parts)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    entries = [progress.parts[first] for first in sorted(progress.parts)]
    return (
        [operand for entry in entries for operand in entry["hard"]],
        [tuple(each) for entry in entries for each in entry["wrong"]],
    )


if __name__ == "__main__":
    main()
