# SPDX-License-Identifier: Apache-2.0
"""Kernels that price options. Their functions of f32 are correctly rounded, so the oracle rounds
those of f64."""

from __future__ import annotations

from collections.abc import Callable

import numpy

from benchmarks.groups.combined import tree
from benchmarks.groups.sample import Array, Sample, Sizes, Work, uniform

WORD = 0xFFFFFFFF
SINGLE = numpy.float32


def rounded(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of f32 by one of f64."""
    return lambda x: function(numpy.float64(x)).astype(SINGLE)


exp, log, cos, sin = map(rounded, (numpy.exp, numpy.log, numpy.cos, numpy.sin))


def _options(sizes: Sizes) -> tuple[Array, ...]:
    n = sizes["n"]
    return uniform(n, 10.0, 50.0, 0), uniform(n, 10.0, 50.0, 1), uniform(n, 0.25, 4.0, 2)


def _blackscholes(sizes: Sizes) -> Work:
    n = sizes["n"]
    results = numpy.zeros(n, SINGLE), numpy.zeros(n, SINGLE)
    return Work((n, *_options(sizes), *results), (4, 5))


def _normal(d: Array) -> Array:
    k = 1 / (1 + SINGLE(0.2316419) * numpy.abs(d))
    series = SINGLE(1.330274429) * k
    for term in (-1.821255978, 1.781477937, -0.356563782, 0.31938153):
        series = k * (SINGLE(term) + series)
    tail = SINGLE(0.39894228) * exp(SINGLE(-0.5) * (d * d)) * series
    return numpy.where(d > 0, 1 - tail, tail)


def _prices(work: Work, _sizes: Sizes) -> list[Array]:
    price, strike, time = (work.array(position) for position in (1, 2, 3))
    rate, volatility, root = SINGLE(0.02), SINGLE(0.3), numpy.sqrt(time)
    drift = rate + SINGLE(0.5) * (volatility * volatility)
    d1 = (log(price / strike) + drift * time) / (volatility * root)
    n1, n2 = _normal(d1), _normal(d1 - volatility * root)
    discounted = strike * exp(-(rate * time))
    return [price * n1 - discounted * n2, discounted * (1 - n2) - price * (1 - n1)]


def _binomial(sizes: Sizes) -> Work:
    return Work((sizes["n"], *_options(sizes), numpy.zeros(sizes["n"], SINGLE)), (4,))


def _tree_prices(work: Work, sizes: Sizes) -> list[Array]:
    price, strike, time = (work.array(position)[:, None] for position in (1, 2, 3))
    steps = sizes["SIZE"] - 1
    step = time / SINGLE(steps)
    spread = SINGLE(0.3) * numpy.sqrt(step)
    up, growth = exp(spread), exp(SINGLE(0.02) * step)
    down = 1 / up
    rising = (growth - down) / (up - down)
    with_up, with_down = rising / growth, (1 - rising) / growth
    nodes = (2 * numpy.arange(steps + 1) - steps).astype(SINGLE)
    values = numpy.maximum(0, price * exp(spread * nodes) - strike)
    for _ in range(steps):
        values = with_up * values[:, 1:] + with_down * values[:, :-1]
    return [values[:, 0]]


def philox(counter: Array, draw: int, seed: int) -> list[Array]:
    """Four words for each counter: Philox 4x32-10 of the counters (counter, draw, 0, 0) and the key
    (seed, 0)."""
    zero = numpy.zeros_like(counter, numpy.uint64)
    a, b, c, d = counter.astype(numpy.uint64), zero + draw, zero, zero
    key, other = seed, 0
    for _ in range(10):
        first, second = a * 0xD2511F53, c * 0xCD9E8D57
        a, c = (second >> 32) ^ b ^ key, (first >> 32) ^ d ^ other
        b, d = second & WORD, first & WORD
        key, other = (key + 0x9E3779B9) & WORD, (other + 0xBB67AE85) & WORD
    return [a, b, c, d]


def _unit(word: Array) -> Array:
    return ((word >> 8).astype(SINGLE) + SINGLE(0.5)) * SINGLE(5.9604644775390625e-8)


def _montecarlo(sizes: Sizes) -> Work:
    groups = sizes["groups"]
    return Work((groups, 2026, numpy.zeros(groups, SINGLE)), (2,))


def _payoffs(work: Work, sizes: Sizes) -> list[Array]:
    counter = numpy.arange(sizes["groups"] * sizes["SIZE"])
    sums = numpy.zeros(len(counter), SINGLE)
    for draw in range(sizes["EACH"]):
        words = [_unit(word) for word in philox(counter, draw, 2026)]
        for first, second in ((words[0], words[1]), (words[2], words[3])):
            radius, angle = numpy.sqrt(SINGLE(-2) * log(first)), SINGLE(6.2831855) * second
            for normal in (radius * cos(angle), radius * sin(angle)):
                price = SINGLE(25) * exp(SINGLE(-0.05) + SINGLE(0.4) * normal)
                sums += numpy.maximum(0, price - SINGLE(26))
    return [tree(sums.reshape(sizes["groups"], sizes["SIZE"]))]


SAMPLES = (
    Sample("blackscholes", _blackscholes, _prices, {"SIZE": 4, "n": 7}, {"n": 1 << 20}),
    Sample("binomial", _binomial, _tree_prices, {"SIZE": 4, "n": 3}, {"SIZE": 64, "n": 4096}),
    Sample(
        "montecarlo",
        _montecarlo,
        _payoffs,
        {"SIZE": 2, "EACH": 1, "groups": 2},
        {"SIZE": 64, "EACH": 8, "groups": 1024},
    ),
)
