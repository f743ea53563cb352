# SPDX-License-Identifier: Apache-2.0
"""Types of the forms of references: arrays, structs, strings, tests.

The elements of an array can be narrower than the values read from it, so the two types are linked
by a *view*, which is resolved when one of them is known.
"""

from __future__ import annotations

from typing import Protocol

from ferryvm.named_tuple import NamedTuple
from ferryvm.skiff import tree
from ferryvm.skiff.array_form import Role
from ferryvm.skiff.fault import Faults, SourceSpan
from ferryvm.skiff.object_form import owner
from ferryvm.skiff.operator import ELEMENTS as NUMBER_ELEMENTS
from ferryvm.skiff.tree import Node, StructVerb
from ferryvm.skiff.type import (
    ERROR,
    I32,
    I64,
    NOTHING,
    NUMBERS,
    REFERENCES,
    STRING,
    ArrayOf,
    Named,
    SkiffType,
    Unknown,
    default,
    describe,
    find,
    fits,
    is_reference,
    is_subtype,
    of,
    unify,
)


class Inference(Protocol):
    """The part of the inference that these forms use."""

    faults: Faults

    def operand(self, node: Node) -> SkiffType:
        """The type of a form that must have a value."""

    def function(self, function: tree.Function) -> None:
        """Infer a function's body and its result."""

    def expect(self, node: Node, expected: SkiffType, what: str) -> bool:
        """Infer a form and check that its value fits the expected type."""


class View(NamedTuple):
    """An element type that is not known yet, and the type of the values read or stored."""

    element: SkiffType
    value: SkiffType
    is_stored: bool
    place: SourceSpan


def value_type(element: SkiffType) -> SkiffType:
    """The type of the values that elements of a known type are read and stored as."""
    number = NUMBER_ELEMENTS.get(element.name) if isinstance(element, Named) else None
    return of(number) if number is not None else element


class ObjectRules:
    """Rules for the nodes of references."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.views: list[View] = []

    # Arrays

    def on_array(self, node: tree.OnArray) -> SkiffType:
        """A form of arrays."""
        form, expect = node.form, self.inference.expect
        array = ArrayOf(node.element)
        roles = form.roles_of(len(node.operands))
        assert roles is not None
        has_element = True  # False: an array has other ones, so nothing is known of the values
        for number, (operand, role) in enumerate(zip(node.operands, roles, strict=True), 1):
            if role is Role.ARRAY:
                has_element &= expect(operand, array, f"operand {number} of '{form.name}'")
            elif role is Role.INDEX:
                whats = {"make-array": "length", "index-2d": "index or length"}
                expect(operand, I64, f"the {whats.get(form.name, 'index')} of an array")
            elif not has_element:
                self.inference.operand(operand)
            else:
                value = self.value(node.element, True, operand.place)
                expect(operand, value, f"an element of {describe(array)}")
        results: dict[Role, SkiffType] = {
            Role.ARRAY: array, Role.INDEX: I64, Role.BOOLEAN: I32, Role.NOTHING: NOTHING,
        }  # fmt: skip
        if form.result is Role.VALUE and not has_element:
            return ERROR
        if form.result is Role.VALUE:
            return self.value(node.element, False, node.operands[0].place)
        return results[form.result]

    def value(self, element: SkiffType, is_stored: bool, place: SourceSpan) -> SkiffType:
        """The type of the values that elements are read or stored as, here."""
        known = find(element)
        if not isinstance(known, Unknown):
            return value_type(known)
        value = Unknown(NUMBERS | REFERENCES)
        self.views.append(View(element, value, is_stored, place))
        return value

    def settle_views(self) -> None:
        """Resolve every open element type and the type of its values."""
        while self.views:
            open_views = []
            for view in self.views:
                if isinstance(find(view.element), Unknown):
                    open_views.append(view)
                else:
                    self._settle(view)
            if len(open_views) == len(self.views):
                # No form creates these arrays, so uses determine their elements, the use with the
                # fewest choices first.
                view = min(open_views, key=lambda view: _choices(view.value))
                if not unify(view.element, default(view.value)):
                    message = f"an array cannot have elements of {describe(view.value)}"
                    self.inference.faults.add(view.place, message)
                    open_views.remove(view)
            self.views = open_views

    def _settle(self, view: View) -> None:
        stored = value_type(find(view.element))
        expected, found = (stored, view.value) if view.is_stored else (view.value, stored)
        if not fits(expected, found):
            message = (
                f"an element of {describe(ArrayOf(view.element))} is read as {describe(stored)}, "
                f"and used as {describe(view.value)} here"
            )
            self.inference.faults.add(view.place, message)

    # Structs and references of any type

    def on_struct(self, node: tree.OnStruct) -> SkiffType:
        """A struct is made, or one of its fields read or set."""
        operation, expect = node.operation, self.inference.expect
        struct, name = operation.struct, operation.name
        if operation.verb is StructVerb.MAKE:
            for operand, field in zip(node.operands, struct.fields, strict=True):
                expect(operand, field.type, f"field '{field.name}' of '{name}'")
            return struct
        field = struct.fields[operation.field]
        first = "the operand" if operation.verb is StructVerb.GET else "the first operand"
        expect(node.operands[0], owner(struct, operation.field), f"{first} of '{name}'")
        if operation.verb is StructVerb.GET:
            return field.type
        expect(node.operands[1], field.type, f"the value of '{name}'")
        return NOTHING

    def null(self, node: tree.Null) -> SkiffType:
        """Null is a reference of the type that its context expects."""
        return Unknown(REFERENCES)

    def same(self, node: tree.Same) -> SkiffType:
        """`eq?` and `null?`."""
        name = "eq?" if len(node.operands) == 2 else "null?"
        for operand in node.operands:
            self.inference.expect(operand, Unknown(REFERENCES), f"an operand of '{name}'")
        return I32

    def type_test(self, node: tree.TypeTest) -> SkiffType:
        """`is?`, and the predicate of a struct."""
        self._tested(node.operand, node.of, node.form)
        return I32

    def cast(self, node: tree.Cast) -> SkiffType:
        """`cast`."""
        if isinstance(node.operand, tree.Null):
            self.inference.expect(node.operand, node.to, "the operand of 'cast'")
            return node.to
        self._tested(node.operand, node.to, "cast")
        return node.to

    def _tested(self, operand: Node, to: SkiffType, form: str) -> None:
        found = find(self.inference.operand(operand))
        message = None
        if to == ERROR or found == ERROR:
            return
        if not is_reference(to):
            message = f"'{form}' takes a type of references, found {describe(to)}"
        elif not unify(Unknown(REFERENCES), found):
            message = f"'{form}' takes a reference, found {describe(found)}"
        elif not (isinstance(find(found), Unknown) or fits(to, found) or is_subtype(to, found)):
            message = f"{describe(found)} is never {describe(to)}"
        if message is not None:
            self.inference.faults.add(operand.place, message)

    # Strings

    def text(self, node: tree.Text) -> SkiffType:
        """A string literal."""
        unify(node.variable.type, STRING)
        return STRING

    def write_string(self, node: tree.WriteString) -> SkiffType:
        """`write-string!`."""
        self.inference.expect(node.value, STRING, "what 'write-string!' writes")
        return NOTHING


def _choices(type_: SkiffType) -> int:
    """The number of types that are still possible."""
    found = find(type_)
    return len(found.domain) if isinstance(found, Unknown) else 1
