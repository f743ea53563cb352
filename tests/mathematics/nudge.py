# SPDX-License-Identifier: Apache-2.0
"""Search for coefficients that make the wrong operands of f32 functions right.

    python -m tests.mathematics.exhaustive exp2_f32 --hard exp2_f32
    python -m tests.mathematics.nudge EXP2 exp2_f32

Each function's file holds the operands that MPFR decided: the only ones that can be wrong. The
search moves coefficients by units in the last place, pseudo-randomly from a fixed seed, and prints
the best moves; they go into `NUDGES` of `tests.mathematics.make`.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mathematics.c_function import bodies
from tests.mathematics.exhaustive import built
from tests.mathematics.function import FUNCTIONS, exact

from ferryvm.ir.function_body import meaning_body
from ferryvm.isa.mathematics.single import coefficient
from ferryvm.isa.type import F32

BATCH = 24


def wrong_counts(
    table: str,
    candidates: Sequence[Sequence[int]],
    names: Sequence[str],
    cases: dict[str, list[int]],
) -> list[int]:
    """Number of wrong operands for each candidate table."""
    rights = {name: [exact(name, operand) for operand in cases[name]] for name in names}
    original = getattr(coefficient, table)
    printed = []
    counters = []
    for number, candidate in enumerate(candidates):
        setattr(coefficient, table, tuple(candidate))
        for name in names:
            # The meaning reads the table now.
            printed.append((f"{name}_{number}", meaning_body(FUNCTIONS[name], (F32,))))
            counters.append(
                f"uint32_t count_{name}_{number}(const uint32_t *operand, const uint32_t *right,"
                f" int size) {{ uint32_t bad = 0; for (int i = 0; i < size; ++i) bad +="
                f" bits_of_f32({name}_{number}(f32_of_bits(operand[i]))) != right[i];"
                " return bad; }"
            )
    setattr(coefficient, table, original)
    text = bodies(printed) + "\n".join(counters)
    counts = []
    with tempfile.TemporaryDirectory() as folder:
        library = built(text, Path(folder))
        for number in range(len(candidates)):
            total = 0
            for name in names:
                size = len(cases[name])
                array = ctypes.c_uint32 * size
                total += library[f"count_{name}_{number}"](
                    array(*cases[name]), array(*rights[name]), size
                )
            counts.append(total)
    return counts


def moves(places: int, reach: int, seed: int) -> Iterator[list[int]]:
    """No move, then pseudo-random ones."""
    source = random.Random(seed)
    yield [0] * places
    while True:
        yield [source.randint(-reach, reach) for _ in range(places)]


def main() -> None:
    """Search, and print each improvement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("names", nargs="+", choices=FUNCTIONS)
    parser.add_argument("--places", type=int, default=4, help="leading coefficients that move")
    parser.add_argument("--from-place", type=int, default=0)
    parser.add_argument("--reach", type=int, default=3)
    parser.add_argument("--tries", type=int, default=240)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path())
    options = parser.parse_args()
    cases = {
        name: [int(line, 16) for line in (options.folder / name).read_text().split()]
        for name in options.names
    }
    base = list(getattr(coefficient, options.table))
    best = None
    source = moves(options.places, options.reach, options.seed)
    for _ in range(0, options.tries, BATCH):
        batch = [[0] * options.from_place + next(source) for _ in range(BATCH)]
        candidates = [
            [c + d for c, d in zip(base, [*move, *[0] * len(base)], strict=False)] for move in batch
        ]
        for move, count in zip(
            batch, wrong_counts(options.table, candidates, options.names, cases), strict=True
        ):
            if best is None or count < best:
                best = count
                print(count, move, flush=True)
        if best == 0:
            break


if __name__ == "__main__":
    main()
