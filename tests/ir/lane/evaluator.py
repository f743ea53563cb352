# SPDX-License-Identifier: Apache-2.0
"""Runs bodies of lanes and scalar bodies of items over a memory of their own, in Python.

A value of a body of lanes is a number, or a list of one for each lane. Operations of lanes that do
not take part are run, too, so what is not safe there raises. Where items end, or are suspended,
their words are noted.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ferryvm.ir.graph import Body, Constant, Edge, FrameState, Operation, Value
from ferryvm.ir.operation import PURE, element_bytes
from ferryvm.isa.atomic import updated
from ferryvm.isa.emitter import Atomic
from ferryvm.isa.evaluation import PythonArithmetic
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import I64, Type

_LEAVING = ("leave", "trap", "host", "halt", "throw")


@dataclasses.dataclass
class Memory:
    """Elements by place and offset; what is not there is not to be read."""

    elements: dict[tuple[int, int], int] = dataclasses.field(default_factory=dict)
    headers: dict[tuple[int, int], int] = dataclasses.field(default_factory=dict)
    """Header words, by number and reference."""


class _Arithmetic(PythonArithmetic):
    def canonical(self, t: Type, a: int) -> int:
        return canonical(self, t, a)


Suspended = tuple[int, tuple[int, ...]]
"""An item that has left: its pc and words."""


class _Run:
    """The parts of both evaluators that do not depend on lanes."""

    def __init__(self, body: Body, memory: Memory) -> None:
        self.body, self.memory, self.arithmetic = body, memory, _Arithmetic()
        self.values: dict[Value, Any] = {}
        self.iterations = 0
        """Blocks that were run."""

    def value(self, value: Value) -> Any:
        """A value, which may be virtual."""
        if isinstance(value, Constant):
            return value.bits
        if value not in self.values and isinstance(value, Operation) and value.name == "canonical":
            raw, t = self.value(value.arguments[0]), value.fact(0, Type)
            if isinstance(raw, list):
                return [self.arithmetic.canonical(t, each) for each in raw]
            return self.arithmetic.canonical(t, raw)
        return self.values[value]

    def compute(self, operation: Operation, values: list[int]) -> int:
        """The result of a pure operation."""
        try:
            found: int = getattr(self.arithmetic, operation.name)(*operation.static, *values)
        except (ValueError, OverflowError, ArithmeticError):
            if operation.name in ("to_int_s", "to_int_u"):
                return 0  # any value will do
            raise
        return found

    def update(self, operation: Operation, place: int, offset: int, operand: int) -> None:
        """Update an element of i64."""
        kind, elements = operation.fact(1, Atomic), self.memory.elements
        old = elements[place, offset]
        elements[place, offset] = updated(self.arithmetic, I64, kind, old, operand)

    def take(self, edge: Edge) -> Any:
        """The block that an edge leads to, with its parameters."""
        passed = [self.value(a) for a in edge.arguments]
        self.values.update(zip(edge.block.parameters, passed, strict=True))
        self.iterations += 1
        assert self.iterations < 10_000
        return edge.block


class ItemEvaluator(_Run):
    """Runs one item in its scalar body."""

    def run(self, *arguments: int) -> Suspended | None:
        """The item's words where it left; None if it returned."""
        block = self.body.blocks[0]
        self.values.update(zip(block.parameters, arguments, strict=True))
        while True:
            for operation in block.operations:
                values = [self.value(a) for a in operation.arguments]
                if operation.name in ("trap_if", "continue_launch_if") and values[0]:
                    return self._words(operation.exit)
                self._operation(operation, values)
            end = block.end
            if end.name == "return":
                return None
            if end.name in _LEAVING:
                return self._words(end.exit)
            chosen = 0
            if end.name == "branch":
                chosen = int(not self.value(end.arguments[0]))
            if end.name == "switch":
                chosen = min(self.value(end.arguments[0]), len(end.edges) - 1)
            block = self.take(end.edges[chosen])

    def _operation(self, operation: Operation, values: list[int]) -> None:
        memory = self.memory
        match operation.name:
            case "poll" | "check_entry" | "trap_if" | "continue_launch_if":
                pass
            case "header_word":
                self.values[operation] = memory.headers[operation.fact(0, int), values[0]]
            case "element_load":
                self.values[operation] = memory.elements[values[0], values[1]]
            case "element_store":
                memory.elements[values[0], values[1]] = values[2]
            case "update_element":
                self.values[operation] = memory.elements[values[0], values[1]]
                self.update(operation, *values)
            case _:
                assert operation.name in PURE, operation.name
                self.values[operation] = self.compute(operation, values)

    def _words(self, state: FrameState) -> Suspended:
        return state.pc, tuple(self.value(w) for w in state.words if w is not None)


