# SPDX-License-Identifier: Apache-2.0
"""The verifier of plain form: a function that passes has no machine left, and is as its interface
says.

It runs for each export, before a target prints the function: a fault of a pass would otherwise be
code that golden vectors find at the receiver, or do not. The shapes of pure operations are those of
the IR.
"""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Constant,
    Operation,
    Parameter,
    Terminator,
    Value,
    ValueType,
)
from ferryvm.ir.operation import PURE, AnyType, IrError, computed_types
from ferryvm.ir.text import operation_text
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Atomic, Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64
from ferryvm.portable.interface import ArrayArgument, Direction
from ferryvm.portable.plain import LocalArray, PlainFunction

_POINTER = "pointer"
_Operand = ValueType | str
"""The type of an operand, or that it is a pointer."""

_SAME = ((I64, Condition.EQ), (I64, Condition.NE))
"""Comparisons that two pointers may have."""

_ENDS = {"jump": 1, "branch": 2, "switch": None, "return": 0, "error": 0}
"""Terminators by their edges; None: one or more."""

_READS = {"array_load": (0,), "array_move": (2,), "array_update": (0,), "array_exchange": (0,)}
"""Pointers whose elements are read, by their places among the operands."""

_WRITES = {
    **dict.fromkeys(("array_store", "array_fill", "array_move", "array_update"), (0,)),
    "array_exchange": (0,),
}
"""Pointers whose elements are written."""


def verify_plain(function: PlainFunction) -> None:
    """Raise IrError, which names block and operation, for the first fault of a function."""
    _Check(function).run()


