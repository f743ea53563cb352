# SPDX-License-Identifier: Apache-2.0
"""The values of plain form that are printed inside of the expression that uses them, not as
constants with a name.

    const double v3 = x[i];                      const double v4 = a * x[i];
    const double v4 = a * v3;             ─>     y[i] = canonical_f64(y[i] + v4);
    const double v5 = y[i];
    const double v6 = v5 + v4;
    y[i] = canonical_f64(v6);

A product that is added has a name still: a compiler that may fuse both within an expression, as
C11 6.5 allows, rounds once.
"""

from __future__ import annotations

from collections import Counter

from ferryvm.ir.graph import Block, Body, Operation, Value
from ferryvm.ir.operation import PURE

LONGEST = 60
"""Characters of an expression inside of another, at most."""

_LOADS = frozenset({"array_load", "local_get"})

_ORDINARY = PURE | _LOADS | {"error_if"}
"""Operations that change no memory."""

_SIGNED = frozenset({"extend_s", "shr_s", "div_s", "rem_s", "to_int_s"})
"""Operations that are casts of signed numbers, of which GCC's -Wconversion warns in arithmetic."""

_USERS = PURE | {"array_load", "array_store", "local_set", "error_if"}
_USERS |= {"jump", "branch", "switch", "return"}
"""Operations whose texts have each operand once."""


def inlined_values(body: Body) -> set[Value]:
    """Values that are used once, by an operation of their block, and of which the text computes the
    same there."""
    uses = Counter(
        value
        for block in body.blocks
        for operation in (*block.operations, block.end)
        for value in operation.uses()
    )
    found: set[Value] = set()
    for block in body.blocks:
        _add(block, uses, found)
    return found


def _add(block: Block, uses: Counter[Value], found: set[Value]) -> None:
    operations = block.operations
    users: dict[Value, tuple[Operation, int]] = {}
    """The user of each value, and the place of the statement which that is printed in."""
    for value in block.end.uses():
        users[value] = block.end, len(operations)
    changed = len(operations)
    """The place of the next operation that changes memory."""
    for place in range(len(operations) - 1, -1, -1):
        operation = operations[place]
        if operation.name not in _ORDINARY:
            changed = place
        printed = place
        if uses[operation] == 1 and operation in users:
            user, at = users[operation]
            if _joins(operation, user) and (operation.name in PURE or at <= changed):
                found.add(operation)
                printed = at
        for value in operation.uses():
            users[value] = operation, printed


def _joins(operation: Operation, user: Operation) -> bool:
    """True if an operation may be printed inside of its user."""
    if user.name not in _USERS or operation.name not in PURE | _LOADS:
        return False
    if operation.name in _LOADS:
        return user.name != "return"  # results may be stored where it reads
    if user.name == "select" and operation is not user.arguments[0]:
        return False  # a compiler computes values with names in front of a selection
    if operation.name in _SIGNED:
        return user.name not in PURE or user.name == "compare"
    return not (operation.name == "fmul" and user.name in ("fadd", "fsub"))


def operand(text: str) -> str:
    """An expression as an operand of another: with parentheses if it has an operator outside of
    any."""
    depth = 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == " " and depth == 0:
            return f"({text})"
    return text


def tidy(line: str) -> str:
    """A line of code without parentheses that enclose a whole argument, index or side of an
    assignment."""
    open_: list[int] = []
    gone: set[int] = set()
    for place, letter in enumerate(line):
        if letter == "(":
            open_.append(place)
        elif letter == ")":
            start = open_.pop()
            before, after = line[:start], line[place + 1 :]
            is_alone = before.endswith(("(", "[", ", ", " = ", "return "))
            if is_alone and after[:1] in (")", "]", ",", ";"):
                gone |= {start, place}
    return "".join(letter for place, letter in enumerate(line) if place not in gone)
