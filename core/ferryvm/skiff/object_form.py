# SPDX-License-Identifier: Apache-2.0
"""Forms of references: structs, arrays, strings, tests; from their datum to a node."""

from __future__ import annotations

from collections.abc import Sequence as Many

from ferryvm.isa.declared_type import LONGEST_NAME, MAX_FIELDS, is_type_name
from ferryvm.isa.object import MOST_GENERATIONS
from ferryvm.skiff.array_form import ARRAY_FORMS
from ferryvm.skiff.operation import Parser
from ferryvm.skiff.reader import Atom, Datum, Sequence
from ferryvm.skiff.scope import BUILT_IN, Scope, show
from ferryvm.skiff.tree import (
    Cast,
    Node,
    OnArray,
    OnStruct,
    Same,
    StructOperation,
    StructVerb,
    TypeTest,
)
from ferryvm.skiff.type import VALUES, Field, Struct, Unknown


def array_form(parser: Parser, datum: Sequence) -> Node:
    """The node of a form of arrays."""
    head = datum.items[0]
    assert isinstance(head, Atom)
    form = ARRAY_FORMS[head.text]
    items = datum.items[1:]
    if form.has_type and not items:
        return parser.usage(datum)
    element = parser.scope.element(items[0]) if form.has_type else Unknown(form.elements)
    operands = items[form.has_type :]
    if form.roles_of(len(operands)) is None:
        return parser.usage(datum)
    return OnArray(datum.place, form, element, parser.forms_in(operands))


def same(parser: Parser, datum: Sequence) -> Node:
    """The node of `eq?` or `null?`."""
    count = 2 if _head(datum) == "eq?" else 1
    if len(datum.items) != 1 + count:
        return parser.usage(datum)
    return Same(datum.place, parser.forms_in(datum.items[1:]))


def type_test(parser: Parser, datum: Sequence) -> Node:
    """The node of `is?`."""
    if len(datum.items) != 3:
        return parser.usage(datum)
    of = parser.scope.type(datum.items[1])
    (operand,) = parser.forms_in(datum.items[2:])
    return TypeTest(datum.place, of, operand, "is?")


def cast(parser: Parser, datum: Sequence) -> Node:
    """The node of `cast`."""
    if len(datum.items) != 3:
        return parser.usage(datum)
    to = parser.scope.type(datum.items[1])
    (operand,) = parser.forms_in(datum.items[2:])
    return Cast(datum.place, to, operand)


def struct_operation(parser: Parser, operation: StructOperation, datum: Sequence) -> Node:
    """The node of an operation that a struct's definition defines."""
    operands = parser.forms_in(datum.items[1:])
    struct = operation.struct
    if struct.is_broken:
        return parser.silently_broken(datum.place)
    names = [struct.name]
    if operation.verb is StructVerb.MAKE:
        names = [field.name for field in struct.fields]
    elif operation.verb is StructVerb.SET:
        names.append(struct.fields[operation.field].name)
    elif operation.verb is StructVerb.TEST:
        names = ["reference"]
    if len(operands) != len(names):
        plural = "" if len(names) == 1 else "s"
        shown = " ".join([operation.name, *names])
        message = f"'{operation.name}' takes {len(names)} argument{plural}, found {len(operands)}"
        return parser.broken(datum.place, f"{message}: ({shown})")
    if operation.verb is StructVerb.TEST:
        return TypeTest(datum.place, struct, operands[0], operation.name)
    return OnStruct(datum.place, operation, operands)


def unknown_field(scope: Scope, name: str) -> str | None:
    """The reason for which an unknown name is no accessor, if it looks like one."""
    wanted = name
    if name.startswith("set-") and name.endswith("!"):
        wanted = name[len("set-") : -1]
    for struct in scope.structs.values():
        start, _, field = wanted.partition(f"{struct.name}-")
        if start or not field or struct.is_broken:
            continue
        if struct.parent is not None:
            for number, found in enumerate(struct.parent.fields):
                if found.name == field:
                    right = name.replace(f"{struct.name}-", f"{owner(struct, number).name}-", 1)
                    return f"'{field}' is a field of the parent of '{struct.name}': use '{right}'"
        has = " ".join(f.name for f in struct.fields) or "none"
        return f"struct '{struct.name}' has no field '{field}'; its fields: {has}"
    return None


def owner(struct: Struct, field: int) -> Struct:
    """The struct, itself or an ancestor, whose definition has the field of a number."""
    while struct.parent is not None and field < len(struct.parent.fields):
        struct = struct.parent
    return struct


# Definitions


def struct_name(datum: Datum) -> Atom | None:
    """The name in `(define-struct name ...)` or `(define-struct (name parent) ...)`, None for any
    other form."""
    if not (
        isinstance(datum, Sequence) and len(datum.items) >= 2 and _head(datum) == "define-struct"
    ):
        return None
    target = datum.items[1]
    if isinstance(target, Sequence):
        target = target.items[0] if len(target.items) == 2 else datum
    return target if isinstance(target, Atom) else None


def _head(datum: Sequence) -> str:
    head = datum.items[0]
    return head.text if isinstance(head, Atom) else ""


