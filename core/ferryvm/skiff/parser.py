# SPDX-License-Identifier: Apache-2.0
"""From datums to a syntax tree: the text as a whole, and the heads of functions.

Functions are declared first, then the top-level forms are parsed in order, then the bodies of the
functions. So a function may use later definitions, and a top-level form may not.
"""

from __future__ import annotations

from collections.abc import Sequence as Many

from ferryvm import record
from ferryvm.isa import Type
from ferryvm.skiff.fault import Faults
from ferryvm.skiff.form import FormParser, function_name, host_name
from ferryvm.skiff.object_form import Definitions, struct_name
from ferryvm.skiff.reader import Atom, Datum, Sequence
from ferryvm.skiff.scope import Global
from ferryvm.skiff.tree import (
    Block,
    Function,
    Tree,
    Variable,
)
from ferryvm.skiff.type import (
    NOTHING,
    RESULTS,
    Struct,
    Unknown,
    describe,
)

PRINTED = {
    **{f"print_{t}": str(t) for t in Type},
    "write_byte": "i32",
    "print_string": "(array u8)",
    "write_string": "(array u8)",
}
"""Host functions that Skiff's own forms call, with the type of their parameter."""


def _declared_name(datum: Datum) -> Atom | None:
    """The name of the function that a form declares, of the program or of the host."""
    return function_name(datum) or host_name(datum)


@record.dataclass
class EarlierTexts:
    """Definitions of a session's texts: the data that later texts need."""

    globals: dict[str, Global] = record.field(default_factory=dict)
    """Variables, constants and operations on structs."""
    functions: dict[str, Sequence] = record.field(default_factory=dict)
    """The definitions of the functions, by name."""
    structs: dict[str, Struct] = record.field(default_factory=dict)
    texts: dict[bytes, Variable] = record.field(default_factory=dict)
    """The statics of string literals."""


def parse(
    datums: Many[Datum], faults: Faults, earlier: EarlierTexts, file: str
) -> tuple[Tree, EarlierTexts]:
    """The tree of a text, given what earlier texts of the session have defined; and what later
    ones can use."""
    return _Parser(faults, earlier, file).program(datums, earlier.functions)


class _Parser(FormParser):
    def __init__(self, faults: Faults, earlier: EarlierTexts, file: str) -> None:
        super().__init__(faults, dict(earlier.globals), file)
        self.scope.structs = dict(earlier.structs)
        self.texts = dict(earlier.texts)

    # Programs and functions

    def program(
        self, datums: Many[Datum], earlier: dict[str, Sequence]
    ) -> tuple[Tree, EarlierTexts]:
        definitions = Definitions(self.scope)
        definitions.declare(datums)
        pending: list[tuple[Function, Sequence]] = []
        new = {atom.text for datum in datums if (atom := _declared_name(datum))}
        for name, definition in earlier.items():
            if name not in new:
                pending.append((self._declare(definition, is_new=False), definition))
        for datum in datums:
            if not isinstance(datum, Sequence) or len(datum.items) < 2:
                continue
            if struct_name(datum) is not None:
                continue
            if _declared_name(datum) is not None:
                pending.append((self._declare(datum, is_new=True), datum))
            else:
                head, target = datum.items[:2]
                is_definition = isinstance(head, Atom) and head.text in (
                    "define",
                    "define-constant",
                )
                if is_definition and isinstance(target, Atom):
                    self.later.setdefault(target.text, target.place)
        for datum in datums:
            if _declared_name(datum) is None and struct_name(datum) is None:
                self.main.body.append(self.form(datum))
            elif datum is datums[-1]:
                self.main.body.append(Block(datum.place, [], "define"))  # no value to end with
        own = [(function, definition) for function, definition in pending if not function.is_host]
        for function, definition in own:
            self._function(function, definition)
        functions = [self.main, *(function for function, _ in own), *self.wrappers]
        visible = self.scope.globals
        known = EarlierTexts(
            {n: meaning for n, meaning in visible.items() if not isinstance(meaning, Function)},
            {f.name: d for f, d in pending if visible.get(f.name) is f},
            self.scope.structs,
            self.texts,
        )
        texts = list(self.used_texts.values())
        return Tree(
            functions, self.scope.statics, definitions.structs, texts, self.scope.caught
        ), known

    def _declare(self, definition: Sequence, *, is_new: bool) -> Function:
        if host_name(definition) is not None:
            return self._declare_host(definition, is_new=is_new)
        header = definition.items[1]
        assert isinstance(header, Sequence)
        function = Function("", header.items[0].place, [], Unknown(RESULTS))
        self._name(function, header.items[0], is_new=is_new)
        for item in header.items[1:]:
            self._parameter(function, item)
        function.locals = list(function.parameters)
        rest = definition.items[2:]
        if rest and isinstance(rest[0], Atom) and rest[0].text == "->":
            if len(rest) < 2:
                self.faults.add(rest[0].place, "expected the result's type after '->'")
                function.is_broken = True
            else:
                function.result = self.scope.type(rest[1])
                function.stated_result = True
            rest = rest[2:]
        if not rest:
            self.faults.add(function.place, f"function '{function.name}' has no body")
            function.is_broken = True
        return function

    def _name(self, function: Function, datum: Datum, *, is_new: bool) -> None:
        name = self.scope.name(datum, "function")
        if name is None:
            function.is_broken = True
            assert isinstance(datum, Atom)
            name = datum.text
        elif not is_new or self.scope.define_global(name, function.place):
            self.scope.globals[name] = function
        function.name = name

    def _declare_host(self, definition: Sequence, *, is_new: bool) -> Function:
        _, named, types, *result = definition.items
        assert isinstance(types, Sequence)
        function = Function("", named.place, [], NOTHING, stated_result=True, is_host=True)
        self._name(function, named, is_new=is_new)
        for item in types.items:
            type_ = self.scope.type(item)
            variable = Variable(describe(type_), item.place, is_static=False)
            variable.type = type_
            function.parameters.append(variable)
        if result:
            function.result = self.scope.type(result[0])
        printed = PRINTED.get(function.name)
        if printed is not None and (result or [p.name for p in function.parameters] != [printed]):
            shown = printed if printed[0] == "(" else f"({printed})"
            message = f"'{function.name}' is the host function {shown} that Skiff prints with"
            self.faults.add(named.place, message)
        return function

    def _parameter(self, function: Function, item: Datum) -> None:
        annotation = None
        if isinstance(item, Sequence):
            if len(item.items) != 2:
                self.faults.add(item.place, "a parameter is written name or (name type)")
                function.is_broken = True
                return
            item, annotation = item.items
        name = self.scope.name(item, "parameter")
        if name is None:
            function.is_broken = True
            return
        variable = Variable(name, item.place, is_static=False)
        if annotation is not None:
            variable.type = self.scope.type(annotation)
        if any(other.name == name for other in function.parameters):
            self.faults.add(item.place, f"two parameters are named '{name}'")
        function.parameters.append(variable)

    def _function(self, function: Function, definition: Sequence) -> None:
        if function.is_broken:
            return  # uses of names that the faulty head lacks would only be reported once more
        self.scope.enter(function)
        body = definition.items[2:]
        if body and isinstance(body[0], Atom) and body[0].text == "->":
            body = body[2:]
        function.body = self.forms_in(body)
