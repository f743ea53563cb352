# SPDX-License-Identifier: Apache-2.0
"""Plain form as C11: one function with plain arguments. `ferryvm.portable.c.text` adds what it
needs.

It is printed by the printer of `ferryvm.ir.c`, so arithmetic is spelled once; arrays, errors and
the head of the function are printed here. Integers are unsigned in it, since their arithmetic
wraps.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from ferryvm.ir.c.context import PrintingContext, harmless, spelled
from ferryvm.ir.c.function import FunctionPrinter
from ferryvm.ir.c.scope import FunctionScope
from ferryvm.ir.graph import Operation, Parameter, Terminator
from ferryvm.ir.rule import Rules
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Atomic
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64
from ferryvm.portable.c.declaration import error_name, prototype
from ferryvm.portable.c.inlining import LONGEST, inlined_values, operand, tidy
from ferryvm.portable.c.spelling import C_SPELLING, Spelling
from ferryvm.portable.manifest import version
from ferryvm.portable.plain import PlainFunction


def origin(function: PlainFunction) -> str:
    """The function, its place in its source, and the version that has exported it, in one line."""
    subject = function.subject
    position = subject.position(subject.entry)
    where = f" in {file_name(position.file)}:{position.line}" if position else ""
    return harmless(
        f"{function.interface.name}: exported by ferryvm {version()} from {subject.origin}{where}"
    )


def file_name(path: str) -> str:
    """The last part of a path."""
    return path.replace("\\", "/").rpartition("/")[2]


class PlainPrinter(FunctionPrinter):
    """Prints a function in plain form."""

    spelling = C_SPELLING

    def __init__(self, shared: PrintingContext, function: PlainFunction) -> None:
        super().__init__(shared, function.body, None, function.interface.name)
        self.plain = function
        self.rules = Rules(PlainOperations(self.scope, function, self.spelling), self.copies())
        self._inlined = inlined_values(function.body)
        self._line = 0
        """The line of the last comment."""

    def copies(self) -> object:
        """The part that prints copies of elements."""
        return Copies(self.scope)

    def head(self) -> str:
        """The head of the function."""
        return prototype(self.plain.interface, self.spelling)

    def text(self) -> str:
        """The function."""
        self._name_parameters()
        joined = [p for block in self.structure.order[1:] for p in block.parameters]
        for place, parameter in enumerate(joined):
            self.names.setdefault(parameter, f"p{place}")
        self._place(self.body.blocks[0], None)
        lines = [self.head(), "{"]
        lines += [f"    {line}" for line in self._prologue(joined)]
        lines += map(tidy, self.lines.text(self.names, self.scope.types))
        return "\n".join([*lines, "}", ""])

    def _name_parameters(self) -> None:
        """Names of arguments; integers have unsigned copies."""
        interface = self.plain.interface
        for parameter, array in self.plain.arrays.items():
            self.names[parameter] = array.name
        self._used = {
            value
            for block in self.body.blocks
            for o in (*block.operations, block.end)
            for value in o.uses()
        }
        parameters = iter(self.body.blocks[0].parameters)
        self._copies: list[str] = []
        for argument in interface.arguments:
            self._name(next(parameters), argument.name, argument in interface.integers)
            if argument in interface.arrays:
                self._name(next(parameters), argument.length_name, True)

    def _name(self, parameter: Parameter, given: str, is_integer: bool) -> None:
        """Name a parameter as it is in the head; an integer has an unsigned copy."""
        self.names[parameter] = f"{given}_" if is_integer else given
        if parameter not in self._used:
            self._copies.append(f"(void){given};")
        elif is_integer:
            c = spelled(self.dialect, parameter.type)
            self._copies.append(f"const {c} {given}_ = ({c}){given};")

    def _prologue(self, joined: Sequence[Parameter]) -> list[str]:
        declared = [f"{self.dialect.types[t]} s{n};" for n, t in sorted(self.plain.locals.items())]
        if self.plain.member is None:
            declared += [
                f"{self.spelling.element(array.element)} {array.name}[{max(array.length, 1)}];"
                for array in self.plain.arrays.values()
            ]
        if all(block.end.name != "return" for block in self.body.blocks):
            declared += [f"(void){result.name};" for result in self.plain.interface.results]
        return [*self._copies, *declared, *super()._prologue(joined)]

    def _comment(self, operation: Operation) -> None:
        if operation in self._inlined:
            return
        position = self.plain.subject.position(operation.pc) if operation.pc >= 0 else None
        if position is not None and position.line != self._line:
            self._line = position.line
            self.lines.add(f"/* {harmless(file_name(position.file))}:{position.line} */")

    def _operation(self, operation: Operation) -> None:
        if operation in self._inlined and not self.groups.is_guarded(operation):
            self._inline(operation)
            return
        if operation.type is None or operation in self._used:
            super()._operation(operation)
            return
        rule = self.rules.get(operation.name)
        assert rule is not None  # only the result of an effect is not used
        result = rule(operation, *map(self.scope.value, operation.arguments))
        is_guarded = self.groups.is_guarded(operation)
        if is_guarded:
            self.groups.open()
        self.lines.add(f"(void){result};")
        if is_guarded:
            self.lines.close()

    def _inline(self, operation: Operation) -> None:
        """Let the only use of a value have its expression, unless that is long."""
        text = self._emit(operation, [self.scope.value(a) for a in operation.arguments])
        if operation.name == "array_load" and operation.type is I64:
            widened = self.scope.arithmetic.cast(I64, text)
            text = text if text.startswith(widened.removesuffix(text)) else widened
        if len(text) > LONGEST:
            self.scope.define(operation, text)
        else:
            self.names[operation] = operand(text)

    def _leave(self, end: Terminator) -> None:
        assert end.name == "error"
        self.lines.add(error_text(self.plain, end))

    def _return(self, end: Terminator, values: Sequence[str]) -> None:
        types = self.dialect.signed
        for result, value in zip(self.plain.interface.results, values, strict=True):
            cast = "" if result.type.is_float else f"({types[result.type]})"
            self.lines.add(f"*{result.name} = {cast}{value};")
        self.lines.add("return 0;")


def error_text(function: PlainFunction, operation: Operation) -> str:
    """The statement that returns with an error."""
    return f"return {error_code(function, operation)};"


def error_code(function: PlainFunction, operation: Operation) -> str:
    """The status for an error."""
    kind, line = operation.fact(0, Trap), operation.fact(1, int)
    name = error_name(function.interface, kind)
    return f"{name} | {line} << 8" if line else name


class PlainOperations:
    """Prints the operations that only plain form has."""

    def __init__(
        self,
        scope: FunctionScope,
        function: PlainFunction,
        spelling: Spelling,
        needless: Container[Operation] = (),
        unless: str = "",
    ) -> None:
        """`needless`: checks that are made only if something holds (`unless`)."""
        self.scope, self.function, self.spelling = scope, function, spelling
        self._needless, self._unless = needless, unless

    def _element(self, pointer: str, index: str) -> str:
        return f"{pointer}[{index}]"

    def do_array_load(self, operation: Operation, pointer: str, index: str) -> str:
        elements = operation.fact(0, Element)
        text = self._element(pointer, index)
        return f"(u{self.spelling.element(elements)}){text}" if elements.is_signed else text

    def do_array_store(self, operation: Operation, pointer: str, index: str, value: str) -> None:
        elements = operation.fact(0, Element)
        cast = "" if elements.type.is_float else f"({self.spelling.element(elements)})"
        self.scope.lines.add(f"{self._element(pointer, index)} = {cast}{value};")

    def do_array_canonical(self, operation: Operation, *operands: str) -> None:
        scope, t = self.scope, operation.fact(0, Element).type
        nans = scope.arithmetic.any_nan(t, operands[2::3])
        scope.lines.open(f"if ({scope.helper('unlikely', nans)}) {{")
        for pointer, index, value in zip(
            operands[::3], operands[1::3], operands[2::3], strict=True
        ):
            made = scope.arithmetic.canonical(t, value)
            scope.lines.add(f"{self._element(pointer, index)} = {made};")
        scope.lines.close()

    def do_array_fill(
        self, operation: Operation, pointer: str, index: str, count: str, value: str
    ) -> None:
        elements, at = operation.fact(0, Element), self.scope.name("k")
        word, lines = self.scope.dialect.word, self.scope.lines
        lines.open(f"for ({word} {at} = 0; {at} < {count}; ++{at}) {{")
        made = self._from_bits(elements, value)
        lines.add(f"{self._element(pointer, f'{index} + {at}')} = {made};")
        lines.close()

    def _from_bits(self, elements: Element, value: str) -> str:
        """An element of these low bytes."""
        if elements.type.is_float:
            return self.scope.arithmetic.from_slot(elements.type, value)
        return f"({self.spelling.element(elements)}){value}"

    def _address(self, pointer: str, index: str) -> str:
        return f"{self.spelling.address}({pointer} + {index})"

    def do_array_update(self, operation: Operation, pointer: str, index: str, value: str) -> str:
        name = operation.fact(1, Atomic).value
        return self._update(operation, name, pointer, index, value)

    def do_array_exchange(
        self, operation: Operation, pointer: str, index: str, expected: str, value: str
    ) -> str:
        return self._update(operation, "compare_exchange", pointer, index, expected, value)

    def _update(
        self, operation: Operation, name: str, pointer: str, index: str, *operands: str
    ) -> str:
        elements, group = operation.fact(0, Element), self.spelling.group
        if group and operation.arguments[0] in self.function.arrays:
            place = f"({group}uchar *){pointer}", f"({index}) << {elements.shift}"
            return self.scope.helper(f"group_{name}_{elements.bytes}", *place, *operands)
        address = self._address(pointer, index)
        return self.scope.helper(f"object_{name}_{elements.bytes}", address, *operands)

    def do_local_get(self, operation: Operation) -> str:
        return f"s{operation.fact(0, int)}"

    def do_local_set(self, operation: Operation, value: str) -> None:
        self.scope.lines.add(f"s{operation.fact(0, int)} = {value};")

    def do_error_if(self, operation: Operation, condition: str) -> None:
        lines = self.scope.lines
        if operation in self._needless:
            condition = f"{self._unless} && {operand(condition)}"
        lines.open(f"if ({self.scope.helper('unlikely', condition)}) {{")
        lines.add(error_text(self.function, operation))
        lines.close()


class Copies:
    """Prints copies of elements."""

    def __init__(self, scope: FunctionScope) -> None:
        self.scope = scope

    def do_array_move(
        self, operation: Operation, to: str, at: str, from_: str, first: str, count: str
    ) -> None:
        self.scope.lines.open(f"if ({count} != 0) {{")
        size = f"{count} * sizeof *{to}"
        self.scope.lines.add(f"__builtin_memmove({to} + {at}, {from_} + {first}, {size});")
        self.scope.lines.close()
