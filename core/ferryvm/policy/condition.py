# SPDX-License-Identifier: Apache-2.0
"""What a rule may want a fact to be: true or false, within bounds, like a pattern.

No expression language: one value, one text of comparisons, one glob. Whatever cannot be said so
is two rules, `any`, or `not`.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
import math
import operator
import re
from collections.abc import Callable, Sequence

from ferryvm.policy.fact import Fact, FactType, Value
from ferryvm.policy.fault import show

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
_COMPARISON = re.compile(r"\s*(>=|<=|>|<|==|!=)\s*([+-]?\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*")

_LARGEST = 2**63
"""Numbers in a policy are below it, as TOML's integers are."""

_WIDEST = 40
"""Characters of a number; Python refuses to convert very long ones."""

_COMPARED = 'a number, or a comparison such as ">= 10" or ">= 10, < 100"'

ALLOWED = {
    FactType.TRUTH: "true or false",
    FactType.COUNT: _COMPARED,
    FactType.SHARE: _COMPARED.replace(">= 10, < 100", "> 0.1, < 0.5").replace(">= 10", "< 0.5"),
    FactType.TEXT: 'a text, "*" in it for any characters',
    FactType.OPEN: "true, false, a number, a comparison or a text",
}
"""What can be wanted of a fact of each type; a list of such is one of them."""


@dataclasses.dataclass(frozen=True)
class Is:
    """The fact is this truth value."""

    value: bool

    def holds(self, found: Value) -> bool:
        return found is self.value

    def __str__(self) -> str:
        return show(self.value)


@dataclasses.dataclass(frozen=True)
class Like:
    """The fact is a text that the pattern matches: `*`, `?` and `[...]` as in a shell."""

    pattern: str

    def holds(self, found: Value) -> bool:
        return isinstance(found, str) and fnmatch.fnmatchcase(found, self.pattern)

    def __str__(self) -> str:
        return show(self.pattern)


@dataclasses.dataclass(frozen=True)
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
    """The condition that a value in a rule stands for; None if the fact can be no such thing."""
    if isinstance(value, bool):
        return Is(value) if fact.type in (FactType.TRUTH, FactType.OPEN) else None
    is_number = fact.type in (FactType.COUNT, FactType.SHARE)
    if isinstance(value, int | float):
        usable = (is_number or fact.type is FactType.OPEN) and abs(value) < _LARGEST
        return Within((("==", value),)) if usable else None  # NaN and infinities are not below
    if isinstance(value, str):
        if is_number:
            return _comparisons(value)
        if fact.type is FactType.OPEN:
            return _comparisons(value) or Like(value)
        if fact.type is FactType.TEXT:
            return Like(value)
    return None


def _comparisons(text: str) -> Within | None:
    read = []
    for part in text.split(","):
        match = _COMPARISON.fullmatch(part)
        if match is None or len(match[2]) > _WIDEST:
            return None
        digits = match[2].replace("_", "")
        number = int(digits) if digits.lstrip("+-").isdecimal() else float(digits)
        if not abs(number) < _LARGEST:
            return None
        read.append((match[1], number))
    return Within(tuple(read))


def samples(fact: Fact, conditions: Sequence[Condition]) -> list[Value] | None:
    """Values of a fact, one at least for every way in which the conditions can turn out.

    None where the fact's values cannot be told.
    """
    if fact.type is FactType.TRUTH:
        return [True, False]
    if fact.type is FactType.TEXT:
        return None if fact.values is None else list(fact.values)
    if fact.type is FactType.OPEN:
        return None
    bounds = {
        number
        for condition in conditions
        if isinstance(condition, Within)
        for _, number in condition.comparisons
    }
    # Nothing changes between two bounds, so that one value there stands for all.
    if fact.type is FactType.COUNT:
        near = {math.floor(bound) + step for bound in bounds for step in (-1, 0, 1)}
        return [0, *sorted(number for number in near if number > 0)]
    shares = sorted({0.0, 1.0, *(float(bound) for bound in bounds if 0 < bound < 1)})
    return [*shares, *((low + high) / 2 for low, high in itertools.pairwise(shares))]