class LaneEvaluator(_Run):
    """Runs a vector of items in a body of lanes."""

    def __init__(self, body: Body, memory: Memory, lanes: int, polls: int = 1 << 30) -> None:
        """`polls`: those before the interrupt flag is found set."""
        super().__init__(body, memory)
        assert body.varying is not None
        self.varying, self.lanes, self.polls = body.varying, lanes, polls
        self.suspended: dict[int, Suspended] = {}

    def run(self, first: int, *arguments: int) -> dict[int, Suspended]:
        """The suspended items, by lane."""
        block = self.body.blocks[0]
        self.values.update(zip(block.parameters, (first, *arguments), strict=True))
        while True:
            for operation in block.operations:
                values = [self.value(a) for a in operation.arguments]
                result = self._operation(operation, values)
                if result is not None:
                    self.values[operation] = result
                if operation.name in ("suspend", "poll_lanes"):
                    is_last = operation.static[-1]
                    if is_last and len(self.suspended) == self.lanes:
                        return self.suspended
            end = block.end
            if end.name == "return":
                return self.suspended
            chosen = 0
            if end.name == "branch":
                chosen = int(not self.value(end.arguments[0]))
            if end.name == "switch":
                chosen = min(self.value(end.arguments[0]), len(end.edges) - 1)
            block = self.take(end.edges[chosen])

    def _each(self, value: Any) -> list[int]:
        return value if isinstance(value, list) else [value] * self.lanes

    def _operation(self, operation: Operation, values: list[Any]) -> Any:
        rule = getattr(self, f"do_{operation.name}", None)
        if rule is not None:
            return rule(operation, *values)
        assert operation.name in PURE, operation.name
        if operation not in self.varying:
            return self.compute(operation, values)
        columns = zip(*(self._each(value) for value in values), strict=True)
        return [self.compute(operation, [*column]) for column in columns]

    def do_ramp(self, operation: Operation, first: int, stride: int) -> list[int]:
        mask = operation.fact(0, Type).mask
        return [first + lane * stride & mask for lane in range(self.lanes)]

    def do_safe_divisor(self, operation: Operation, mask: Any, by: Any) -> list[int]:
        return [each if m else 1 for m, each in zip(self._each(mask), self._each(by), strict=True)]

    def do_any_lane(self, operation: Operation, mask: Any) -> int:
        return int(any(self._each(mask)))

    def do_suspend(self, operation: Operation, mask: Any, p: Any) -> list[int]:
        mask, p = self._each(mask), self._each(p)
        for lane in range(self.lanes):
            if mask[lane] and p[lane]:
                self._leave(operation, lane)
        return [int(m and not q) for m, q in zip(mask, p, strict=True)]

    def do_poll_lanes(self, operation: Operation, mask: Any) -> list[int]:
        self.polls -= 1
        return self.do_suspend(operation, mask, int(self.polls < 0)) if self.polls < 0 else mask

    def _leave(self, operation: Operation, lane: int) -> None:
        assert lane not in self.suspended, "a lane that has left takes part"
        state = operation.exit
        words = [self._each(self.value(w))[lane] for w in state.words if w is not None]
        self.suspended[lane] = state.pc, tuple(words)

    def do_header_word(self, operation: Operation, reference: int) -> int:
        number = operation.fact(0, int)
        return 0 if not reference else self.memory.headers[number, reference]

    def do_header_each(self, operation: Operation, mask: Any, reference: Any) -> list[int]:
        number, known = operation.fact(0, int), self.memory.headers
        columns = zip(self._each(mask), self._each(reference), strict=True)
        return [known[number, each] if m else 0 for m, each in columns]

    def do_element_load(self, operation: Operation, place: int, offset: int) -> int:
        if (place, offset) == (0, 0):
            return 0xDEAD  # the start of the space
        return self.memory.elements[place, offset]

    def do_load_each(self, operation: Operation, mask: Any, place: Any, offset: Any) -> list[int]:
        columns = zip(self._each(mask), self._each(place), self._each(offset), strict=True)
        return [self.memory.elements[p, o] if m else 0 for m, p, o in columns]

    def do_store_each(
        self, operation: Operation, mask: Any, place: Any, offset: Any, value: Any
    ) -> None:
        columns = (self._each(each) for each in (mask, place, offset, value))
        for m, p, o, v in zip(*columns, strict=True):
            if m:
                self.memory.elements[p, o] = v

    def do_update_each(
        self, operation: Operation, mask: Any, place: Any, offset: Any, operand: Any
    ) -> None:
        columns = (self._each(each) for each in (mask, place, offset, operand))
        for m, p, o, v in zip(*columns, strict=True):
            if m:
                self.update(operation, p, o, v)

    def _consecutive(self, operation: Operation, offset: int) -> list[int]:
        elements = operation.static[0]
        size = element_bytes(elements)  # type: ignore[arg-type]  # verified
        return [offset + lane * size for lane in range(self.lanes)]

    def do_load_consecutive(
        self, operation: Operation, mask: Any, place: int, offset: int
    ) -> list[int]:
        return self.do_load_each(operation, mask, place, self._consecutive(operation, offset))

    def do_store_consecutive(
        self, operation: Operation, mask: Any, place: int, offset: int, value: Any
    ) -> None:
        self.do_store_each(operation, mask, place, self._consecutive(operation, offset), value)

    def _heap(self, operation: Operation, address: int) -> list[int]:
        return [address + lane * operation.fact(0, int) for lane in range(self.lanes)]

    def do_heap_load_each(self, operation: Operation, mask: Any, address: Any) -> list[int]:
        return self.do_load_each(operation, mask, -1, address)

    def do_heap_load_consecutive(self, operation: Operation, mask: Any, address: int) -> list[int]:
        return self.do_load_each(operation, mask, -1, self._heap(operation, address))

    def do_heap_store_each(self, operation: Operation, mask: Any, address: Any, value: Any) -> None:
        self.do_store_each(operation, mask, -1, address, value)

    def do_heap_store_consecutive(
        self, operation: Operation, mask: Any, address: int, value: Any
    ) -> None:
        self.do_store_each(operation, mask, -1, self._heap(operation, address), value)

    def do_field_each(self, operation: Operation, mask: Any, reference: Any) -> list[int]:
        field = operation.fact(1, int)
        return self.do_load_each(operation, mask, reference, [field] * self.lanes)

    def do_field_store_each(
        self, operation: Operation, mask: Any, reference: Any, value: Any
    ) -> None:
        self.do_store_each(operation, mask, reference, [operation.fact(1, int)] * self.lanes, value)
