# SPDX-License-Identifier: Apache-2.0
"""From datums to nodes: special forms are analysed, names are resolved.

A form with a fault becomes a Broken node, after the fault has been recorded; its parts are checked
if that makes sense.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from collections.abc import Sequence as Many

from ferryvm.errors import Position
from ferryvm.isa import Type
from ferryvm.skiff import object_form, operation, skeleton_form
from ferryvm.skiff.array_form import ARRAY_FORMS
from ferryvm.skiff.constant_form import constant_form
from ferryvm.skiff.fault import Faults, SourceSpan
from ferryvm.skiff.number import Number, looks_numeric, parse_number
from ferryvm.skiff.operator import CONVERSIONS, DIRECT, OPERATORS
from ferryvm.skiff.reader import Atom, Datum, Sequence
from ferryvm.skiff.scope import BUILT_IN, FORMS, Global, Scope, show
from ferryvm.skiff.text import TextFault, character, is_character, is_string, string_bytes
from ferryvm.skiff.tree import (
    Block,
    Broken,
    Call,
    Choice,
    Constant,
    Finally,
    Function,
    Get,
    Literal,
    Logic,
    Node,
    Not,
    Null,
    Print,
    Set,
    StructOperation,
    Text,
    Throw,
    Try,
    Variable,
    While,
    WriteByte,
    WriteString,
)
from ferryvm.skiff.type import ERROR, RESULTS, Unknown

BOOLEANS = {"#t": Number("#t", 1, Type.I32), "#f": Number("#f", 0, Type.I32)}


def _is_marked(datum: Datum, mark: str) -> bool:
    """True for a list that begins with the mark."""
    if not (isinstance(datum, Sequence) and datum.items):
        return False
    head = datum.items[0]
    return isinstance(head, Atom) and head.text == mark


def _is_literal(text: str) -> bool:
    """True for the text of an atom that is not a name."""
    is_text = is_string(text) or is_character(text)
    return is_text or text in BOOLEANS or text == "null" or parse_number(text) is not None


def function_name(datum: Datum) -> Atom | None:
    """The name in `(define (name ...) ...)`, None for any other form."""
    if not (isinstance(datum, Sequence) and len(datum.items) >= 2):
        return None
    head, target = datum.items[:2]
    if not (isinstance(head, Atom) and head.text == "define" and isinstance(target, Sequence)):
        return None
    if target.items and isinstance(target.items[0], Atom):
        return target.items[0]
    return None


def host_name(datum: Datum) -> Atom | None:
    """The name in `(host-function name (type ...) [type])`, None for any other form."""
    if not (isinstance(datum, Sequence) and len(datum.items) in (3, 4)):
        return None
    head, name, parameters = datum.items[:3]
    if not (isinstance(head, Atom) and head.text == "host-function"):
        return None
    return name if isinstance(name, Atom) and isinstance(parameters, Sequence) else None


class FormParser:
    """Parses forms in one scope; `ferryvm.skiff.parser` moves the scope from body to body."""

    def __init__(self, faults: Faults, globals_: dict[str, Global], file: str) -> None:
        self.faults = faults
        start = SourceSpan(Position(file, 1, 1))
        self.main = Function("main", start, [], Unknown(RESULTS))
        self.scope = Scope(faults, globals_, self.main)
        self.wrappers: list[Function] = []
        """Functions that are made of operators, for forms that take functions."""
        self.later: dict[str, SourceSpan] = {}
        self.texts: dict[bytes, Variable] = {}
        """The statics of string literals, those of earlier texts of the session among them."""
        self.used_texts: dict[bytes, Text] = {}
        self.forms: dict[str, Callable[[Sequence], Node]] = {
            "define": self._define,
            "define-constant": functools.partial(constant_form, self),
            "define-struct": self._define_struct,
            "host-function": self._host_function,
            "set!": self._set,
            "if": self._if,
            "cond": self._cond,
            "while": self._while,
            "for-each-item": functools.partial(skeleton_form.launch_form, self),
            "for-each-group": functools.partial(skeleton_form.group_launch_form, self),
            "barrier": functools.partial(skeleton_form.barrier_form, self),
            **dict.fromkeys(
                skeleton_form.GROUP_FORMS, functools.partial(skeleton_form.group_form, self)
            ),
            "map": functools.partial(skeleton_form.map_form, self),
            "map!": functools.partial(skeleton_form.map_form, self),
            "scan": functools.partial(skeleton_form.scan_form, self),
            "reduce": functools.partial(skeleton_form.reduce_form, self),
            "begin": self._begin,
            "throw": self._throw,
            "try": self._try,
            "let": self._let,
            "and": self._logic,
            "or": self._logic,
            "not": self._not,
            "print!": self._print,
            "write-byte!": self._write_byte,
            "write-string!": self._write_string,
            "enter-jit": self._jit,
            "eq?": functools.partial(object_form.same, self),
            "null?": functools.partial(object_form.same, self),
            "is?": functools.partial(object_form.type_test, self),
            "cast": functools.partial(object_form.cast, self),
            **dict.fromkeys(ARRAY_FORMS, functools.partial(object_form.array_form, self)),
        }

    # Forms

    def forms_in(self, datums: Many[Datum]) -> list[Node]:
        """The nodes of some forms, in order."""
        nodes = []
        for datum in datums:
            nodes.append(self.form(datum))
        return nodes

    def form(self, datum: Datum) -> Node:
        """The node of a form; Broken if it has a fault."""
        if isinstance(datum, Atom):
            return self._atom(datum)
        if not datum.items:
            return self.broken(datum.place, "an empty form '()' means nothing")
        head = datum.items[0]
        if not isinstance(head, Atom) or _is_literal(head.text):
            return self.broken(head.place, f"a form starts with a name, found {show(head)}")
        name = head.text
        if name in self.forms:
            return self.forms[name](datum)
        if name in OPERATORS:
            return operation.operator(self, OPERATORS[name], datum)
        if name in CONVERSIONS:
            return operation.conversion(self, CONVERSIONS[name], datum)
        if name in DIRECT:
            return operation.direct(self, DIRECT[name], datum)
        return self._application(head, datum)

    def broken(self, place: SourceSpan, message: str) -> Broken:
        """A node for a form with a fault, which is recorded."""
        self.faults.add(place, message)
        return self.silently_broken(place)

    def silently_broken(self, place: SourceSpan) -> Broken:
        """A node for a form whose fault has been recorded."""
        node = Broken(place)
        node.type = ERROR
        return node

    def usage(self, datum: Sequence) -> Broken:
        """The node for a special form with wrong syntax."""
        head = datum.items[0]
        assert isinstance(head, Atom)
        return self.broken(datum.place, f"'{head.text}' is written {FORMS[head.text]}")

    def _atom(self, atom: Atom) -> Node:
        if atom.text == "null":
            return Null(atom.place)
        if is_string(atom.text) or is_character(atom.text):
            return self._text(atom)
        if atom.text in BOOLEANS:
            return Literal(atom.place, BOOLEANS[atom.text])
        if (number := parse_number(atom.text)) is not None:
            return Literal(atom.place, number)
        if looks_numeric(atom.text):
            return self.broken(atom.place, f"{show(atom)} is not a number")
        if atom.text.startswith("#"):
            return self.broken(atom.place, f"{show(atom)} is not a literal; #t and #f are")
        return self._variable(atom)

    def _text(self, atom: Atom) -> Node:
        try:
            if is_character(atom.text):
                return Literal(atom.place, character(atom.text))
            content = string_bytes(atom.text)
        except TextFault as fault:
            file, line, column = atom.place.position
            position = Position(file, line, column + fault.offset)
            return self.broken(SourceSpan(position, fault.length), fault.message)
        variable = self.texts.get(content)
        if variable is None:
            variable = Variable(f"string {len(self.texts) + 1}", atom.place, is_static=True)
            self.texts[content] = variable
            self.scope.statics.append(variable)
        node = Text(atom.place, content, variable)
        self.used_texts.setdefault(content, node)
        return node

    def _variable(self, atom: Atom) -> Node:
        meaning = self.scope.lookup(atom.text)
        if isinstance(meaning, Variable):
            return Get(atom.place, meaning)
        if isinstance(meaning, Constant):
            return Literal(atom.place, meaning.number)
        if isinstance(meaning, Function | StructOperation):
            message = (
                f"'{atom.text}' is a function, not a variable; a call is written ({atom.text})"
            )
            return self.broken(atom.place, message)
        if atom.text in BUILT_IN:
            return self.broken(atom.place, f"'{atom.text}' is built in and has no value")
        if atom.text in self.later:
            line = self.later[atom.text].position.line
            message = f"'{atom.text}' is used before its definition in line {line}"
            return self.broken(atom.place, message)
        if atom.text in self.faults.lost_names:
            return self.silently_broken(atom.place)
        near = self.scope.near(atom.text, (Variable, Constant))
        return self.broken(atom.place, f"no variable {show(atom)}{near}")

    def _application(self, head: Atom, datum: Sequence) -> Node:
        meaning = self.scope.lookup(head.text)
        if meaning is None or isinstance(meaning, Variable | Constant):
            if len(datum.items) == 1 and (meaning is not None or head.text in self.later):
                return self._variable(head)
            self.forms_in(datum.items[1:])
            if head.text in self.faults.lost_names:
                return self.silently_broken(head.place)
            if meaning is not None:
                kind = "constant" if isinstance(meaning, Constant) else "variable"
                return self.broken(head.place, f"'{head.text}' is a {kind}, not a function")
            wrong_field = object_form.unknown_field(self.scope, head.text)
            if wrong_field is not None:
                return self.broken(head.place, wrong_field)
            near = self.scope.near(head.text, (Function, StructOperation), BUILT_IN)
            return self.broken(head.place, f"no function {show(head)}{near}")
        if isinstance(meaning, StructOperation):
            return object_form.struct_operation(self, meaning, datum)
        arguments = self.forms_in(datum.items[1:])
        if meaning.is_broken:
            return self.silently_broken(datum.place)
        expected = len(meaning.parameters)
        if len(arguments) != expected:
            names = "".join(f" {variable.name}" for variable in meaning.parameters)
            plural = "" if expected == 1 else "s"
            return self.broken(
                datum.place,
                f"'{head.text}' takes {expected} argument{plural}, found {len(arguments)}: "
                f"({head.text}{names})",
            )
        return Call(datum.place, meaning, arguments)

    # Variables

    def _define(self, datum: Sequence) -> Node:
        if len(datum.items) > 1 and isinstance(datum.items[1], Sequence):
            if function_name(datum) is None:
                return self.usage(datum)
            message = "a function is defined at the top level, not inside another form"
            return self.broken(datum.place, message)
        if len(datum.items) != 3:
            return self.usage(datum)
        value = self.form(datum.items[2])
        name = self.scope.name(datum.items[1], "variable")
        if name is None:
            return self.silently_broken(datum.place)
        variable = self.scope.define(name, datum.items[1].place)
        return Set(datum.place, variable, value, "define")

    def _define_struct(self, datum: Sequence) -> Node:
        if object_form.struct_name(datum) is None:
            return self.usage(datum)
        message = "a struct is defined at the top level, not inside another form"
        return self.broken(datum.place, message)

    def _host_function(self, datum: Sequence) -> Node:
        if host_name(datum) is None:
            return self.usage(datum)
        message = "a host function is declared at the top level, not inside another form"
        return self.broken(datum.place, message)

    def _set(self, datum: Sequence) -> Node:
        if len(datum.items) != 3 or not isinstance(datum.items[1], Atom):
            return self.usage(datum)
        value = self.form(datum.items[2])
        target = datum.items[1]
        meaning = self.scope.lookup(target.text)
        if isinstance(meaning, Constant | Function | StructOperation):
            kind = "constant" if isinstance(meaning, Constant) else "function"
            message = f"'{target.text}' is a {kind} and cannot be set"
            return self.broken(target.place, message)
        if meaning is None:
            return self._variable(target) if not parse_number(target.text) else self.usage(datum)
        return Set(datum.place, meaning, value, "set!")

    def _let(self, datum: Sequence) -> Node:
        if len(datum.items) < 3 or not isinstance(datum.items[1], Sequence):
            return self.usage(datum)
        bindings = []
        for item in datum.items[1].items:
            if not isinstance(item, Sequence) or len(item.items) != 2:
                self.faults.add(item.place, "a binding of 'let' is written (name value)")
            else:
                bindings.append((item, self.form(item.items[1])))  # in the scope outside
        self.scope.inner.append({})
        body: list[Node] = []
        for item, value in bindings:
            name = self.scope.name(item.items[0], "variable")
            if name is not None:
                variable = self.scope.define(name, item.items[0].place)
                body.append(Set(item.place, variable, value, "let"))
        body.extend(self.forms_in(datum.items[2:]))
        self.scope.inner.pop()
        return Block(datum.place, body, "let")

    # Control

    def _if(self, datum: Sequence) -> Node:
        if len(datum.items) not in (3, 4):
            return self.usage(datum)
        condition, then, *rest = self.forms_in(datum.items[1:])
        return Choice(datum.place, [(condition, then)], rest[0] if rest else None, "if")

    def _cond(self, datum: Sequence) -> Node:
        arms: list[tuple[Node, Node]] = []
        otherwise: Node | None = None
        if len(datum.items) == 1:
            return self.usage(datum)
        for clause in datum.items[1:]:
            if not isinstance(clause, Sequence) or len(clause.items) < 2:
                message = "a clause of 'cond' is written (condition form ...) or (else form ...)"
                self.faults.add(clause.place, message)
                continue
            head = clause.items[0]
            is_else = isinstance(head, Atom) and head.text == "else"
            if is_else and clause is not datum.items[-1]:
                self.faults.add(head.place, "'else' must be the last clause of 'cond'")
            condition = None if is_else else self.form(head)
            body = Block(clause.place, self.forms_in(clause.items[1:]), "cond")
            if condition is None:
                otherwise = body
            else:
                arms.append((condition, body))
        if not arms:
            return otherwise or self.silently_broken(datum.place)
        return Choice(datum.place, arms, otherwise, "cond")

    def _while(self, datum: Sequence) -> Node:
        if len(datum.items) < 2:
            return self.usage(datum)
        condition, *body = self.forms_in(datum.items[1:])
        return While(datum.place, condition, body)

    def _begin(self, datum: Sequence) -> Node:
        return Block(datum.place, self.forms_in(datum.items[1:]), "begin")

    def _throw(self, datum: Sequence) -> Node:
        if len(datum.items) != 2:
            return self.usage(datum)
        return Throw(datum.place, self.form(datum.items[1]))

    def _try(self, datum: Sequence) -> Node:
        forms = list(datum.items[1:])
        cleanup = forms.pop() if forms and _is_marked(forms[-1], "finally") else None
        catch = forms.pop() if forms and _is_marked(forms[-1], "catch") else None
        if not forms or (catch is None and cleanup is None):
            return self.usage(datum)
        for form in forms:
            if _is_marked(form, "catch") or _is_marked(form, "finally"):
                return self.usage(datum)
        node: Node = Block(datum.place, self.forms_in(forms), "try")
        if catch is not None:
            assert isinstance(catch, Sequence)
            node = self._catch(node, datum, catch)
        if cleanup is not None:
            assert isinstance(cleanup, Sequence)
            done = Block(cleanup.place, self.forms_in(cleanup.items[1:]), "finally")
            node = Finally(datum.place, node, done)
        return node

    def _catch(self, body: Node, datum: Sequence, catch: Sequence) -> Node:
        names = catch.items[1] if len(catch.items) > 1 else None
        if not isinstance(names, Sequence) or len(names.items) != 1:
            return self.usage(datum)
        assert isinstance(body, Block)
        item, annotation = names.items[0], None
        if isinstance(item, Sequence):
            if len(item.items) != 2:
                self.faults.add(
                    item.place, "an exception's variable is written name or (name type)"
                )
                return self.silently_broken(datum.place)
            item, annotation = item.items
        name = self.scope.name(item, "variable")
        if name is None:
            return self.silently_broken(datum.place)
        self.scope.inner.append({})
        variable = self.scope.define(name, item.place)
        if annotation is not None:
            variable.type = self.scope.type(annotation)
            self.scope.caught.append(variable)
        handler = Block(catch.place, self.forms_in(catch.items[2:]), "catch")
        self.scope.inner.pop()
        return Try(datum.place, body, variable, handler)

    def _logic(self, datum: Sequence) -> Node:
        head = datum.items[0]
        if len(datum.items) == 1:
            return self.usage(datum)
        is_and = isinstance(head, Atom) and head.text == "and"
        return Logic(datum.place, is_and, self.forms_in(datum.items[1:]))

    def _not(self, datum: Sequence) -> Node:
        if len(datum.items) != 2:
            return self.usage(datum)
        return Not(datum.place, self.form(datum.items[1]))

    def _jit(self, datum: Sequence) -> Node:
        forms = datum.items[1] if len(datum.items) == 2 else None
        if not isinstance(forms, Sequence) or any(isinstance(f, Atom) for f in forms.items):
            return self.usage(datum)
        return Block(datum.place, self.forms_in(forms.items), "enter-jit", is_jit=True)

    # Output

    def _print(self, datum: Sequence) -> Node:
        return Print(datum.place, self.forms_in(datum.items[1:]))

    def _write_byte(self, datum: Sequence) -> Node:
        if len(datum.items) != 2:
            return self.usage(datum)
        return WriteByte(datum.place, self.form(datum.items[1]))

    def _write_string(self, datum: Sequence) -> Node:
        if len(datum.items) != 2:
            return self.usage(datum)
        return WriteString(datum.place, self.form(datum.items[1]))
