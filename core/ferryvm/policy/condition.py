# SPDX-License-Identifier: Apache-2.0
"""Conditions of rules on facts: booleans, bounds of numbers, patterns of texts.

There is no expression language: one value, one text of comparisons, one glob. Anything else takes
two rules, `any`, or `not`.
"""

from __future__ import annotations

import fnmatch
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterator, Sequence

from ferryvm import record
from ferryvm.policy.fact import Fact, FactType, Value
from ferryvm.toml.fault import show

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}

_OPERATOR_AND_DIGIT = r"\s*(>=|<=|>|<|==|!=)\s*[+-]?[0-9]"
COMPARISON = rf"{_OPERATOR_AND_DIGIT}[0-9_]*(\.[0-9]+)?([eE][+-]?0*[0-9]{{1,2}})?\s*"
"""One comparison as a pattern, in what Python and JSON schemas have in common."""

COMPARISON_LIKE = f"^{_OPERATOR_AND_DIGIT}"
"""Beginnings of texts that must be comparisons where any text is allowed."""

LARGEST = 10**18
"""The largest absolute value of a number in a condition."""

RANGES: dict[FactType, tuple[int, int]] = {
    FactType.COUNT: (0, LARGEST),
    FactType.SHARE: (0, 1),
    FactType.OPEN: (-LARGEST, LARGEST),
}
"""The range of the numbers that a fact of each type can be required to equal; a count is a whole
number, too."""

_EXACT = 20
"""The number of digits up to which a number is read exactly; Python refuses to read thousands of
them."""

_SIZE = f"{LARGEST:.0e}".replace("e+", "e")

ALLOWED = {
    FactType.BOOLEAN: "true or false",
    FactType.COUNT: f'a whole number from 0 to {_SIZE}, or a comparison such as ">= 10" or '
    '">= 10, < 100"',
    FactType.SHARE: 'a number from 0 to 1, or a comparison such as "< 0.5" or "> 0.1, < 0.5"',
    FactType.TEXT: 'a text, "*" in it for any characters',
    FactType.OPEN: f"true, false, a number from -{_SIZE} to {_SIZE}, a comparison or a text",
}
"""The conditions that are allowed on a fact of each type; a list of them is allowed too."""


@record.dataclass(frozen=True)
class Is:
    """The fact is this boolean."""

    value: bool

    def holds(self, found: Value) -> bool:
        return found is self.value

    def __str__(self) -> str:
        return show(self.value)


@record.dataclass(frozen=True)
class Like:
    """The fact is a text that the pattern matches: `*`, `?` and `[...]` as in a shell."""

    pattern: str

    def holds(self, found: Value) -> bool:
        return isinstance(found, str) and fnmatch.fnmatchcase(found, self.pattern)

    def __str__(self) -> str:
        return show(self.pattern)


@record.dataclass(frozen=True)
class Within:
    """The fact is a number for which all comparisons hold."""

    comparisons: tuple[tuple[str, int | float], ...]
    """Operators, each with the number to its right."""

    def holds(self, found: Value) -> bool:
        if isinstance(found, str | bool):
            return False
        return all(_OPERATORS[name](found, number) for name, number in self.comparisons)

    def __str__(self) -> str:
        if len(self.comparisons) == 1 and self.comparisons[0][0] == "==":
            return str(self.comparisons[0][1])
        return ", ".join(f"{name} {number}" for name, number in self.comparisons)


Condition = Is | Like | Within


def read(value: object, fact: Fact) -> Condition | None:
    """The condition that a value in a rule denotes; None if it is impossible for the fact."""
    if isinstance(value, bool):
        return Is(value) if fact.type in (FactType.BOOLEAN, FactType.OPEN) else None
    if isinstance(value, int | float):
        return Within((("==", value),)) if _can_be(fact.type, value) else None
    if isinstance(value, str):
        if fact.type in (FactType.COUNT, FactType.SHARE):
            return _comparisons(value)
        if fact.type is FactType.OPEN and re.match(COMPARISON_LIKE, value):
            return _comparisons(value)
        if fact.type in (FactType.TEXT, FactType.OPEN):
            return Like(value)
    return None


def _can_be(kind: FactType, number: int | float) -> bool:
    """True if a fact of that type can be that number."""
    low, high = RANGES.get(kind, (1, 0))
    if not low <= number <= high:  # NaN is in no range
        return False
    return kind is not FactType.COUNT or number == int(number)


def _comparisons(text: str) -> Within | None:
    read = []
    for part in text.split(","):
        match = re.fullmatch(COMPARISON, part)
        if match is None:
            return None
        digits = part[match.end(1) :].strip().replace("_", "")
        is_exact = digits.lstrip("+-").isdecimal() and len(digits) <= _EXACT
        number = int(digits) if is_exact else float(digits)
        if not abs(number) <= LARGEST:
            return None
        read.append((match[1], number))
    return Within(tuple(read))


def samples(fact: Fact, conditions: Sequence[Condition]) -> Iterator[Value] | None:
    """Values of a fact, at least one for each combination of results of the conditions, the most
    different first. None if the fact's values cannot be enumerated."""
    if fact.type is FactType.BOOLEAN:
        return iter((True, False))
    if fact.type is FactType.TEXT:
        return None if fact.values is None else iter(fact.values)
    if fact.type is FactType.OPEN:
        return None
    bounds = [
        number
        for condition in conditions
        if isinstance(condition, Within)
        for _, number in condition.comparisons
    ]
    # Results do not change between two bounds, so one value between them is enough.
    return _counts(bounds) if fact.type is FactType.COUNT else _shares(bounds)


def _counts(bounds: list[int | float]) -> Iterator[int]:
    yield 0
    for step in (1, 0, -1):
        yield from (count for bound in bounds if (count := math.floor(bound) + step) > 0)


def _shares(bounds: list[int | float]) -> Iterator[float]:
    shares = sorted({0.0, 1.0, *(float(bound) for bound in bounds if 0 < bound < 1)})
    yield from shares
    yield from ((low + high) / 2 for low, high in itertools.pairwise(shares))
