# SPDX-License-Identifier: Apache-2.0
"""Named tuples do what typing's do, although most of their methods are shared."""

from __future__ import annotations

import copy
import inspect
import pickle
import types
import typing
from typing import Any

import pytest

from ferryvm import named_tuple

BODY = {
    "__annotations__": {"x": "int", "y": "str", "z": "tuple[int, ...]"},
    "__doc__": "Three fields.",
    "__str__": lambda self: f"<{self.x}>",
    "y": "a",
    "z": (),
}


def made(base: Any, **others: Any) -> Any:
    body = {**BODY, **others, "__module__": __name__}
    return types.new_class("Plain", (base,), exec_body=lambda names: names.update(body))


STANDARD, OWN = made(typing.NamedTuple), made(named_tuple.NamedTuple)
BOTH = pytest.mark.parametrize("kind", [STANDARD, OWN], ids=["typing", "own"])


class Point(named_tuple.NamedTuple):
    """At module level, where pickle finds it."""

    x: int
    y: int = 0

    def swapped(self) -> Point:
        """The point with its numbers exchanged."""
        return Point(self.y, self.x)


@BOTH
def test_it_is_a_tuple_of_its_fields(kind: Any) -> None:
    one = kind(1, z=(2,))
    assert one == (1, "a", (2,))
    assert (one.x, one.y, one.z) == one
    assert hash(one) == hash((1, "a", (2,)))
    assert isinstance(one, tuple)
    assert kind.x.__get__(one) == 1


@BOTH
def test_its_methods_are_those_of_typing(kind: Any) -> None:
    one = kind(1)
    assert repr(one) == "Plain(x=1, y='a', z=())"
    assert str(one) == "<1>"
    assert one._replace(y="b") == (1, "b", ())
    assert one._asdict() == {"x": 1, "y": "a", "z": ()}
    assert kind._make([3, 4, 5]) == (3, 4, 5)
    assert (kind._fields, kind._field_defaults) == (("x", "y", "z"), {"y": "a", "z": ()})
    assert kind.__match_args__ == ("x", "y", "z")
    assert kind.__doc__ == "Three fields."
    assert copy.deepcopy(one) == copy.copy(one) == one
    assert [*inspect.signature(kind).parameters] == ["x", "y", "z"]


@BOTH
def test_wrong_arguments_are_refused_by_name(kind: Any) -> None:
    for arguments in ((), (1, 2, 3, 4)):
        with pytest.raises(TypeError, match=r"Plain\.__new__\(\)"):
            kind(*arguments)
    with pytest.raises(TypeError, match="Expected 3 arguments, got 2"):
        kind._make([1, 2])
    with pytest.raises(ValueError, match=r"unexpected field names: \['w'\]"):
        kind(1)._replace(w=1)
    with pytest.raises(AttributeError):
        kind(1).x = 2
    with pytest.raises(AttributeError):
        kind(1).w = 2


def test_it_is_pickled_and_has_its_own_methods() -> None:
    assert pickle.loads(pickle.dumps(Point(1, 2))) == Point(1, 2)
    assert type(Point(1).swapped()) is Point


@pytest.mark.parametrize("base", [typing.NamedTuple, named_tuple.NamedTuple])
def test_a_field_without_a_default_does_not_follow_one_with_a_default(base: Any) -> None:
    with pytest.raises(TypeError, match="default"):
        made(base, __annotations__={"y": "int", "x": "int"})
