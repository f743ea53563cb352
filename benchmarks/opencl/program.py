# SPDX-License-Identifier: Apache-2.0
"""The programs: the nine of the other benchmarks, and the loop of the examples in two forms."""

from __future__ import annotations

from pathlib import Path

from benchmarks.benchmark import BENCHMARKS, BY_NAME, ROOT, Benchmark, BenchmarkError
from benchmarks.scalar import FOLDED

EXAMPLES = ROOT.parent / "examples"
_MARK = "(enter-jit ("
_SCOPE = "(begin "


class Example(Benchmark):
    """A program of the examples; it prints its result."""

    def path(self, suffix: str) -> Path:
        return EXAMPLES / f"looptest.{suffix}"


class Unmarked(Example):
    """The same without its marks."""

    def skiff(self, sizes: tuple[int, ...]) -> str:
        return unmarked(super().skiff(sizes))


_SIZES = BY_NAME[FOLDED].sizes

LOOPTEST = Example("looptest", "the triple loop of the examples", _SIZES)
PLAIN = Unmarked("plain", "looptest without marks, the whole program compiled", _SIZES)
MARKED = Example("mixed", "looptest, its marked scope compiled", _SIZES)

PROGRAMS = (*BENCHMARKS, LOOPTEST)
"""What runs whole on a compiler."""

FOLDING = frozenset({FOLDED, LOOPTEST.name})
"""Programs for which a compiler that folds loops does no work: no ratio then means anything."""


def unmarked(text: str) -> str:
    """A Skiff text with each marked scope as a sequence. Raises BenchmarkError if it marks none."""
    if _MARK not in text:
        raise BenchmarkError(f"expected {_MARK!r} in the program, found none")
    while (begin := text.find(_MARK)) >= 0:
        end = _end(text, begin + len(_MARK))
        text = text[:begin] + _SCOPE + text[begin + len(_MARK) : end] + text[end + 1 :]
    return text


def _end(text: str, begin: int) -> int:
    """Where the list ends whose first element begins there."""
    depth = 1
    for at in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise BenchmarkError("the program's parentheses do not match")


def named(names: tuple[str, ...] | None) -> list[Benchmark]:
    """The programs of these names; all for None."""
    return [p for p in PROGRAMS if names is None or p.name in names]


def is_of_nine(benchmark: Benchmark) -> bool:
    """Whether it has twins in other languages."""
    return benchmark.name in BY_NAME
