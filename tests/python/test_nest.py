# SPDX-License-Identifier: Apache-2.0
"""Loops whose checks are made once, before them: at the edges they do what CPython does; and what
loops pass from one iteration to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm.ir.graph import BOOLEAN
from ferryvm.ir.lane.profit import REASON
from ferryvm.ir.lift import lift
from ferryvm.ir.loop.natural import find_loops
from ferryvm.ir.passes import optimise
from ferryvm.policy.model import build_ours
from ferryvm.python.compiled.program import Unit
from ferryvm.python.value.kind import INT, List
from ferryvm.region.region import region
from ferryvm.testing import check
from ferryvm.verify import verify

M = 1 << 63


def grid(n, first, step, scale, base):
    xs = [0] * n
    ys = [i * 3 for i in range(n)]
    total = 0
    for i in range(first, n):
        for k in range(n):
            total = total + ys[k * step] * scale
        xs[i * scale + base] = total
    return total, xs[0], xs[-1]


def back(n, m, off):
    xs = [float(i) for i in range(n)]
    s = 0.0
    for i in range(m):
        s = s + xs[i - off] * xs[off - i]
        xs[i - off] = s
    return s


def scaled(n, f, a):
    xs = [1] * 40
    ys = [2] * 40
    for i in range(n):
        xs[i] = ys[i] * f + (i * a + a)
    return xs[n - 1]


def downward(n, m, d):
    xs = [5] * n
    t = 0
    for i in range(m):
        t = t - xs[n - 1 - i] * d
        xs[i] = t - i
    return t


def growing(n):
    xs = [1]
    t = 0
    for i in range(n):
        t = t + xs[i]
        xs.append(t)
    return t


def shrinking(n):
    xs = [i * 1 for i in range(n)]
    t = 0
    while len(xs) > 3:
        t = t + xs[-1] + xs[0]
        xs.pop()
    for i in range(n):
        t = t + xs[i]
    return t


def inverse(n, low, step):
    xs = [0.0] * n
    for i in range(n):
        for k in range(n):
            xs[k] = 1.0 / (i * step + k + low)
    return xs[0] + xs[-1]


def hashed(n, first, factor):
    h = first
    for i in range(n):
        h = ((h ^ i) * factor) & 0xFFFFFFFF
    return h


def falling(n, first, last, off):
    xs = [i * 3 for i in range(n)]
    t = 0
    for c in range(first, last, -1):
        t = t + xs[c - off]
        xs[c] = t
    return t, xs[0], xs[-1]


def inserted(n, k):
    xs = [(i * k) % n for i in range(n)]
    xs.pop()
    for i in range(1, n):
        x = xs[i]
        j = i - 1
        while j >= 0 and xs[j] > x:
            xs[j + 1] = xs[j]
            j -= 1
        xs[j + 1] = x
        xs[(x * k) % n] += x
    return xs[0]


def chained(n, value):
    for _ in range(n):
        value = value >> 1 if value & 1 == 0 else value * 3 + 1
    return value


def either(n, a, b):
    for i in range(n):
        if a > b:
            a = (a - 5) * -7 + 3
        elif a < -b:
            b = b + i
    return a, b


CASES: dict[Callable[..., Any], list[tuple[int, ...]]] = {
    grid: [
        *((5, 0, 1, 1, 0), (5, 0, 1, 1, 1), (5, 0, 1, 1, -1), (5, 0, 1, 1, -6), (5, 0, 2, 1, 0)),
        *((5, 0, -1, 1, 0), (5, 0, 1, 2, -5), (5, 0, 1, M // 8, 0), (5, 3, 1, -1, 0)),
        *((5, 0, M // 2, 1, 0), (5, 0, -M // 2, 1, 0)),
    ],
    back: [
        *((5, 5, 0), (5, 6, 0), (5, 5, 2), (5, 5, 5), (5, 5, 6), (5, 5, -1), (0, 1, 0), (0, 0, 0)),
        (5, 5, M - 1),
    ],
    scaled: [
        *((9, 1, 1), (40, 1, 1), (41, 1, 1), (9, M // 2, 1), (9, M // 2 - 1, 2), (9, 1, M // 8)),
        *((7, 1, M // 8), (9, 1, -M // 8), (9, 1, -M // 16)),
    ],
    inverse: [
        *((5, 1, 1), (5, 0, 1), (5, -3, 1), (5, -8, 1), (5, -9, 1), (5, 5, -1), (5, 4, -1)),
        *((5, -4, -1), (5, -5, -1), (0, 0, 1), (5, -M, 1), (5, 1, M // 4)),
    ],
    hashed: [
        *((5, 1, 3), (0, -1, 3), (5, -1, 3), (5, 1, M - 1), (5, 2, 1 << 31), (5, M - 1, 1)),
        *((5, M - 1, 2), (5, (1 << 32) - 1, 1 << 31), (5, 1 << 32, 1 << 31), (5, -M, -1)),
    ],
    falling: [
        *((9, 8, -1, 0), (9, 9, -1, 0), (9, 8, 3, 4), (9, 8, 3, 5), (9, 8, -1, -1), (9, 8, -3, 0)),
        *((9, 3, 5, 0), (9, 8, -1, M - 1), (9, M - 1, M - 3, M - 4), (9, -1, -12, 0)),
    ],
    inserted: [(9, 2), (8, 3), (1, 1), (9, -5)],
    chained: [
        *((9, 27), (1, (M - 2) // 3), (1, (M - 2) // 3 + 2), (1, M // 3 + 1), (1, M - 1), (2, -M)),
        *((1, -M + 1), (1, -(M // 3) - 1), (1, -(M // 3)), (1, -(M // 3) + 1), (3, M - 3)),
    ],
    either: [
        *((5, 9, 1), (5, M - 1, 1), (3, M // 7, 1), (3, M // 7 + 5, 1), (3, M // 7 + 6, 1)),
        *((3, M // 7 + 4, 1), (4, -9, 2), (4, -M, M - 1), (4, -M + 1, M - 2), (5, -M, 7)),
    ],
    downward: [(5, 5, 1), (5, 6, 1), (5, 5, M // 5), (5, 5, M // 25), (5, 11, 1)],
    growing: [(10,), (70,)],
    shrinking: [(10,), (3,), (0,)],
}
NIGHTLY = {downward, growing, shrinking}


@pytest.mark.rotate("function", most=4)
@pytest.mark.parametrize(
    "function",
    [
        pytest.param(f, id=f.__name__, marks=[pytest.mark.nightly] if f in NIGHTLY else [])
        for f in CASES
    ],
)
def test_loops_without_checks_run_only_where_none_fails(function: Callable[..., Any]) -> None:
    for arguments in CASES[function]:
        expected: Any = None
        try:
            expected = function(*arguments)
        except (IndexError, ArithmeticError) as error:
            expected = type(error)
        try:
            found = check(function, *arguments, backends=["llvm"])
        except (IndexError, ArithmeticError) as error:
            found = type(error)
        assert found == expected


def temporaries(n):
    total = 0.0
    for i in range(n):
        a = i * 2.0
        b = a * a
        total += b - a
    return total


def test_a_loop_passes_nothing_on_but_what_its_next_iteration_reads() -> None:
    assert ferryvm.function(temporaries)(4) == 44.0
    verified = verify(Unit(temporaries, [INT]).program)
    module = lift(region(verified, "temporaries/loop.1"))
    optimise(module)
    heads = {edge.block for block in module.root.blocks for edge in block.end.edges if edge.is_back}
    (head,) = heads
    passed = [each for each in head.parameters if each.type is not BOOLEAN]
    assert len(passed) == 2  # the total, and the next number of the range


def relaxed(d, n):
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i][j] = min(d[i][j], d[i][k] + d[k][j])
    return d[0][n - 1]


ROWS = [
    [[5, 9, 1], [2, 0, 7], [4, 4, 4]],
    [[5, 9, 1], [2, 0, M - 1], [4, 4, 4]],
    [[5, 9, 1], [2, 0], [4, 4, 4]],
    [[5, 9, 1], [2, 0, 7]],
    [[5, 9, 1, 0, 0], [2, 0, 7, 8], [4, 4, 4]],
]


@pytest.mark.nightly
def test_rows_of_a_list_of_lists_are_checked_once_for_each_loop() -> None:
    for rows in ROWS:
        try:
            expected: Any = relaxed([[*row] for row in rows], 3)
        except IndexError:
            with pytest.raises(IndexError):
                check(relaxed, rows, 3, backends=["llvm"])
        else:
            assert check(relaxed, rows, 3, backends=["llvm"]) == expected
    verified = verify(Unit(relaxed, [List(List(INT)), INT]).program)
    module = lift(region(verified, "relaxed/nest.1"))
    optimise(module, fields=True)
    innermost = [each for each in find_loops(module.root) if each.is_innermost]
    (loop,) = (each for each in innermost if each.header.label.startswith("unchecked"))
    assert not any(o.name == "field_load" for o in loop.operations)


def test_a_guess_that_no_divisor_is_zero_is_checked_before_the_loop() -> None:
    verified = verify(Unit(inverse, [INT, INT, INT]).program)
    nest = region(verified, "inverse/nest.1")
    exits = [
        (block.end.pc, edge.block.pc)
        for block in lift(nest).root.blocks
        for edge in block.end.edges
        if not edge.block.end.edges
    ]
    module = lift(nest, unseen=frozenset([max(exits)]))  # the others leave the nest
    assert module.guards
    optimise(module, fields=True)
    bodies = {block.label: block.operations for block in module.root.blocks}
    guarded = {label for label, each in bodies.items() if any(o.name == "guard" for o in each)}
    assert guarded
    assert {f"unchecked.{label}" for label in guarded} <= bodies.keys() - guarded


def row(i, size, matrix):
    for k in range(size):
        matrix[i * size + k] = 1.0 / (i + k + 1)
    return i


@pytest.mark.nightly
def test_rows_that_items_store_are_not_run_in_lanes() -> None:
    rule = {"when": {"kind": "launch"}, "backends": [{"name": "llvm", "background": False}]}
    policy = build_ours({"profile": {"loop_threshold": 1}, "rule": [rule]})
    function = ferryvm.function(row, policy=policy)
    matrix = np.zeros(64)
    ferryvm.map(function, range(8), size=8, matrix=matrix)
    assert np.array_equal(matrix, [1 / (i + k + 1) for i in range(8) for k in range(8)])
    assert REASON in str(function.explain())
