# SPDX-License-Identifier: Apache-2.0
"""Scopes: the meaning of names, and the parsing of names and types.

Globals are visible in every function, wherever they are defined; top-level forms see variables
only after their definition. A function's body is one scope (its parameters and `define`s), a
`let` opens another. Inner names hide outer ones; built-in names cannot be defined at all.
"""

from __future__ import annotations

from collections.abc import Iterable

from ferryvm.errors import suggestion
from ferryvm.skiff.array_form import ARRAY_FORMS
from ferryvm.skiff.fault import Faults, SourceSpan
from ferryvm.skiff.number import looks_numeric, parse_number
from ferryvm.skiff.operator import CONVERSIONS, DIRECT, ELEMENTS, OPERATORS
from ferryvm.skiff.reader import Atom, Datum
from ferryvm.skiff.text import is_string
from ferryvm.skiff.tree import Constant, Function, StructOperation, Variable
from ferryvm.skiff.type import (
    ANYREF,
    ARRAYREF,
    ERROR,
    I31REF,
    STRING,
    ArrayOf,
    Named,
    SkiffType,
    Struct,
)

FORMS = {
    "define": "(define name value) or (define (name parameter ...) [-> type] form ...)",
    "define-constant": "(define-constant name value)",
    "define-struct": "(define-struct name field ...) or (define-struct (name parent) field ...), "
    "where a field is name or (name type)",
    "host-function": "(host-function name (type ...) [type])",
    "set!": "(set! name value)",
    "if": "(if condition then [else])",
    "cond": "(cond (condition form ...) ... [(else form ...)])",
    "while": "(while condition form ...)",
    "for-each-item": "(for-each-item count (function argument ...)) or "
    "(for-each-item (size ...) (function argument ...))",
    "for-each-group": "(for-each-group count (function argument ...)) or "
    "(for-each-group (count size) (function argument ...)), where an argument may be "
    "(group-array element [length])",
    "barrier": "(barrier)",
    "group-reduce": "(group-reduce operator value item array) or "
    "(group-reduce function value item array)",
    "group-scan": "(group-scan operator value item array) or "
    "(group-scan function value item array)",
    "group-scan-before": "(group-scan-before operator value item array)",
    "group-broadcast": "(group-broadcast value from item array)",
    "map": "(map function array ...) or (map (function argument ...) array ...)",
    "map!": "(map! to function array ...) or (map! to (function argument ...) array ...)",
    "scan": "(scan operator array) or (scan function array)",
    "reduce": "(reduce operator [initial] array) or (reduce function initial array)",
    "begin": "(begin form ...)",
    "throw": "(throw value)",
    "try": "(try form ... [(catch (name) form ...)] [(finally form ...)]), with at least one of both",
    "let": "(let ((name value) ...) form ...)",
    "and": "(and condition ...)",
    "or": "(or condition ...)",
    "not": "(not condition)",
    "print!": "(print! value ...)",
    "write-byte!": "(write-byte! value)",
    "write-string!": "(write-string! string)",
    "enter-jit": "(enter-jit ((form ...) ...)), one list of forms",
    "null?": "(null? reference)",
    "eq?": "(eq? reference reference)",
    "is?": "(is? type reference)",
    "cast": "(cast type reference)",
    **{form.name: f"({form.name} {form.usage})" for form in ARRAY_FORMS.values()},
}
"""The special forms and their syntax."""

_MARKS = {"else", "->", "catch", "finally", "null"}
_TYPES: dict[str, SkiffType] = {
    **{name: Named(name) for name in CONVERSIONS},
    "string": STRING,
    "anyref": ANYREF,
    "arrayref": ARRAYREF,
    "i31ref": I31REF,
}
"""The types that have names in every text."""
BUILT_IN = {*FORMS, *OPERATORS, *CONVERSIONS, *DIRECT, *ELEMENTS, *_MARKS, *_TYPES}

Global = Variable | Constant | Function | StructOperation


def show(datum: Datum) -> str:
    """A datum as messages name it."""
    if not isinstance(datum, Atom):
        return "a list"
    kind = "the number " if parse_number(datum.text) else ""
    if is_string(datum.text):
        kind = "the string "
    text = datum.text if len(datum.text) <= 40 else datum.text[:37] + "..."
    return f"{kind}'{text}'"


def _is_named(datum: Datum, name: str) -> bool:
    return isinstance(datum, Atom) and datum.text == name