class _Check:
    def __init__(self, function: PlainFunction) -> None:
        self.function, self.body = function, function.body
        self.block: Block | None = None
        self.operation: Operation | None = None

    def _fault(self, what: str) -> IrError:
        where = [f"plain form of {self.function.interface.name}"]
        if self.block is not None:
            where.append(f"block {self.block.label}")
        if self.operation is not None:
            where.append(f"`{operation_text(self.body, self.operation)}`")
        return IrError(f"{', '.join(where)}: {what}")

    def run(self) -> None:
        """Check all of it."""
        self._parameters()
        places = {*self.body.blocks}
        for block in self.body.blocks:
            self.block = block
            if block.terminator is None:
                raise self._fault("it has no terminator")
            if any(edge.block not in places for edge in block.end.edges):
                raise self._fault("it leads to a block that is not in the function")
        graph = ControlFlowGraph(self.body)
        visible: set[Value] = {*self.body.constants.values(), *self.function.arrays}
        above: list[tuple[int, list[Value]]] = []
        for rank, number in enumerate(graph.preorder()):
            while above and above[-1][0] <= rank:
                visible.difference_update(above.pop()[1])
            defined = self._contents(graph.blocks[number], visible)
            above.append((graph.interval(number)[1], defined))

    def _parameters(self) -> None:
        """The parameters of the entry are those of the interface."""
        parameters = iter(self.body.blocks[0].parameters)
        for argument in self.function.interface.arguments:
            first = next(parameters, None)
            if isinstance(argument, ArrayArgument):
                if first is None or self.function.pointers.get(first) != argument:
                    raise self._fault(f"{argument.name!r} has no pointer")
                first = next(parameters, None)
            wanted = I64 if isinstance(argument, ArrayArgument) else argument.type
            if first is None or first.type is not wanted:
                raise self._fault(f"{argument.name!r} has no parameter of type {wanted}")
        if any(each not in self.function.sizes for each in parameters):
            raise self._fault("it has more parameters than the interface")

    def _contents(self, block: Block, visible: set[Value]) -> list[Value]:
        self.block = block
        defined: list[Value] = [*block.parameters]
        visible.update(defined)
        for operation in (*block.operations, block.end):
            self.operation = operation
            if operation.state is not None:
                raise self._fault("no state expected")
            for value in operation.uses():
                if value not in visible:
                    known = "a constant of its own" if isinstance(value, Constant) else "a value"
                    raise self._fault(f"{known} that is defined on every path expected")
            if isinstance(operation, Terminator) != (operation is block.end):
                raise self._fault("a terminator is the last operation of a block, and no other")
            if isinstance(operation, Terminator):
                self._end(operation)
            else:
                self._operation(operation)
            if operation.type is not None:
                visible.add(operation)
                defined.append(operation)
        self.operation = None
        return defined

    def _match(self, values: Sequence[Value], wanted: Sequence[_Operand]) -> None:
        if len(values) != len(wanted):
            raise self._fault(f"{len(wanted)} operands expected, found {len(values)}")
        pointers = self.function.pointers.keys() | self.function.arrays.keys()
        for value, t in zip(values, wanted, strict=True):
            is_pointer = isinstance(value, Parameter) and value in pointers
            if is_pointer != (t == _POINTER):
                raise self._fault(
                    f"a {t} expected, found a {'pointer' if is_pointer else 'number'}"
                )
            if t != _POINTER and value.type is not t:
                raise self._fault(f"{t} expected, found {value.type}")

    def _operation(self, operation: Operation) -> None:
        name = operation.name
        if name == "compare" and operation.static in _SAME and self._are_pointers(operation):
            result: ValueType | None = BOOLEAN
        elif name in PURE:
            computed, made = computed_types(name, operation.static)
            self._match(operation.arguments, [_resolved(t, operation) for t in computed])
            result = _resolved(made, operation)
        else:
            shape = getattr(self, f"_of_{name}", None)
            if shape is None:
                raise self._fault("it is no operation of plain form")
            operands, result = shape(operation)
            self._match(operation.arguments, operands)
            self._directions(operation)
        if operation.type is not result:
            raise self._fault(f"{result or 'no value'} expected, found {operation.type}")

    def _are_pointers(self, operation: Operation) -> bool:
        """True if two arrays are compared, which a loop may have a version for."""
        return all(each in self.function.pointers for each in operation.arguments)

    def _directions(self, operation: Operation) -> None:
        """Arrays are used as the interface says, with elements of their kind."""
        for places, excluded in ((_READS, Direction.OUT), (_WRITES, Direction.IN)):
            for place in places.get(operation.name, ()):
                pointer = operation.arguments[place]
                assert isinstance(pointer, Parameter)
                argument = self.function.pointers.get(pointer)
                if argument is not None and argument.direction is excluded:
                    raise self._fault(f"{argument.name!r} is {excluded.value}")
        arrays: dict[Parameter, ArrayArgument | LocalArray] = {
            **self.function.pointers,
            **self.function.arrays,
        }
        for value in operation.arguments:
            if isinstance(value, Parameter) and value in arrays:
                array = arrays[value]
                if operation.static[0] is not array.element:
                    raise self._fault(f"{array.name!r} has elements of {array.element}")

    def _elements(self, operation: Operation) -> Element:
        found = operation.static[0] if operation.static else None
        if not isinstance(found, Element):
            raise self._fault("a kind of elements expected")
        return found

    def _error(self, operation: Operation) -> None:
        kind, line = operation.static
        if not isinstance(kind, Trap) or not isinstance(line, int):
            raise self._fault("an error and a line expected")
        if line not in self.function.interface.errors.get(kind, ()):
            raise self._fault("the interface has no such error at that line")

    # --- shapes -----------------------------------------------------------------------------

    def _of_array_load(self, operation: Operation) -> tuple[list[_Operand], ValueType | None]:
        return [_POINTER, I64], _word(self._elements(operation))

    def _of_array_store(self, operation: Operation) -> tuple[list[_Operand], ValueType | None]:
        return [_POINTER, I64, _word(self._elements(operation))], None

    def _of_array_canonical(self, operation: Operation) -> tuple[list[_Operand], ValueType | None]:
        elements = self._elements(operation)
        if not elements.type.is_float:
            raise self._fault("elements that are floats expected")
        groups = max(1, len(operation.arguments) // 3)
        return [_POINTER, I64, elements.type] * groups, None

    def _of_array_fill(self, operation: Operation) -> tuple[list[_Operand], ValueType | None]:
        self._elements(operation)
        return [_POINTER, I64, I64, I64], None

    def _of_array_move(self, operation: Operation) -> tuple[list[_Operand], ValueType | None]:
        self._elements(operation)
        return [_POINTER, I64, _POINTER, I64, I64], None

    def _of_array_update(self, operation: Operation) -> tuple[list[_Operand], ValueType | None]:
        self._elements(operation)
        if not isinstance(operation.static[1], Atomic):
            raise self._fault("an atomic update expected")
        return [_POINTER, I64, I64], I64

    def _of_array_exchange(self, operation: Operation) -> tuple[list[_Operand], ValueType | None]:
        self._elements(operation)
        return [_POINTER, I64, I64, I64], I64

    def _of_local_get(self, operation: Operation) -> tuple[list[_Operand], ValueType | None]:
        return [], self._local(operation)

    def _of_local_set(self, operation: Operation) -> tuple[list[_Operand], ValueType | None]:
        return [self._local(operation)], None

    def _local(self, operation: Operation) -> ValueType:
        found = self.function.locals.get(operation.fact(0, int))
        if found is None:
            raise self._fault("there is no such local variable")
        return found

    def _of_error_if(self, operation: Operation) -> tuple[list[_Operand], ValueType | None]:
        self._error(operation)
        return [BOOLEAN], None

    def _of_fail_if(self, operation: Operation) -> tuple[list[_Operand], ValueType | None]:
        self._in_member()
        return self._of_error_if(operation)

    def _of_barrier(self, operation: Operation) -> tuple[list[_Operand], ValueType | None]:
        self._in_member()
        return [], None

    def _of_member(self, operation: Operation) -> tuple[list[_Operand], ValueType | None]:
        self._in_member()
        return [], I64

    def _of_member_index(self, operation: Operation) -> tuple[list[_Operand], ValueType | None]:
        self._in_member()
        return [], I64

    def _of_has_failed(self, operation: Operation) -> tuple[list[_Operand], ValueType | None]:
        self._in_member()
        return [], BOOLEAN

    def _in_member(self) -> None:
        if self.function.member is None:
            raise self._fault("the code of a member expected")

    def _end(self, end: Terminator) -> None:
        if end.name not in _ENDS:
            raise self._fault("it is no terminator of plain form")
        count = _ENDS[end.name]
        if not end.edges if count is None else len(end.edges) != count:
            raise self._fault(f"{count or 'one or more'} edges expected, found {len(end.edges)}")
        operands: dict[str, list[_Operand]] = {"branch": [BOOLEAN], "switch": [I64]}
        operands["return"] = [result.type for result in self.function.interface.results]
        self._match(end.arguments, operands.get(end.name, []))
        if end.name == "error":
            self._error(end)
        for edge in end.edges:
            self._match(edge.arguments, [each.type for each in edge.block.parameters])


def _resolved(t: ValueType | AnyType, operation: Operation) -> ValueType:
    """A type of the IR's shapes, where the type of the operation decides."""
    assert operation.type is not None
    return operation.type if isinstance(t, AnyType) else t


def _word(elements: Element) -> ValueType:
    """The type of an element as a value."""
    return elements.type if elements.type.is_float else I64
