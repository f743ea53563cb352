# SPDX-License-Identifier: Apache-2.0
"""Records do what dataclasses do, although their methods are not generated."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from types import FunctionType
from typing import Any

import pytest

from ferryvm import record

FIELDS = ["name", "values", "secret", "seconds", "notes", "length"]


def made(module: Any, **options: Any) -> Any:
    """A class with fields of every kind; `module`: dataclasses or record."""

    class Plain:
        """Fields of every kind."""

        name: str
        values: tuple[int, ...]
        secret: str = module.field(default="", repr=False)
        seconds: float = module.field(default=0.0, compare=False)
        notes: list[str] = module.field(default_factory=list, compare=False)
        length: int = module.field(default=-1, init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "length", len(self.values))

    Plain.__qualname__ = "Plain"
    return module.dataclass(**options)(Plain)


STANDARD: Any = made(dataclasses, frozen=True)
RECORD: Any = made(record, frozen=True)
BOTH = pytest.mark.parametrize("kind", [STANDARD, RECORD], ids=["dataclass", "record"])
MODULES = pytest.mark.parametrize("module", [dataclasses, record])


@record.dataclass(frozen=True)
class Point:
    """At module level, where pickle finds it."""

    x: int
    y: int = 0


@BOTH
def test_arguments_and_defaults_become_fields(kind: Any) -> None:
    one = kind("a", (1, 2))
    assert (one.name, one.values, one.secret, one.notes, one.length) == ("a", (1, 2), "", [], 2)
    assert one.notes is not kind("a", ()).notes
    assert kind(name="a", values=(), notes=["x"]).notes == ["x"]


@BOTH
@pytest.mark.parametrize("arguments", [(), ("a",), ("a", (), "", 0.0, [], 7)], ids=len)
def test_missing_and_surplus_arguments_are_refused_by_name(kind: Any, arguments: Any) -> None:
    with pytest.raises(TypeError, match=r"Plain\.__init__\(\)|__init__\(\)"):
        kind(*arguments)


@BOTH
def test_equality_and_hash_are_of_the_compared_fields(kind: Any) -> None:
    one, other = kind("a", (1,), seconds=1.0), kind("a", (1,), seconds=2.0)
    assert one == other
    assert hash(one) == hash(other) == hash(("a", (1,), "", 1))
    assert one != kind("b", (1,))
    assert one != ("a", (1,), "", 1)
    assert one != type("Derived", (kind,), {})("a", (1,))


@BOTH
def test_no_attribute_is_set_or_deleted(kind: Any) -> None:
    one = kind("a", ())
    for name in ("name", "other"):
        with pytest.raises(
            dataclasses.FrozenInstanceError, match=f"cannot assign to field '{name}'"
        ):
            setattr(one, name, 1)
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot delete field '{name}'"):
            delattr(one, name)


@BOTH
def test_a_derived_class_may_have_attributes_of_its_own(kind: Any) -> None:
    one = type("Derived", (kind,), {})("a", ())
    one.other = 1
    del one.other
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.name = "b"
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.name


@BOTH
def test_a_frozen_dataclass_may_derive_from_it_and_no_other(kind: Any) -> None:
    body = {"__annotations__": {"more": int}, "more": 1}
    derived = dataclasses.dataclass(frozen=True)(type("Derived", (kind,), dict(body)))
    assert derived("a", (), more=2) == derived("a", (), more=2) != derived("a", ())
    with pytest.raises(TypeError):
        dataclasses.dataclass(type("Derived", (kind,), dict(body)))


@BOTH
def test_the_functions_of_dataclasses_take_it(kind: Any) -> None:
    one = kind("a", (1,), seconds=1.5)
    for replace in (dataclasses.replace, record.replace):
        assert replace(one, name="b") == kind("b", (1,))
        assert replace(one, name="b").seconds == 1.5
        with pytest.raises(ValueError, match="length"):
            replace(one, length=1)
        with pytest.raises(TypeError, match="other"):
            replace(one, other=1)
    assert dataclasses.asdict(one)["seconds"] == 1.5
    assert [field.name for field in dataclasses.fields(one)] == FIELDS
    assert kind.__match_args__ == ("name", "values", "secret", "seconds", "notes")
    assert copy.deepcopy(one) == one


def test_initialisers_are_generated_after_the_first_instances() -> None:
    kind: Any = made(record, frozen=True)
    derived = type("Derived", (kind,), {})
    for number in range(8):
        assert type(vars(kind)["__init__"]) is not FunctionType or number > 3
        one = derived("a", (number,), seconds=1.5)
        assert (one.name, one.values, one.seconds, one.length, one.notes) == (
            "a",
            (number,),
            1.5,
            1,
            [],
        )
    assert type(vars(kind)["__init__"]) is FunctionType
    assert "__init__" not in vars(derived)


@pytest.mark.parametrize("number", [0, 8])
@pytest.mark.parametrize(
    ("arguments", "named"),
    [(("a", (), "", 0.0, [], 7), {}), (("a",), {"name": "b"}), (("a",), {"length": 1}), ((), {})],
)
def test_wrong_arguments_are_refused_from_the_first_instance_on(
    number: int, arguments: Any, named: Any
) -> None:
    kind: Any = made(record, frozen=True)
    for _ in range(number):
        kind("a", ())
    with pytest.raises(TypeError, match=r"Plain\.__init__\(\) (takes|got|missing)"):
        kind(*arguments, **named)


@BOTH
def test_a_signature_names_the_fields(kind: Any) -> None:
    parameters = inspect.signature(kind).parameters
    assert [*parameters] == ["name", "values", "secret", "seconds", "notes"]


def test_the_text_is_that_of_a_dataclass() -> None:
    assert repr(RECORD("a", (1,))) == repr(STANDARD("a", (1,)))
    assert repr(Point(1)) == "Point(x=1, y=0)"


def test_it_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Point(1, 2))) == Point(1, 2)


def test_methods_of_its_own_stay() -> None:
    def own(self: object) -> str:
        return "own"

    body = {"__annotations__": {"x": int}, "__repr__": own, "__module__": __name__}
    kind: Any = record.dataclass(frozen=True)(type("Own", (), body))
    assert repr(kind(1)) == "own"


@MODULES
def test_one_that_is_not_frozen_changes_and_has_no_hash(module: Any) -> None:
    one, other = made(module)("a", (1,)), made(module, eq=False)("a", (1,))
    one.name = "b"
    del one.secret
    assert one.name == "b"
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)
    assert other in [other]
    assert other != type(other)("a", (1,))
    assert isinstance(hash(other), int)


@MODULES
def test_derived_ones_have_the_fields_of_both(module: Any) -> None:
    body = {"__annotations__": {"more": int}, "more": 1, "__module__": __name__}
    base = made(module)
    derived = module.dataclass(type("Derived", (base,), dict(body)))
    one = derived("a", (1,), more=2)
    assert (one.name, one.length, one.more) == ("a", 1, 2)
    assert one == derived("a", (1,), more=2) != derived("a", (1,))
    assert one != base("a", (1,))


def test_a_field_or_base_of_dataclasses_is_refused() -> None:
    body = {"__annotations__": {"x": int}, "x": dataclasses.field(default=1)}
    with pytest.raises(TypeError, match=r"Mixed.x: record.field makes"):
        record.dataclass(type("Mixed", (), body))()
    with pytest.raises(TypeError, match=r"Derived derives from Plain, a dataclass"):
        record.dataclass(type("Derived", (STANDARD,), {}))
