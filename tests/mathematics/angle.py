# SPDX-License-Identifier: Apache-2.0
"""The f64 nearest to multiples of pi/2, the hard cases of reductions, and errors there.

    python -m tests.mathematics.angle

For each exponent e the convergents of the continued fraction of 2^e 2/pi have the integers M for
which M 2^e is nearest to a multiple of pi/2 (Kahan; Muller, "Elementary Functions", 3rd edition,
11.3.2).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from mpmath import mp, mpf

import ferryvm

BITS = 1400
"""Of 2/pi: the largest f64 needs 1024 before the point of the product, and 120 behind."""

LAST = 3
"""Convergents of each exponent."""


def hard_angles() -> list[float]:
    """The last convergents of each exponent as f64, up to the largest one."""
    with mp.workprec(BITS):
        quotient = Fraction(int(mp.floor(2 / mp.pi * mpf(2) ** BITS)), 1 << BITS)
    found = []
    for exponent in range(-52, 972):
        places = convergents(quotient * Fraction(2) ** exponent % 1, 1 << 53)[-LAST:]
        found += [math.ldexp(place, exponent) for place in places]
    return list(dict.fromkeys(found))


def convergents(x: Fraction, limit: int) -> list[int]:
    """The denominators below a limit of the convergents of a positive number."""
    before, here, found = 0, 1, []
    while x and here < limit:
        found.append(here)
        x = 1 / x
        before, here = here, math.floor(x) * here + before
        x -= math.floor(x)
    return found


def distance(x: float) -> float:
    """The distance from the nearest multiple of pi/2."""
    with mp.workprec(BITS):
        quarters = mpf(x) / (mp.pi / 2)
        return float(abs(quarters - mp.nint(quarters)) * mp.pi / 2)


def errors(name: str, angles: list[float]) -> list[float]:
    """The error of each result in units in the last place."""
    program = ferryvm.compile(f"(define (f x) (f64.{name} x)) (print! (f 1.0))")
    results = ferryvm.map(ferryvm.Engine("threaded").instantiate(program).f, np.array(angles))
    found = []
    with mp.workprec(BITS):
        for x, y in zip(angles, results.tolist(), strict=True):
            exact = getattr(mp, name)(mpf(x))
            found.append(float(abs(mpf(y) - exact) / mpf(math.ulp(float(exact)))))
    return found


def main() -> None:
    """Print the nearest ones, and the largest errors."""
    angles = hard_angles()
    for x in sorted(angles, key=distance)[:5]:
        mantissa, exponent = math.frexp(x)
        print(f"{int(mantissa * 2**53)} * 2^{exponent - 53}: {distance(x):.4g} from a multiple")
    for name in ("sin", "cos", "tan"):
        largest = max(zip(errors(name, angles), angles, strict=True))
        print(
            f"f64.{name}: {len(angles)} operands, largest error {largest[0]:.4f} at {largest[1]!r}"
        )


if __name__ == "__main__":
    main()
