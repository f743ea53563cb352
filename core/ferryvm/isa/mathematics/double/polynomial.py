# SPDX-License-Identifier: Apache-2.0
"""Polynomials whose steps hardly wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ferryvm.isa.emitter import PureEmitter
from ferryvm.isa.mathematics.pair import fma, mul, number

V = TypeVar("V")


def polynomial(
    m: PureEmitter[V], x: V, coefficients: Sequence[float], is_precise: bool = False
) -> V:
    """The polynomial with these coefficients, lowest power first, by Estrin's scheme: about
    log2(n) dependent steps instead of n (Muller, "Elementary Functions", 3rd edition, 5.3).

    `is_precise`: the last step is that of Horner's scheme, with one rounding instead of two."""
    if is_precise:
        rest = polynomial(m, x, coefficients[1:])
        return fma(m, x, rest, number(m, coefficients[0]))
    terms = [number(m, each) for each in coefficients]
    power = x
    while len(terms) > 1:
        pairs = [
            fma(m, terms[place + 1], power, terms[place]) for place in range(0, len(terms) - 1, 2)
        ]
        terms = pairs + terms[len(pairs) * 2 :]
        if len(terms) > 1:
            power = mul(m, power, power)
    return terms[0]
