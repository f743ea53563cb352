# SPDX-License-Identifier: Apache-2.0
"""Random subjects and patterns of `match`, for random Python functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.generate.python_expression import PythonExpressions


@dataclasses.dataclass(frozen=True)
class RandomCase:
    """A pattern, and the types of the variables that it assigns."""

    pattern: str
    names: dict[str, str]
    matches_all: bool = False


def subject(write: PythonExpressions, chance: Chance) -> tuple[str, str]:
    """An expression, and its type: `int`, `number`, `ints`, or `two` for a tuple of two
    integers."""
    lists, pairs = write.names("ints"), write.names("pair")
    if lists and chance.flip(0.3):
        return chance.pick(lists), "ints"
    if pairs and chance.flip(0.3):
        return chance.pick(pairs), "pair"
    if chance.flip(0.3):
        return f"{write.integer(1)}, {write.integer(1)}", "two"
    if chance.flip(0.2):
        return write.number(1), "number"
    return write.integer(1), "int"


def cases(of: str, chance: Chance, fresh: Callable[[], str]) -> Iterator[RandomCase]:
    """Patterns for a subject of a type, the last one of which may match all values."""
    for _ in range(chance.between(1, 3)):
        yield _case(of, chance, fresh)
    if chance.flip(0.4):
        name = fresh()
        is_named = of in ("int", "number") and chance.flip(0.5)
        yield RandomCase(name if is_named else "_", {name: of} if is_named else {}, True)


def _number(chance: Chance) -> str:
    return str(chance.between(-3, 9))


def _case(of: str, chance: Chance, fresh: Callable[[], str]) -> RandomCase:
    if of in ("int", "number"):
        return _of_number(of, chance, fresh)
    if of == "ints":
        return _of_list(chance, fresh)
    one, two = fresh(), fresh()
    types = ("int", "float" if of == "pair" else "int")
    if chance.flip(0.25):
        return RandomCase(f"({_number(chance)}, {one}) | ({one}, {_number(chance)})", {})
    if chance.flip(0.4):
        return RandomCase(f"{_number(chance)}, {two}", {two: types[1]})
    if chance.flip(0.3):
        return RandomCase(f"[{one}, *_]", {one: types[0]})
    return RandomCase(f"({one}, {two}, 1)" if chance.flip(0.1) else f"(int({one}), _)", {})


def _of_number(of: str, chance: Chance, fresh: Callable[[], str]) -> RandomCase:
    if chance.flip(0.3):
        return RandomCase(" | ".join(_number(chance) for _ in range(chance.between(2, 4))), {})
    if chance.flip(0.3):
        name = fresh()
        kind = chance.pick(("int", "float", "bool"))
        return RandomCase(f"{kind}({name})", {name: "int"} if kind == of == "int" else {})
    if chance.flip(0.2):
        return RandomCase(chance.pick(("None", "True", "'x'", "(0, 1)", "[]")), {})
    return RandomCase(_number(chance), {})


def _of_list(chance: Chance, fresh: Callable[[], str]) -> RandomCase:
    one, two = fresh(), fresh()
    if chance.flip(0.2):
        return RandomCase("[]", {})
    if chance.flip(0.3):
        return RandomCase(f"[{one}]", {one: "int"})
    if chance.flip(0.3):
        return RandomCase(f"[{one}, {two}]", {one: "int", two: "int"})
    if chance.flip(0.5):
        return RandomCase(f"[{one}, *{two}]", {one: "int", two: "ints"})
    return RandomCase(f"[{_number(chance)}, *_, {one}]", {one: "int"})
