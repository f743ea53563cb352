# SPDX-License-Identifier: Apache-2.0
"""Static types and their unification.

    type = i32 | i64 | f32 | f64 | (vector element) | nothing | error | unknown

An Unknown is a type variable with a *domain*: the literal `1` may be any number, an operand of `&`
any integer. Unifying two unknowns makes them one variable with the intersection of their domains; a
domain of one type determines it. Inference is monomorphic: each unknown becomes one type, and
undetermined ones take the default (i64, or f64 if only floats are possible).
"""

from __future__ import annotations

from ferryvm import record
from ferryvm.isa.type import Type

NUMBERS = frozenset({"i32", "i64", "f32", "f64"})
INTEGERS = frozenset({"i32", "i64"})
FLOATS = frozenset({"f32", "f64"})
VALUES = NUMBERS | {"vector"}
RESULTS = VALUES | {"nothing"}
ELEMENT_NAMES = frozenset({"i8", "u8", "i16", "u16", "i32", "u32", "i64", "f32", "f64"})


@record.dataclass(frozen=True)
class Named:
    """A type that is identified by its name: a machine type, an element type, `nothing` or
    `error`."""

    name: str


@record.dataclass(frozen=True)
class VectorOf:
    """A vector; at run time its address, an i64."""

    element: SkiffType


@record.dataclass(eq=False)
class Unknown:
    """A type variable; `link` is its solution."""

    domain: frozenset[str]
    link: SkiffType | None = None


SkiffType = Named | VectorOf | Unknown

NOTHING = Named("nothing")
ERROR = Named("error")
"""The type of a form with a fault; it unifies with every type, so one fault is reported once."""
I32, I64, F32, F64 = (Named(str(t)) for t in Type)


def of(type_: Type) -> Named:
    """The static type of a machine type."""
    return Named(str(type_))


def find(type_: SkiffType) -> SkiffType:
    """The representative of a type: the type itself if it is known, else a variable."""
    passed = []
    while isinstance(type_, Unknown) and type_.link is not None:
        passed.append(type_)
        type_ = type_.link
    for unknown in passed:  # path compression
        unknown.link = type_
    return type_


def _kind(type_: Named | VectorOf) -> str:
    return "vector" if isinstance(type_, VectorOf) else type_.name


def _narrow(unknown: Unknown, domain: frozenset[str]) -> None:
    unknown.domain = domain
    if len(domain) == 1:
        unknown.link = Named(next(iter(domain)))


def unify(a: SkiffType, b: SkiffType) -> bool:
    """True if two types unify; if so they are one type from now on."""
    a, b = find(a), find(b)
    if a is b or ERROR in (a, b):
        return True
    if isinstance(a, Unknown) and isinstance(b, Unknown):
        common = a.domain & b.domain
        if not common:
            return False
        a.link = b
        _narrow(b, common)
        return True
    if isinstance(b, Unknown):
        a, b = b, a
    if isinstance(a, Unknown):
        assert not isinstance(b, Unknown)
        if _kind(b) not in a.domain:
            return False
        a.link = b
        return True
    if isinstance(a, VectorOf) and isinstance(b, VectorOf):
        return unify(a.element, b.element)
    return a == b


def default(type_: SkiffType) -> SkiffType:
    """The final type after inference; an unknown becomes its domain's default."""
    type_ = find(type_)
    if isinstance(type_, Unknown):
        type_.link = Named(preferred(type_.domain))
        return type_.link
    if isinstance(type_, VectorOf):
        return VectorOf(default(type_.element))
    return type_


def machine_type(type_: SkiffType) -> Type:
    """The type of the slot that holds a value of this type."""
    final = default(type_)
    return Type.I64 if isinstance(final, VectorOf) else Type(getattr(final, "name", ""))


_PHRASES = {
    NUMBERS: "a number",
    INTEGERS: "an integer",
    FLOATS: "a float",
    VALUES: "a value",
    RESULTS: "a value",
}


def conversion(type_: SkiffType) -> str:
    """The conversion that makes a number of this type."""
    found = find(type_)
    return preferred(found.domain) if isinstance(found, Unknown) else describe(found)


def preferred(domain: frozenset[str]) -> str:
    """The name in a domain that is the default of an unknown."""
    names = ("i64", "f64", "i32", "f32", "nothing")
    return next(name for name in names if name in domain)


def describe(type_: SkiffType) -> str:
    """The type as messages name it."""
    type_ = find(type_)
    if isinstance(type_, VectorOf):
        element = find(type_.element)
        return f"(vector {element.name})" if isinstance(element, Named) else "a vector"
    if isinstance(type_, Unknown):
        return _PHRASES.get(type_.domain) or " or ".join(sorted(type_.domain))
    return "no value" if type_ == NOTHING else type_.name
