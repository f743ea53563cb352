# SPDX-License-Identifier: Apache-2.0
"""Types for every node of a tree, by unification over the whole program.

A form stands where its value is used (`value`, `operand`) or where it is not (`statement`). The
branches of a choice need a common type only if its value is used; a choice with a branch that
certainly yields nothing (`set!`, `while`, ...) yields nothing as a whole.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ferryvm.errors import Position
from ferryvm.isa import Type
from ferryvm.isa.type import Reference
from ferryvm.skiff import tree
from ferryvm.skiff.array_form import Role
from ferryvm.skiff.fault import Faults
from ferryvm.skiff.number import integer_range, number_bits
from ferryvm.skiff.object_inference import ObjectRules
from ferryvm.skiff.operator import Family
from ferryvm.skiff.skeleton_inference import SkeletonRules
from ferryvm.skiff.tree import Block, Choice, Function, Node, Tree
from ferryvm.skiff.type import (
    ERROR,
    FLOATS,
    I32,
    INTEGERS,
    NOTHING,
    NUMBERS,
    RESULTS,
    STRING,
    VALUES,
    ArrayOf,
    SkiffType,
    Unknown,
    conversion,
    default,
    describe,
    find,
    fits,
    is_reference,
    is_subtype,
    join,
    number_type,
    of,
    unify,
)

_FAMILIES = {Family.NUMBERS: NUMBERS, Family.INTEGERS: INTEGERS, Family.FLOATS: FLOATS}


def infer(program: Tree, faults: Faults) -> None:
    """Give every node its type, or record the faults that prevent that."""
    inference = _Inference(faults)
    for variable in program.caught:
        unify(inference.exception, variable.type)  # the next uses report a conflict
    # In the order of the text, so that the later of two conflicting uses is reported.
    main, *functions = program.functions
    steps: list[tuple[Position, Callable[[], None]]] = []
    for function in functions:
        if function.is_wrapper:
            continue  # inferred with the form that has its operator
        steps.append((function.place.position, functools.partial(inference.function, function)))
    for node in main.body[:-1]:
        steps.append((node.place.position, functools.partial(inference.statement, node)))
    if main.body:
        step = functools.partial(inference.result, main, main.body[-1])
        steps.append((main.body[-1].place.position, step))
    here = main.place.position.file
    steps.sort(key=lambda step: (step[0].file == here, step[0]))
    for _, infer_step in steps:
        infer_step()
    inference.objects.settle_views()
    for variable in program.statics:
        variable.type = default(variable.type)
    for struct in program.structs:
        for field in struct.fields:
            field.type = default(field.type)
    program.exception = default(inference.exception)
    inference.check_literals()


_COMPOUND = (Block, Choice, tree.Try, tree.Finally)
"""Forms whose value is that of another form."""


_STATEMENTS = (
    tree.Set, tree.While, tree.Launch, tree.GroupLaunch, tree.Print, tree.WriteByte, tree.WriteString,
)  # fmt: skip


def yields_nothing(node: Node) -> bool:
    """True if a form certainly leaves no value, whatever its types are."""
    if isinstance(node, Block):
        return not node.body or yields_nothing(node.body[-1])
    if isinstance(node, Choice):
        arms = [body for _, body in node.arms]
        return node.otherwise is None or any(map(yields_nothing, [*arms, node.otherwise]))
    if isinstance(node, tree.Try):
        return yields_nothing(node.body) or yields_nothing(node.handler)
    if isinstance(node, tree.Finally):
        return yields_nothing(node.body)
    if isinstance(node, tree.Call):
        return find(node.function.result) == NOTHING
    if isinstance(node, tree.Direct):
        return not node.row.pushes
    if isinstance(node, tree.OnArray):
        return node.form.result is Role.NOTHING
    if isinstance(node, tree.OnStruct):
        return node.operation.verb is tree.StructVerb.SET
    if isinstance(node, tree.Map):
        return node.to is not None
    return isinstance(node, _STATEMENTS)


class _Inference:
    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.literals: list[tree.Literal] = []
        self.objects = ObjectRules(self)
        self.skeletons = SkeletonRules(self, self.objects)
        self.exception: SkiffType = Unknown(VALUES)
        """The type of all exceptions of the program."""
        self.rules: dict[type[Node], Callable[[Any], SkiffType]] = {
            tree.Broken: lambda node: ERROR,
            tree.Literal: self._literal,
            tree.Get: lambda node: node.variable.type,
            tree.Set: self._set,
            tree.While: self._while,
            tree.Throw: self._throw,
            tree.Try: self._try,
            tree.Finally: self._finally,
            tree.Logic: self._logic,
            tree.Not: self._not,
            tree.Operation: self._operation,
            tree.Direct: self._direct,
            tree.Convert: self._convert,
            tree.Call: self._call,
            tree.Launch: self._launch,
            tree.GroupLaunch: self.skeletons.group_launch,
            tree.GroupArray: self.skeletons.group_array,
            tree.Map: self.skeletons.map,
            tree.Scan: self.skeletons.scan,
            tree.GroupOperation: self.skeletons.group_operation,
            tree.Reduce: self.skeletons.reduce,
            tree.Print: self._print,
            tree.WriteByte: self._write_byte,
            tree.WriteString: self.objects.write_string,
            tree.Text: self.objects.text,
            tree.Null: self.objects.null,
            tree.Same: self.objects.same,
            tree.TypeTest: self.objects.type_test,
            tree.Cast: self.objects.cast,
            tree.OnArray: self.objects.on_array,
            tree.OnStruct: self.objects.on_struct,
        }

    def function(self, function: Function) -> None:
        """Infer a function's body and its result."""
        for node in function.body[:-1]:
            self.statement(node)
        if function.body:
            self.result(function, function.body[-1])

    def result(self, function: Function, last: Node) -> None:
        """Infer a function's last form, its result."""
        found = self.value(last)
        if not fits(function.result, found):
            if function.stated_result:
                expected = f"returns {describe(function.result)} as stated"
            elif find(found) == NOTHING:
                expected = "is used as a value"
            else:
                expected = f"is used as {describe(function.result)}"
            verb = "yields" if find(found) == NOTHING else "is"
            message = f"'{function.name}' {expected}, but its last form {verb} {describe(found)}"
            self.faults.add(last.place, message)

    # Contexts of forms

    def statement(self, node: Node) -> None:
        """Infer a form whose value is not used."""
        if isinstance(node, Block):
            for child in node.body:
                self.statement(child)
        elif isinstance(node, Choice):
            for condition, body in node.arms:
                self.condition(condition)
                self.statement(body)
            if node.otherwise is not None:
                self.statement(node.otherwise)
        elif isinstance(node, tree.Try):
            self._caught(node)
            self.statement(node.body)
            self.statement(node.handler)
        elif isinstance(node, tree.Finally):
            self.statement(node.body)
            self.statement(node.cleanup)
        else:
            self.value(node)

    def value(self, node: Node) -> SkiffType:
        """The type of a form whose value is used if it has one."""
        if isinstance(node, _COMPOUND) and yields_nothing(node):
            self.statement(node)
            node.type = NOTHING
        elif isinstance(node, Block):
            for child in node.body[:-1]:
                self.statement(child)
            node.type = self.value(node.body[-1])
        elif isinstance(node, Choice):
            node.type = self._choice(node)
        else:
            node.type = self.rules[type(node)](node)
        return node.type

    def operand(self, node: Node) -> SkiffType:
        """The type of a form that must have a value."""
        found = find(self.value(node))
        if found == NOTHING:
            self.faults.add(node.place, f"{_form(node)} yields no value, and one is needed here")
            return ERROR
        if isinstance(found, Unknown) and "nothing" in found.domain:
            unify(found, Unknown(VALUES))
        return find(found)

    def expect(self, node: Node, expected: SkiffType, what: str) -> bool:
        """Infer a form and check that its value fits the expected type; False if it does not, which
        is noted."""
        found = self.operand(node)
        does_fit = fits(expected, found)
        if not does_fit:
            wanted, shown = describe(expected), describe(found)
            other = "another struct " if wanted == shown else ""
            message = f"{what} must be {wanted}, found {other}{shown}"
            if is_reference(expected) and is_subtype(expected, found):
                message += f"; test it at run time, as in (cast {wanted} ...)"
            self.faults.add(node.place, message)
        return does_fit

    def condition(self, node: Node) -> None:
        """Infer a form that is tested."""
        self.expect(node, Unknown(INTEGERS), "a condition")

    # Rules

    def _choice(self, node: Choice) -> SkiffType:
        bodies = []
        for condition, body in node.arms:
            self.condition(condition)
            bodies.append(body)
        assert node.otherwise is not None
        result: SkiffType | None = None
        for body in [*bodies, node.otherwise]:
            found = self.value(body)
            joined = found if result is None else join(result, found)
            if joined is None:
                assert result is not None
                message = (
                    f"the branches of '{node.form}' differ: {describe(result)} before, "
                    f"{describe(found)} here"
                )
                self.faults.add(body.place, message)
                return ERROR
            result = joined
        assert result is not None
        return result

    def _throw(self, node: tree.Throw) -> SkiffType:
        found = self.operand(node.value)
        if not fits(self.exception, found):
            message = f"exceptions here are {describe(self.exception)}, found {describe(found)}"
            self.faults.add(node.value.place, message)
        return Unknown(RESULTS)

    def _caught(self, node: tree.Try) -> None:
        if not unify(node.variable.type, self.exception):
            message = (
                f"exceptions here are {describe(self.exception)}, "
                f"found {describe(node.variable.type)}"
            )
            self.faults.add(node.variable.place, message)

    def _try(self, node: tree.Try) -> SkiffType:
        self._caught(node)
        result = self.value(node.body)
        found = self.value(node.handler)
        joined = join(result, found)
        if joined is None:
            message = f"'try' is {describe(result)}, its handler is {describe(found)}"
            self.faults.add(node.handler.place, message)
            return ERROR
        return joined

    def _finally(self, node: tree.Finally) -> SkiffType:
        result = self.value(node.body)
        self.statement(node.cleanup)
        return result

    def _literal(self, node: tree.Literal) -> SkiffType:
        if node.type != NOTHING:
            return node.type  # it is in two comparisons of a chain, as one number
        self.literals.append(node)
        if node.number.suffix is not None:
            return of(node.number.suffix)
        return Unknown(FLOATS if node.number.is_float else NUMBERS)

    def _set(self, node: tree.Set) -> SkiffType:
        found = self.operand(node.value)
        variable = node.variable
        if not fits(variable.type, found):
            message = f"'{variable.name}' is {describe(variable.type)}, found {describe(found)}"
            self.faults.add(node.value.place, message)
        return NOTHING

    def _while(self, node: tree.While) -> SkiffType:
        self.condition(node.condition)
        for child in node.body:
            self.statement(child)
        return NOTHING

    def _logic(self, node: tree.Logic) -> SkiffType:
        for operand in node.operands:
            self.condition(operand)
        return I32

    def _not(self, node: tree.Not) -> SkiffType:
        self.condition(node.operand)
        return I32

    def _operation(self, node: tree.Operation) -> SkiffType:
        operator = node.operator
        domain = _FAMILIES[operator.family]
        common: SkiffType = Unknown(domain)
        for operand in node.operands:
            found = self.operand(operand)
            if unify(common, found):
                continue
            if unify(Unknown(domain), found):
                message = (
                    f"the operands of '{operator.name}' differ: {describe(common)} before, "
                    f"{describe(found)} here; convert one, as in ({conversion(common)} ...)"
                )
            else:
                message = (
                    f"'{operator.name}' takes {operator.family.value}, found {describe(found)}"
                )
            self.faults.add(operand.place, message)
            return I32 if operator.compares else ERROR
        return I32 if operator.compares else common

    def _direct(self, node: tree.Direct) -> SkiffType:
        row = node.row
        open_types: dict[str, SkiffType] = {}

        def static(operand: Any) -> SkiffType:
            if isinstance(operand, Type | Reference):
                return of(operand)
            return open_types.setdefault(str(operand), Unknown(VALUES))

        for number, (operand, type_) in enumerate(zip(node.operands, row.pops, strict=True), 1):
            self.expect(operand, static(type_), f"operand {number} of '{row.mnemonic}'")
        return static(row.pushes[0]) if row.pushes else NOTHING

    def _convert(self, node: tree.Convert) -> SkiffType:
        found = self.operand(node.operand)
        if not unify(Unknown(NUMBERS), found):
            message = f"'{node.to}' takes numbers, found {describe(found)}"
            self.faults.add(node.operand.place, message)
        if isinstance(node.operand, tree.Literal):
            unify(found, of(node.to))  # an open literal is of that type at once
        return of(node.to)

    def _call(self, node: tree.Call) -> SkiffType:
        function = node.function
        pairs = zip(node.arguments, function.parameters, strict=True)
        for number, (argument, parameter) in enumerate(pairs, 1):
            what = f"argument {number} ('{parameter.name}') of '{function.name}'"
            self.expect(argument, parameter.type, what)
        return function.result

    def _launch(self, node: tree.Launch) -> SkiffType:
        function, count = node.function, len(node.sizes)
        for size in node.sizes:
            what = "the number of items" if count == 1 else "the size of a dimension"
            self.expect(size, of(Type.I64), what)
        for item in function.parameters[:count]:
            if not fits(item.type, of(Type.I64)):
                message = f"'{item.name}' of '{function.name}' is {describe(item.type)}"
                self.faults.add(node.place, f"{message}, an item is i64")
        pairs = zip(node.arguments, function.parameters[count:], strict=True)
        for number, (argument, parameter) in enumerate(pairs, 1 + count):
            what = f"argument {number} ('{parameter.name}') of '{function.name}'"
            self.expect(argument, parameter.type, what)
        if not unify(function.result, NOTHING):
            found = describe(function.result)
            message = f"'{function.name}' yields {found}, a function of items yields no value"
            self.faults.add(node.place, message)
        return NOTHING

    def _print(self, node: tree.Print) -> SkiffType:
        for value in node.values:
            found = find(self.operand(value))
            if not unify(STRING if isinstance(found, ArrayOf) else Unknown(NUMBERS), found):
                message = (
                    f"what 'print!' prints must be a number or a string, found {describe(found)}"
                )
                self.faults.add(value.place, message)
        return NOTHING

    def _write_byte(self, node: tree.WriteByte) -> SkiffType:
        self.expect(node.value, I32, "what 'write-byte!' writes")
        return NOTHING

    def check_literals(self) -> None:
        """Record the literals that do not fit their inferred types."""
        for literal in self.literals:
            number = literal.number
            if number.suffix is None and self.faults:
                continue  # a fault elsewhere may have given it a wrong type
            type_ = number_type(literal.type)
            if number_bits(number, type_) is not None:
                continue
            text = number.text if len(number.text) <= 40 else number.text[:37] + "..."
            if type_.is_float:
                message = f"{text} is too large for {type_}"
            else:
                smallest, largest = integer_range(type_, number.is_pattern)
                message = f"{text} does not fit {type_} ({smallest} to {largest})"
            self.faults.add(literal.place, message)


_NAMES: dict[type[Node], str] = {
    tree.While: "while",
    tree.Launch: "for-each-item",
    tree.GroupLaunch: "for-each-group",
    tree.Reduce: "reduce",
    tree.Scan: "scan",
    tree.Try: "try",
    tree.Finally: "try",
    tree.Print: "print!",
    tree.WriteByte: "write-byte!",
    tree.WriteString: "write-string!",
}


def _form(node: Node) -> str:
    """A form as messages name it."""
    if isinstance(node, tree.Set | Block):
        return f"'{node.form}'"
    if isinstance(node, Choice):
        return f"'{node.form}' without else" if node.otherwise is None else f"'{node.form}'"
    if isinstance(node, tree.Call):
        return f"'{node.function.name}'"
    if isinstance(node, tree.Direct):
        return f"'{node.row.mnemonic}'"
    if isinstance(node, tree.OnArray):
        return f"'{node.form.name}'"
    if isinstance(node, tree.Map):
        return f"'{node.form}'"
    if isinstance(node, tree.OnStruct):
        return f"'{node.operation.name}'"
    return f"'{_NAMES[type(node)]}'"