class Scope:
    """The names visible at one point of the text, and the enclosing function."""

    def __init__(self, faults: Faults, globals_: dict[str, Global], main: Function) -> None:
        self.faults = faults
        self.globals = globals_
        self.structs: dict[str, Struct] = {}
        """The structs that types can name."""
        self.function = main
        self.inner: list[dict[str, Variable]] = []
        self.statics: list[Variable] = []
        self.caught: list[Variable] = []
        """Variables of handlers whose types are stated."""
        self.defined_here: dict[str, SourceSpan] = {}
        self.temporaries = 0

    def enter(self, function: Function) -> None:
        """Continue in the body of another function."""
        self.function = function
        self.inner = [{variable.name: variable for variable in function.parameters}]

    def lookup(self, name: str) -> Global | None:
        """The variable, function or built-in that the name refers to in this scope."""
        for names in reversed(self.inner):
            if name in names:
                return names[name]
        return self.globals.get(name)

    def near(self, name: str, kinds: tuple[type, ...], others: Iterable[str] = ()) -> str:
        """A suggestion for an unknown name."""
        inner = (key for names in self.inner for key in names)
        outer = (key for key, value in self.globals.items() if isinstance(value, kinds))
        return suggestion(name, [*inner, *outer, *others])

    def name(self, datum: Datum, what: str) -> str | None:
        """The name that a datum defines, None (and a fault) if it is not a name."""
        if not isinstance(datum, Atom):
            self.faults.add(datum.place, f"expected the name of a {what}, found a list")
        elif parse_number(datum.text) or looks_numeric(datum.text) or datum.text[0] in '#"':
            self.faults.add(datum.place, f"expected the name of a {what}, found {show(datum)}")
        elif datum.text in BUILT_IN:
            self.faults.add(datum.place, f"'{datum.text}' is built in and cannot be defined")
        else:
            return datum.text
        return None

    def define_global(self, name: str, place: SourceSpan) -> bool:
        """True if the text defines the name for the first time; otherwise a fault is recorded."""
        first = self.defined_here.setdefault(name, place)
        if first is not place:
            line = first.position.line
            self.faults.add(place, f"'{name}' is already defined in line {line}")
        return first is place

    def define(self, name: str, place: SourceSpan) -> Variable:
        """A new variable in the innermost scope."""
        variable = Variable(name, place, is_static=not self.inner)
        if not self.inner:
            if self.define_global(name, place):
                self.globals[name] = variable
            self.statics.append(variable)
            return variable
        earlier = self.inner[-1].get(name)
        if earlier is not None:
            line = earlier.place.position.line
            self.faults.add(place, f"'{name}' is already defined in line {line}")
        self.inner[-1][name] = variable
        self.function.locals.append(variable)
        return variable

    def temporary(self, place: SourceSpan) -> Variable:
        """A new local without a name."""
        self.temporaries += 1
        variable = Variable(f"temporary {self.temporaries}", place, is_static=False)
        self.function.locals.append(variable)
        return variable

    def type(self, datum: Datum) -> SkiffType:
        """The type that an annotation denotes."""
        if isinstance(datum, Atom):
            found = self.structs.get(datum.text) or _TYPES.get(datum.text)
            if found is not None:
                return found
            if datum.text in self.faults.lost_names:
                return ERROR
        elif len(datum.items) == 2 and _is_named(datum.items[0], "array"):
            return ArrayOf(self.element(datum.items[1]))
        near = ""
        if isinstance(datum, Atom):
            near = suggestion(datum.text, [*self.structs, *_TYPES])
            if datum.text in ELEMENTS:
                near = ", a type of elements only"
        message = (
            "expected a type (i32 i64 f32 f64 (array element) string anyref, or a struct), "
            f"found {show(datum)}{near}"
        )
        self.faults.add(datum.place, message)
        return ERROR

    def element(self, datum: Datum) -> SkiffType:
        """The type of an array's elements that a datum denotes."""
        if isinstance(datum, Atom):
            if datum.text in ELEMENTS:
                return Named(datum.text)
            if datum.text not in self.structs and datum.text not in _TYPES:
                if datum.text in self.faults.lost_names:
                    return ERROR
                allowed = " ".join(ELEMENTS)
                near = suggestion(datum.text, [*self.structs, *ELEMENTS, *_TYPES])
                message = (
                    f"expected the type of elements ({allowed}, or of references), "
                    f"found {show(datum)}{near}"
                )
                self.faults.add(datum.place, message)
                return ERROR
        return self.type(datum)
