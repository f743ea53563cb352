# SPDX-License-Identifier: Apache-2.0
"""Compare an f32 function of two operands with the correctly rounded one.

    python -m tests.mathematics.pairs hypot_f32 --millions 1000

Pairs of special operands are all tried, then pseudo-random ones of four kinds, in equal parts: any
bits; exponents that differ by at most 12; few bits of mantissa (for `pow` of the base, with
multiples of 1/4 as exponents), so that results are exact or in the middle of two floats; and for
`pow` an exponent with which the result is finite. As in `tests.mathematics.exhaustive`, the C
library decides nearly all pairs and MPFR the rest.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import tempfile
from pathlib import Path

from tests.mathematics.c_function import functions, operation_count
from tests.mathematics.exhaustive import CHECK, built
from tests.mathematics.function import FUNCTIONS, exact
from tests.mathematics.meaning import operand_count
from tests.mathematics.sample import SPECIAL

HARNESS = """
/* splitmix64: Steele, Lea and Flood, OOPSLA 2014 */
static inline uint64_t mixed(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

uint64_t run(uint64_t seed, uint64_t count, uint32_t *found, uint64_t room)
{
    static uint32_t first[BLOCK], second[BLOCK], result[BLOCK];
    static double reference[BLOCK];
    uint64_t reports = 0;
    for (uint64_t done = 0; done < count; done += BLOCK) {
        for (int i = 0; i < BLOCK; ++i) {
            const uint64_t random = mixed(seed + (done + i) * 0x9e3779b97f4a7c15ull);
            const uint64_t more = mixed(random + 1);
            uint32_t a = (uint32_t)random, b = (uint32_t)(random >> 32);
            const uint32_t near = ((a >> 23 & 255) + more % 25 - 12 & 255) << 23;
            switch (i & 3) {
            case 1:
                b = (b & 0x807fffffu) | near;
                break;
            case 2:
                a = (a & ~0u << (more >> 8 & 15) + 8 & 0xbfffffffu) | 0x38000000u;
                if (IS_POWER) {
                    b = bits_of_f32((float)((int)(more >> 32 & 63) - 24) * 0.25f);
                    break;
                }
                b = (b & ~0u << (more >> 16 & 15) + 8 & 0xbfffffffu) | 0x38000000u;
                break;
            case 3:
                if (IS_POWER) {
                    const double span = (double)(int32_t)b * 0x1p-31 * 152;
                    a &= 0x7fffffffu;
                    b = bits_of_f32((float)(span / log2(f32_of_bits(a))));
                }
                break;
            }
            first[i] = a;
            second[i] = b;
        }
        for (int i = 0; i < BLOCK; ++i)
            result[i] = bits_of_f32(meaning(f32_of_bits(first[i]), f32_of_bits(second[i])));
        for (int i = 0; i < BLOCK; ++i)
            reference[i] = REFERENCE(f32_of_bits(first[i]), f32_of_bits(second[i]));
        for (int i = 0; i < BLOCK; ++i) {
            if (!is_suspect(reference[i], result[i]))
                continue;
            if (reports < room) {
                found[3 * reports] = first[i];
                found[3 * reports + 1] = second[i];
                found[3 * reports + 2] = result[i];
            }
            ++reports;
        }
    }
    return reports;
}

void one(const uint32_t *operands, uint32_t *results, int count)
{
    for (int i = 0; i < count; ++i)
        results[i] = bits_of_f32(
            meaning(f32_of_bits(operands[2 * i]), f32_of_bits(operands[2 * i + 1])));
}
"""

ROOM = 1 << 20
STEP = 1 << 24

MORE_SPECIAL = [0x0000_0002, 0x0000_0003, 0x3EAA_AAAB, 0x4B80_0000, 0x4B80_0001, 0x4B00_0001]
"""Subnormal numbers, a third, and numbers around which odd integers end."""


def special_pairs() -> list[tuple[int, int]]:
    """All pairs of special operands."""
    values = [each | sign for each in (*SPECIAL, *MORE_SPECIAL) for sign in (0, 1 << 31)]
    return [(a, b) for a in values for b in values]


def main() -> None:
    """Compare and print; exit code 1 if a pair is wrong."""
    parser = argparse.ArgumentParser()
    known = [each for each in FUNCTIONS if operand_count(each) == 2]
    parser.add_argument("names", nargs="+", choices=[*known, "all"], metavar="name")
    parser.add_argument("--millions", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hard", type=Path, help="write the pairs that MPFR decided")
    options = parser.parse_args()
    names = known if "all" in options.names else options.names
    sys.exit(1 if sum(_compare(name, options) for name in names) else 0)


def _compare(name: str, options: argparse.Namespace) -> int:
    """The number of wrong pairs of one function."""
    reference = name.removesuffix("_f32")
    text = functions([("meaning", FUNCTIONS[name], 2)])
    text += (
        f"#define REFERENCE {reference}\n#define IS_POWER {int(reference == 'pow')}\n"
        + CHECK
        + HARNESS
    )
    print(f"{name}: {operation_count(FUNCTIONS[name], 2)} operations", flush=True)
    hard: list[list[int]] = []
    with tempfile.TemporaryDirectory() as folder:
        library = built(text, Path(folder))
        pairs = special_pairs()
        flat = [each for pair in pairs for each in pair]
        results = (ctypes.c_uint32 * len(pairs))()
        library.one((ctypes.c_uint32 * len(flat))(*flat), results, len(pairs))
        suspects = [[*pair, result] for pair, result in zip(pairs, results, strict=True)]
        library.run.restype = ctypes.c_uint64
        found = (ctypes.c_uint32 * (3 * ROOM))()
        count = 0
        while count < options.millions * 1_000_000:
            seed = ctypes.c_uint64((options.seed << 32) + (count // STEP << 40))
            number = library.run(seed, ctypes.c_uint64(STEP), found, ctypes.c_uint64(ROOM))
            count += STEP
            hard += [found[3 * n : 3 * n + 3] for n in range(min(number, ROOM))]
            print(f"\r{count >> 20} Mi", end="", file=sys.stderr)
    print(file=sys.stderr)
    wrong = 0
    for first, second, result in suspects + hard:
        right = exact(name, first, second)
        if result == right:
            continue
        wrong += 1
        if wrong <= 40:
            print(f"  {first:08x} {second:08x} -> {result:08x}, correctly rounded {right:08x}")
    print(
        f"{name}: {len(pairs)} special and {count} random pairs,"
        f" {len(hard)} decided by MPFR, {wrong} wrong",
        flush=True,
    )
    if options.hard:
        options.hard.write_text("".join(f"{a:08x} {b:08x}\n" for a, b, _ in hard))
    return wrong


if __name__ == "__main__":
    main()
