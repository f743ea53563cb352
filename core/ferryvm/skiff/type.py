# SPDX-License-Identifier: Apache-2.0
"""Static types and their unification.

    type = i32 | i64 | f32 | f64 | (array element) | struct
         | anyref | arrayref | i31ref | nothing | error | unknown

An Unknown is a type variable with a *domain*: the literal `1` may be any number, an operand of `&`
any integer, `null` any reference. Unifying two unknowns makes them one variable with the
intersection of their domains; a domain of one named type determines it. Inference is monomorphic:
each unknown becomes one type, and undetermined ones take the default (i64, f64 if only floats are
possible, anyref for references).

Subtypes are no part of unification. `fits` is: a value of a type that is known fits where a
supertype that is known is expected.
"""

from __future__ import annotations

from ferryvm import record
from ferryvm.isa.type import Reference, Type
from ferryvm.skiff.fault import SourceSpan

NUMBERS = frozenset({"i32", "i64", "f32", "f64"})
INTEGERS = frozenset({"i32", "i64"})
FLOATS = frozenset({"f32", "f64"})
REFERENCES = frozenset({"array", "struct", "anyref", "arrayref", "i31ref"})
VALUES = NUMBERS | REFERENCES
RESULTS = VALUES | {"nothing"}
ELEMENT_NAMES = frozenset({"i8", "u8", "i16", "u16", "i32", "u32", "i64", "f32", "f64"})
ELEMENTS = ELEMENT_NAMES | REFERENCES
UPDATED_ELEMENTS = frozenset({"i32", "u32", "i64"})
"""Elements that can be updated atomically."""
_CLASSES = frozenset({"array", "struct"})
"""Members of domains that stand for many types."""


@record.dataclass(frozen=True)
class Named:
    """A type that is identified by its name: a machine type, an element type, a reference type
    that every program has, `nothing` or `error`."""

    name: str


@record.dataclass(frozen=True)
class ArrayOf:
    """References to arrays."""

    element: SkiffType


@record.dataclass(eq=False)
class Field:
    """A field of a struct."""

    name: str
    type: SkiffType
    place: SourceSpan


@record.dataclass(eq=False)
class Struct:
    """References to structs of one definition."""

    name: str
    place: SourceSpan
    parent: Struct | None = None
    fields: list[Field] = record.field(default_factory=list)
    """All of them, those of the parent first."""
    is_broken: bool = False
    """True if its definition has a fault; then its uses are not checked."""


@record.dataclass(eq=False)
class Unknown:
    """A type variable; `link` is its solution."""

    domain: frozenset[str]
    link: SkiffType | None = None


SkiffType = Named | ArrayOf | Struct | Unknown

NOTHING = Named("nothing")
ERROR = Named("error")
"""The type of a form with a fault; it unifies with every type, so one fault is reported once."""
I32, I64, F32, F64 = (Named(str(t)) for t in Type)
ANYREF, ARRAYREF, I31REF = Named("anyref"), Named("arrayref"), Named("i31ref")
STRING = ArrayOf(Named("u8"))
"""The type of string literals."""


def of(type_: Type | Reference) -> SkiffType:
    """The static type of a machine type that every program has."""
    text = str(type_)
    return ArrayOf(Named(text[:-2])) if text.endswith("[]") else Named(text)


def find(type_: SkiffType) -> SkiffType:
    """The representative of a type: the type itself if it is known, else a variable."""
    passed = []
    while isinstance(type_, Unknown) and type_.link is not None:
        passed.append(type_)
        type_ = type_.link
    for unknown in passed:  # path compression
        unknown.link = type_
    return type_


def _kind(type_: Named | ArrayOf | Struct) -> str:
    if isinstance(type_, Named):
        return type_.name
    return "array" if isinstance(type_, ArrayOf) else "struct"


def _narrow(unknown: Unknown, domain: frozenset[str]) -> None:
    unknown.domain = domain
    if len(domain) == 1 and not domain <= _CLASSES:
        unknown.link = Named(next(iter(domain)))


