# SPDX-License-Identifier: Apache-2.0
"""The change of a body that has passed all passes into plain form.

A reference becomes a pointer and a length, an offset in bytes an index, a check an error with the
line of the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ferryvm.ir.build import Builder
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Operation,
    Parameter,
    Terminator,
    Value,
)
from ferryvm.ir.operation import DIVISIONS, LENGTH, PLACE, PURE, element_bytes
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.jump_threading import thread_jumps
from ferryvm.ir.use import substitute
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F64, I64, Type
from ferryvm.portable.expression import Expression, Place, mapped
from ferryvm.portable.identifier import identifiers
from ferryvm.portable.interface import (
    ArrayArgument,
    Direction,
    FoldedArgument,
    Interface,
    Result,
    ScalarArgument,
    length_name,
)
from ferryvm.portable.limit import refuse
from ferryvm.portable.member import (
    MemberCode,
)
from ferryvm.portable.plain import LocalArray, PlainFunction, PlainMember
from ferryvm.portable.subject import Subject

FITS = "fits"
"""The name in printed kernels of whether arrays have an element for each item."""

KERNEL_VARIABLES = ("member", "failed", "error", "phase", "first_failed", FITS)
"""Names of variables in printed kernels, which no argument has."""

ERASED = frozenset(
    {"poll", "check_entry", "pay", "report_version", "parallel_if", "continue_launch_if"}
    | {"fail_if_interrupted"}
)
"""Operations of the machine that a plain function does without."""

_OF_ZERO: dict[tuple[object, ...], tuple[int, int]] = {
    (I64, Condition.GT_U): (0, 0),
    (I64, Condition.LE_U): (0, 1),
    (I64, Condition.LT_U): (1, 0),
    (I64, Condition.GE_U): (1, 1),
}
"""Comparisons that C compilers warn of: the operand that decides if it is 0, and the outcome."""


class PlainBody:
    """The change of one body, which has passed all passes, into plain form."""

    def __init__(
        self, subject: Subject, body: Body, name: str, code: MemberCode | None = None
    ) -> None:
        self.subject, self.body, self.name, self.code = subject, body, name, code
        self.arrays: dict[Parameter, LocalArray] = {}
        self.guarded: set[Operation] = set()
        """Operations of plain form that do nothing in a member that has failed."""
        for number, array in enumerate(code.form.arrays if code else ()):
            made = LocalArray(
                f"g{number}", array.element, array.length, not array.is_stored_first, array.size
            )
            self.arrays[Parameter(I64)] = made
        self.pointers: dict[Value, Parameter] = {}
        """The pointer of each array parameter."""
        self.lengths: dict[Value, Parameter] = {}
        self.new: dict[Value, Value] = {}
        self.loaded: set[Value] = set()
        self.stored: set[Value] = set()
        self.errors: dict[Trap, set[int]] = {}
        self.locals: dict[int, Type] = {}
        self.builder = Builder(body.constants)

    def run(self) -> PlainFunction:
        """The function."""
        entry = self.body.blocks[0]
        parameters: list[Parameter] = []
        count = len(self.subject.parameters)
        given, sizes = entry.parameters[:count], entry.parameters[count:]
        for place, parameter in enumerate(given):
            if place in self.subject.folded:
                continue
            if isinstance(self.subject.parameters[place][1], Element):
                self.pointers[parameter] = Parameter(I64)
                self.lengths[parameter] = Parameter(I64)
                parameters += [self.pointers[parameter], self.lengths[parameter]]
            else:
                parameters.append(parameter)
        for block in self.body.blocks:
            self._block(block)
        substitute(self.body.blocks, self.new)
        for block in self.body.blocks:
            for operation in (*block.operations, block.end):
                operation.state = None
        entry.parameters = [*parameters, *sizes]
        remove_dead_code(self.body)
        if self.code is None:  # it would part members in front of barriers
            thread_jumps(self.body)
            remove_dead_code(self.body)
        self._check_references(given)
        return self._function(given)

    def _function(self, arrays: list[Parameter]) -> PlainFunction:
        results, folded = self.subject.results, self.subject.folded
        wanted = [name for name, _ in (*self.subject.parameters, *results)]
        names = identifiers(wanted, self.name, KERNEL_VARIABLES)
        arguments: list[ScalarArgument | ArrayArgument] = []
        pointers: dict[Parameter, ArrayArgument] = {}
        values: list[FoldedArgument] = []
        for place, (parameter, (_, kind)) in enumerate(
            zip(arrays, self.subject.parameters, strict=True)
        ):
            name = names[place]
            if place in folded:
                assert isinstance(kind, Type)
                values.append(FoldedArgument(name, kind, folded[place]))
                continue
            if isinstance(kind, Type):
                arguments.append(ScalarArgument(name, kind))
                continue
            pointer = self.pointers[parameter]
            shape = tuple(
                str(folded[n]) if n in folded else names[n]
                for n in self.subject.shapes.get(place, ())
            )
            argument = ArrayArgument(
                name, kind, self._direction(pointer), shape, place in self.subject.pairs
            )
            pointers[pointer] = argument
            arguments.append(argument)
        given = zip(names[len(arrays) :], results, strict=True)
        made = tuple(Result(name, t) for name, (_, t) in given)
        errors = {kind: tuple(sorted(lines)) for kind, lines in sorted(self.errors.items())}
        interface = Interface(self.name, tuple(arguments), made, errors, folded=tuple(values))
        return PlainFunction(
            self.subject,
            self.body,
            interface,
            pointers,
            self.locals,
            self.arrays,
            self._member(),
            sizes=self._sizes(names),
        )

    def _sizes(self, names: Sequence[str]) -> dict[Parameter, Expression]:
        """The expressions of sizes, with the names of arguments."""

        def named(place: Place) -> Expression:
            name = names[place.number]
            return length_name(name) if place.is_length else name

        found = self.code.sizes if self.code is not None else {}
        return {parameter: mapped(each, named) for parameter, each in found.items()}

    def _member(self) -> PlainMember | None:
        if self.code is None:
            return None
        form, guarded = self.code.form, frozenset(self.guarded)
        orders_all = self.code.orders_all
        return PlainMember(form.member, form.members, form.axes, guarded, orders_all, form.size)

    def _direction(self, pointer: Parameter) -> Direction:
        if pointer in self.stored:
            return Direction.INOUT if pointer in self.loaded else Direction.OUT
        return Direction.IN

    def _check_references(self, arrays: list[Parameter]) -> None:
        """Refuse a body in which a reference is more than the array that a parameter is."""
        gone = {each for each in arrays if each in self.pointers}
        for block in self.body.blocks:
            for operation in (*block.operations, block.end):
                if not gone.isdisjoint(operation.uses()):
                    refuse(
                        self.subject, operation, "a reference is compared, selected or passed on"
                    )

    # --- blocks -----------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        operations, block.operations = block.operations, []
        self.builder.open(block)
        for operation in operations:
            if operation.name in ERASED:
                continue
            self.builder.pc = operation.pc
            first = len(block.operations)
            self._operation(block, operation)
            if self.code is not None and operation in self.code.guarded:
                self._guard(operation, block.operations[first:])
        end = block.end
        if end.name in ("trap", "throw"):
            kind = end.fact(0, Trap) if end.name == "trap" else Trap.UNCAUGHT_EXCEPTION
            block.terminator = Terminator("error", (kind, self._error(kind, end)))
            block.terminator.pc = end.pc

    def _operation(self, block: Block, operation: Operation) -> None:
        if operation.name in PURE:
            self.new[operation] = self._rebuilt(operation)
            return
        change: Callable[[Operation], Value | None] | None = getattr(
            self, f"_do_{operation.name}", None
        )
        if change is None:
            block.operations.append(operation)
            return
        made = change(operation)
        if made is not None:
            self.new[operation] = made

    def _guard(self, operation: Operation, made: Iterable[Operation]) -> None:
        """Guard what has been made of an operation."""
        if operation.name in DIVISIONS:
            now = self.new[operation]
            self.guarded.update([now] if isinstance(now, Operation) else [])
        self.guarded.update(each for each in made if each.name.startswith("array_"))

    def _rebuilt(self, operation: Operation) -> Value:
        """A pure operation of the new operands, simplified."""
        assert operation.type is not None
        operands = tuple(map(self._now, operation.arguments))
        if operation.name == "compare" and operation.static in _OF_ZERO:
            place, outcome = _OF_ZERO[operation.static]
            if operands[place] is self.builder.constant(I64, 0):
                return self.builder.constant(BOOLEAN, outcome)
        return self.builder.pure(operation.name, operation.static, operands, operation.type)

    def _error(self, kind: Trap, operation: Operation) -> int:
        """The line of an error."""
        position = self.subject.place(operation.exit)
        line = position.line if position else 0
        self.errors.setdefault(kind, set()).add(line)
        return line

    def _do_trap_if(self, operation: Operation) -> None:
        kind = operation.fact(0, Trap)
        static = (kind, self._error(kind, operation))
        self.builder.emit(Operation("error_if", None, static, operation.arguments))

    def _do_fail_if(self, operation: Operation) -> None:
        assert self.code is not None
        exit_ = self.code.exits.get(operation)
        if exit_ is not None:  # others end loops, which need no end here
            kind = exit_.fact(0, Trap)
            static = (kind, self._error(kind, exit_))
            self.builder.emit(Operation("fail_if", None, static, operation.arguments))

    def _do_group_array(self, operation: Operation) -> Value:
        return list(self.arrays)[operation.fact(0, int)]

    def _do_cast(self, operation: Operation) -> Value:
        return self._now(operation.arguments[0])

    def _now(self, value: Value) -> Value:
        while value in self.new:
            value = self.new[value]
        return value

    # --- arrays -----------------------------------------------------------------------------

    def _do_header_word(self, operation: Operation) -> Value:
        array = self._now(operation.arguments[0])
        if array not in self.pointers:
            refuse(self.subject, operation, "it accesses an array that is no parameter")
        number = operation.fact(0, int)
        assert number in (LENGTH, PLACE)
        return self.lengths[array] if number == LENGTH else self.pointers[array]

    def _pointer(self, operation: Operation, place: Value) -> Value:
        found = self._now(place)
        if found not in self.pointers.values() and found not in self.arrays:
            refuse(self.subject, operation, "it selects between arrays")
        return found

    def _index(self, elements: Element, offset: Value) -> Value:
        """The index of the element at an offset in bytes, a multiple of its size."""
        shift = elements.shift
        offset = self._now(offset)
        b = self.builder
        if not shift:
            return offset
        amount = b.constant(I64, shift)
        if isinstance(offset, Operation) and offset.name in ("shl", "add"):
            left, right = offset.arguments
            if offset.name == "shl" and right is amount:
                return self._now(left)
            bits = getattr(right, "bits", 1)
            if offset.name == "add" and bits % element_bytes(elements) == 0:
                number = (bits - (1 << 64) if bits >> 63 else bits) >> shift
                return b.add(I64, self._index(elements, left), b.constant(I64, number & I64.mask))
        return b.shr_u(I64, offset, amount)

    def _elements(self, operation: Operation) -> Element:
        found = operation.static[0]
        if not isinstance(found, Element):
            refuse(self.subject, operation, "it uses an array of references")
        return found

    def _place(self, operation: Operation, at: int) -> tuple[Value, Value]:
        """Pointer and index of the elements at a place and an offset among the operands."""
        place, offset = operation.arguments[at : at + 2]
        pointer = self._pointer(operation, place)
        return pointer, self._index(self._elements(operation), offset)

    def _do_element_load(self, operation: Operation) -> Value:
        elements = self._elements(operation)
        at = self._place(operation, 0)
        self.loaded.add(at[0])
        t = elements.type if elements.type.is_float else I64
        loaded = self.builder.emit(Operation("array_load", t, (elements,), at))
        if not t.is_float:
            return loaded
        bits = self.builder.reinterpret(t.integer, t, loaded)
        return bits if t is F64 else self.builder.extend_u(bits)

    def _do_element_store(self, operation: Operation) -> None:
        elements = self._elements(operation)
        at = self._place(operation, 0)
        self.stored.add(at[0])
        value = self._now(operation.arguments[2])
        if elements.type.is_float:
            t = elements.type
            value = value if t is F64 else self.builder.wrap(value)
            value = self.builder.reinterpret(t, t.integer, value)
        self.builder.emit(Operation("array_store", None, (elements,), (*at, value)))

    def _do_canonicalise_elements(self, operation: Operation) -> None:
        elements = self._elements(operation)
        operands: list[Value] = []
        for place in range(0, len(operation.arguments), 3):
            at = self._place(operation, place)
            operands += [*at, self._now(operation.arguments[place + 2])]
        self.builder.emit(Operation("array_canonical", None, (elements,), tuple(operands)))

    def _do_fill_elements(self, operation: Operation) -> None:
        at = self._place(operation, 0)
        self.stored.add(at[0])
        rest = map(self._now, operation.arguments[2:])
        made = Operation("array_fill", None, (self._elements(operation),), (*at, *rest))
        self.builder.emit(made)

    def _do_move_elements(self, operation: Operation) -> None:
        elements = self._elements(operation)
        to, from_ = self._place(operation, 0), self._place(operation, 2)
        self.stored.add(to[0])
        self.loaded.add(from_[0])
        count = self._index(elements, operation.arguments[4])
        self.builder.emit(Operation("array_move", None, (elements,), (*to, *from_, count)))

    def _do_update_element(self, operation: Operation) -> Value:
        return self._update("array_update", operation)

    def _do_compare_exchange_element(self, operation: Operation) -> Value:
        return self._update("array_exchange", operation)

    def _update(self, name: str, operation: Operation) -> Value:
        at = self._place(operation, 0)
        self.stored.add(at[0])
        self.loaded.add(at[0])
        rest = map(self._now, operation.arguments[2:])
        return self.builder.emit(Operation(name, I64, operation.static, (*at, *rest)))

    # --- statics ----------------------------------------------------------------------------

    def _do_static(self, operation: Operation) -> Value:
        number, t = operation.fact(0, int), operation.word_type
        self.locals[number] = t
        return self.builder.emit(Operation("local_get", t, (number,)))

    def _do_set_static(self, operation: Operation) -> None:
        number = operation.fact(0, int)
        (value,) = operation.arguments
        self.locals[number] = value.word_type
        self.builder.emit(Operation("local_set", None, (number,), (value,)))