class Definitions:
    """The structs that a text defines: first their names, then their fields."""

    def __init__(self, scope: Scope) -> None:
        self.scope, self.faults = scope, scope.faults
        self.structs: list[Struct] = []
        self._pending: list[tuple[Struct, Sequence]] = []

    def declare(self, datums: Many[Datum]) -> None:
        """Declare the structs that top-level forms define, and their operations."""
        for datum in datums:
            named = struct_name(datum)
            if named is not None:
                assert isinstance(datum, Sequence)
                self._name(named, datum)
        complete: set[Struct] = set()
        for struct, datum in self._pending:
            self._parent(struct, datum, complete)
            for item in datum.items[2:]:
                self._field(struct, item)
            complete.add(struct)
            if len(struct.fields) > MAX_FIELDS:
                message = f"a struct has at most {MAX_FIELDS} fields, found {len(struct.fields)}"
                self._break(struct, datum, message)
            self._operations(struct)

    def _break(self, struct: Struct, datum: Datum, message: str) -> None:
        self.faults.add(datum.place, message)
        struct.is_broken = True

    def _name(self, named: Atom, datum: Sequence) -> None:
        name = self.scope.name(named, "struct")
        if name is None:
            self.faults.lost_names.update((named.text, f"make-{named.text}", f"{named.text}?"))
            return
        struct = Struct(name, named.place)
        if not is_type_name(name):
            self._break(struct, named, _bad_name("struct", name))
        earlier = next((s for s in self.structs if s.name == name), None)
        if earlier is not None:
            line = earlier.place.position.line
            self.faults.add(named.place, f"struct '{name}' is already defined in line {line}")
            return
        self._forget(name)
        self.scope.structs[name] = struct
        self.structs.append(struct)
        self._pending.append((struct, datum))

    def _forget(self, name: str) -> None:
        """Remove the operations of an earlier struct of the session that has this name."""
        earlier = self.scope.structs.get(name)
        names = self.scope.globals
        for key, meaning in list(names.items()):
            if isinstance(meaning, StructOperation) and meaning.struct is earlier:
                del names[key]

    def _parent(self, struct: Struct, datum: Sequence, complete: set[Struct]) -> None:
        head = datum.items[1]
        if not isinstance(head, Sequence):
            return
        named = head.items[1]
        parent = self.scope.structs.get(named.text) if isinstance(named, Atom) else None
        if parent is None or parent is struct:
            self._break(struct, named, f"expected the name of a parent struct, found {show(named)}")
            return
        if parent in self.structs and parent not in complete:
            message = f"the parent '{parent.name}' must be defined above its child"
            self._break(struct, named, message)
            return
        generations, ancestor = 2, parent
        while ancestor.parent is not None:
            generations, ancestor = generations + 1, ancestor.parent
        if generations > MOST_GENERATIONS:
            message = f"a struct has at most {MOST_GENERATIONS - 1} ancestors"
            self._break(struct, named, message)
        struct.parent = parent
        struct.fields = list(parent.fields)
        struct.is_broken = struct.is_broken or parent.is_broken

    def _field(self, struct: Struct, item: Datum) -> None:
        annotation = None
        if isinstance(item, Sequence):
            if len(item.items) != 2:
                self._break(struct, item, "a field is written name or (name type)")
                return
            item, annotation = item.items
        if not isinstance(item, Atom):
            self._break(struct, item, f"expected the name of a field, found {show(item)}")
            return
        if not is_type_name(item.text):
            self._break(struct, item, _bad_name("field", item.text))
            return
        earlier = next((f for f in struct.fields if f.name == item.text), None)
        if earlier is not None:
            of = " of its parent" if struct.parent and earlier in struct.parent.fields else ""
            message = f"struct '{struct.name}' has a field '{item.text}'{of} already"
            self._break(struct, item, message)
            return
        type_ = Unknown(VALUES) if annotation is None else self.scope.type(annotation)
        struct.fields.append(Field(item.text, type_, item.place))

    def _operations(self, struct: Struct) -> None:
        name, place = struct.name, struct.place
        found = [
            StructOperation(f"make-{name}", place, struct, StructVerb.MAKE),
            StructOperation(f"{name}?", place, struct, StructVerb.TEST),
        ]
        inherited = 0 if struct.parent is None else len(struct.parent.fields)
        for number, field in enumerate(struct.fields[inherited:], inherited):
            getter, setter = f"{name}-{field.name}", f"set-{name}-{field.name}!"
            found.append(StructOperation(getter, field.place, struct, StructVerb.GET, number))
            found.append(StructOperation(setter, field.place, struct, StructVerb.SET, number))
        for operation in found:
            if operation.name in BUILT_IN:
                message = f"'{operation.name}', an operation of struct '{name}', is built in"
                self.faults.add(operation.place, message)
            elif self.scope.define_global(operation.name, operation.place):
                self.scope.globals[operation.name] = operation


def _bad_name(what: str, name: str) -> str:
    """The fault of a name that the machine does not take."""
    if len(name) > LONGEST_NAME:
        return f"the name of a {what} has at most {LONGEST_NAME} characters, found {len(name)}"
    return (
        f"'{name}' is no name for a {what}: it begins with a letter or _, and has letters, digits "
        "and _$!?*/<>=+@%&^~|-"
    )