def _contains(type_: SkiffType, unknown: Unknown) -> bool:
    """True if a type is an array of the unknown, however deep."""
    while isinstance(type_, ArrayOf):
        type_ = find(type_.element)
    return type_ is unknown


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
        if _kind(b) not in a.domain or _contains(b, a):
            return False
        a.link = b
        return True
    if isinstance(a, ArrayOf) and isinstance(b, ArrayOf):
        return unify(a.element, b.element)
    return a == b


def is_reference(type_: SkiffType) -> bool:
    """True for a type that is known to be one of references."""
    found = find(type_)
    if isinstance(found, Unknown):
        return found.domain <= REFERENCES
    return _kind(found) in REFERENCES


def is_subtype(type_: SkiffType, of: SkiffType) -> bool:
    """True if the first type, which is known, is the second or a subtype of it."""
    type_, of = find(type_), find(of)
    if of == ANYREF:
        return not isinstance(type_, Unknown) and is_reference(type_)
    if of == ARRAYREF:
        return isinstance(type_, ArrayOf)
    while isinstance(type_, Struct) and type_ is not of:
        if type_.parent is None:
            return False
        type_ = type_.parent
    return type_ is of or (not isinstance(type_, Unknown) and type_ == of)


def fits(expected: SkiffType, found: SkiffType) -> bool:
    """True if a value of the type found can stand where the other type is expected: it is a
    subtype, or the two unify."""
    return is_subtype(found, expected) or unify(expected, found)


def join(a: SkiffType, b: SkiffType) -> SkiffType | None:
    """The type of a value that has either type: their nearest common parent for two structs; None
    if there is none."""
    a, b = find(a), find(b)
    ancestor = a if isinstance(a, Struct) and isinstance(b, Struct) else None
    while ancestor is not None:
        if is_subtype(b, ancestor):
            return ancestor
        ancestor = ancestor.parent
    if fits(a, b):
        return a
    return b if fits(b, a) else None


def default(type_: SkiffType) -> SkiffType:
    """The final type after inference; an unknown becomes its domain's default."""
    type_ = find(type_)
    if isinstance(type_, Unknown):
        type_.link = Named(preferred(type_.domain))
        return type_.link
    if isinstance(type_, ArrayOf):
        return ArrayOf(default(type_.element))
    return type_


def number_type(type_: SkiffType) -> Type:
    """The machine's type for a type of numbers."""
    return Type(getattr(default(type_), "name", ""))


_PHRASES = {
    NUMBERS: "a number",
    INTEGERS: "an integer",
    FLOATS: "a float",
    REFERENCES: "a reference",
    VALUES: "a value",
    RESULTS: "a value",
}


def conversion(type_: SkiffType) -> str:
    """The conversion that makes a number of this type."""
    found = find(type_)
    return preferred(found.domain) if isinstance(found, Unknown) else describe(found)


def preferred(domain: frozenset[str]) -> str:
    """The name in a domain that is the default of an unknown."""
    names = ("i64", "f64", "i32", "f32", "anyref", "nothing")
    return next((name for name in names if name in domain), "anyref")


def describe(type_: SkiffType) -> str:
    """The type as messages name it."""
    type_ = find(type_)
    if isinstance(type_, ArrayOf):
        element = find(type_.element)
        if isinstance(element, Unknown) and element.domain == UPDATED_ELEMENTS:
            return "an array of i32, u32 or i64"
        return "an array" if _is_open(type_.element) else f"(array {describe(type_.element)})"
    if isinstance(type_, Struct):
        return type_.name
    if isinstance(type_, Unknown):
        return _PHRASES.get(type_.domain) or " or ".join(sorted(type_.domain))
    return "no value" if type_ == NOTHING else type_.name


def _is_open(type_: SkiffType) -> bool:
    """True if a type is not known, or one of arrays whose elements are not."""
    found = find(type_)
    while isinstance(found, ArrayOf):
        found = find(found.element)
    return isinstance(found, Unknown)
