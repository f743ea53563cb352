# SPDX-License-Identifier: Apache-2.0
"""Plain form as WebAssembly code.

Each value is a local variable. Control flow is nested after the dominator tree (Ramsey: Beyond
Relooper, ICFP 2022): a join is a label of a `block` around the code that leads to it, the head of a
loop a label of a `loop`. Bodies of the region IR are reducible, so nothing else is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferryvm.errors import Position
from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.function_body import expand
from ferryvm.ir.graph import BOOLEAN, Block, Constant, Edge, Operation, Parameter, Terminator, Value
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Atomic, Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import CANONICAL_NAN, I32, I64, Type
from ferryvm.portable.interface import ArrayArgument
from ferryvm.portable.plain import PlainFunction
from ferryvm.portable.refusal import ExportError
from ferryvm.portable.wasm.encode import Instruction

_PLAIN = {
    "fadd": "add",
    "fsub": "sub",
    "fmul": "mul",
    "fdiv": "div",
    "fsqrt": "sqrt",
    "fceil": "ceil",
    "ffloor": "floor",
    "ftrunc": "trunc",
    "fnearest": "nearest",
    "bit_and": "and",
    "bit_or": "or",
    "bit_xor": "xor",
    **{name: name for name in ("add", "sub", "mul", "div_s", "div_u", "rem_s", "rem_u")},
    **{name: name for name in ("shl", "shr_s", "shr_u", "clz", "ctz", "popcnt")},
}
"""Operations that have an instruction for their type."""

_FIXED = {
    "all": "i32.and",
    "any": "i32.or",
    "none": "i32.eqz",
    "wrap": "i32.wrap_i64",
    "extend_s": "i64.extend_i32_s",
    "extend_u": "i64.extend_i32_u",
    "promote": "f64.promote_f32",
    "demote": "f32.demote_f64",
}
"""Operations that are one instruction."""

_UPDATED = {Atomic.ADD: "i64.add", Atomic.AND: "i64.and", Atomic.OR: "i64.or"}


class FunctionCode:
    """The code of one function."""

    def __init__(self, function: PlainFunction) -> None:
        self.function = function
        while expand(function.body):
            pass
        remove_dead_code(function.body)
        self.body = function.body
        self.code: list[Instruction] = []
        self.parameters: list[Type] = []
        self.locals: list[Type] = []
        self._numbers: dict[Value, int] = {}
        self._statics: dict[int, int] = {}
        self._pointers = {*function.pointers, *function.arrays}
        self.reserved = 0
        """Bytes at the start of memory in which the function has arrays of its own."""
        self._labels: list[tuple[Block | None, bool]] = []
        """Open blocks, the innermost last: what a branch to it leads to."""
        self._declare()
        self._graph = graph = ControlFlowGraph(self.body)
        self._children: dict[Block, list[Block]] = {block: [] for block in graph.blocks}
        self._is_join: set[Block] = set()
        self._is_head: set[Block] = set()
        for place, block in enumerate(graph.blocks):
            forward = [source for source, _ in graph.incoming[place] if source < place]
            if len(forward) < len(graph.incoming[place]):
                self._is_head.add(block)
            if len(forward) > 1:
                self._is_join.add(block)
            if place:
                self._children[graph.blocks[graph.dominators.parent(place)]].append(block)
        self._tree(self.body.blocks[0])
        self._add("unreachable")

    def _declare(self) -> None:
        parameters = iter(self.body.blocks[0].parameters)
        for argument in self.function.interface.arguments:
            parameter = next(parameters)
            is_array = isinstance(argument, ArrayArgument)
            self._numbers[parameter] = len(self.parameters)
            self.parameters.append(I32 if is_array else parameter.word_type)
            if is_array:
                self._numbers[next(parameters)] = len(self.parameters)
                self.parameters.append(I64)
        self._results = len(self.parameters)
        self.parameters += [I32] * len(self.function.interface.results)
        for number, t in self.function.locals.items():
            self._statics[number] = self._local(t)
        for pointer, array in self.function.arrays.items():
            self._numbers[pointer] = self._local(I32)
            self._add("i32.const", self.reserved)
            self._add("local.set", self._numbers[pointer])
            self.reserved += array.element.bytes * array.length + 7 & ~7
        for block in self.body.blocks[1:]:
            for parameter in block.parameters:
                self._define(parameter)

    def _local(self, t: Type) -> int:
        self.locals.append(t)
        return len(self.parameters) + len(self.locals) - 1

    def _define(self, value: Value) -> int:
        t = I32 if value.type is BOOLEAN else value.word_type
        self._numbers[value] = self._local(t)
        return self._numbers[value]

    def _add(self, name: str, *immediates: int) -> None:
        self.code.append((name, immediates))

    def _push(self, value: Value) -> None:
        if isinstance(value, Constant):
            t = I32 if value.type is BOOLEAN else value.word_type
            self._add(f"{t.value}.const", value.bits)
            return
        self._add("local.get", self._numbers[value])
        if isinstance(value, Parameter) and value in self._pointers:
            self._add("i64.extend_i32_u")

    # --- nesting ----------------------------------------------------------------------------

    def _tree(self, block: Block) -> None:
        """The code of a block and of those that it dominates; control never reaches its end."""
        if block in self._is_head:
            self._open("loop", block)
        joins = [child for child in self._children[block] if child in self._is_join]
        for join in reversed(joins):  # the outermost is the last in the order
            self._open("block", join)
        for operation in block.operations:
            self._operation(operation)
        self._terminator(block.end)
        for join in joins:
            self._close()
            self._tree(join)
        if block in self._is_head:
            self._close()

    def _open(self, name: str, label: Block | None) -> None:
        self._add(name)
        self._labels.append((label, name == "loop"))

    def _close(self) -> None:
        self._add("end")
        self._labels.pop()

    def _edge(self, edge: Edge) -> None:
        """Pass the arguments of an edge, and go there."""
        block = edge.block
        pairs = zip(block.parameters, edge.arguments, strict=True)
        moved = [(p, a) for p, a in pairs if p is not a]
        for _, argument in moved:
            self._push(argument)
        for parameter, _ in reversed(moved):
            self._add("local.set", self._numbers[parameter])
        is_back = edge.block in self._is_head and any(
            label is block and is_loop for label, is_loop in self._labels
        )
        if not is_back and block not in self._is_join:
            self._tree(block)
            return
        for depth, (label, is_loop) in enumerate(reversed(self._labels)):
            if label is block and is_loop == is_back:
                self._add("br", depth)
                return
        raise AssertionError(block.label)

    def _terminator(self, end: Terminator) -> None:
        match end.name:
            case "jump":
                self._edge(end.edges[0])
            case "branch":
                self._push(end.arguments[0])
                self._either(end.edges[0])
                self._edge(end.edges[1])
            case "switch":
                for number, edge in enumerate(end.edges[:-1]):
                    self._push(end.arguments[0])
                    self._add("i64.const", number)
                    self._add("i64.eq")
                    self._either(edge)
                self._edge(end.edges[-1])
            case "return":
                for place, value in enumerate(end.arguments):
                    self._add("local.get", self._results + place)
                    self._push(value)
                    t = value.word_type
                    self._add(f"{t.value}.store", (t.bits // 8).bit_length() - 1, 0)
                self._add("i32.const", 0)
                self._add("return")
            case _:
                self._error(end)

    def _either(self, edge: Edge) -> None:
        """Take an edge if the condition on the stack holds."""
        self._open("if", None)
        self._edge(edge)
        self._close()

    def _error(self, operation: Operation) -> None:
        kind, line = operation.fact(0, Trap), operation.fact(1, int)
        self._add("i32.const", int(kind) | line << 8)
        self._add("return")

    # --- operations -------------------------------------------------------------------------

    def _operation(self, operation: Operation) -> None:
        rule: Callable[..., None] | None = getattr(self, f"_do_{operation.name}", None)
        if rule is not None:
            rule(operation)
        else:
            for argument in operation.arguments:
                self._push(argument)
            self._pure(operation)
        if operation.type is not None:
            self._add("local.set", self._define(operation))

    def _pure(self, operation: Operation) -> None:
        name, static = operation.name, operation.static
        types = [item for item in static if isinstance(item, Type)]
        if name in _FIXED:
            self._add(_FIXED[name])
        elif name in _PLAIN:
            self._add(f"{types[0].value}.{_PLAIN[name]}")
        elif name == "compare":
            self._add(f"{types[0].value}.{operation.fact(1, Condition).value}")
        elif name in ("to_float_s", "to_float_u"):
            self._add(f"{types[0].value}.convert_{types[1].value}_{name[-1]}")
        elif name in ("to_int_s", "to_int_u"):
            self._add(f"{types[0].value}.trunc_{types[1].value}_{name[-1]}")
        elif name == "reinterpret":
            self._add(f"{types[0].value}.reinterpret_{types[1].value}")
        elif name == "to_slot":
            self._to_slot(types[0])
        elif name == "from_slot":
            self._from_slot(types[0])
        elif name != "boolean_to_i32":
            position: Position | None = self.function.subject.position(operation.pc)
            what = (
                "it rounds a product and a sum once (fma)" if name == "ffma" else f"it uses {name}"
            )
            raise ExportError(what, "WebAssembly has no instruction for it: use target c", position)

    def _to_slot(self, t: Type) -> None:
        if t.is_float:
            self._add(f"{t.integer.value}.reinterpret_{t.value}")
        if t.bits == 32:
            self._add("i64.extend_i32_u")

    def _from_slot(self, t: Type) -> None:
        if t.bits == 32:
            self._add("i32.wrap_i64")
        if t.is_float:
            self._add(f"{t.value}.reinterpret_{t.integer.value}")

    def _do_select(self, operation: Operation) -> None:
        condition, a, b = operation.arguments
        for value in (a, b, condition):
            self._push(value)
        self._add("select")

    def _do_canonical(self, operation: Operation) -> None:
        self._canonical(operation.fact(0, Type), operation.arguments[0])

    def _canonical(self, t: Type, value: Value) -> None:
        self._add(f"{t.value}.const", CANONICAL_NAN[t])
        self._push(value)
        self._push(value)
        self._push(value)
        self._add(f"{t.value}.ne")
        self._add("select")

    def _do_error_if(self, operation: Operation) -> None:
        self._push(operation.arguments[0])
        self._open("if", None)
        self._error(operation)
        self._close()

    def _do_local_get(self, operation: Operation) -> None:
        self._add("local.get", self._statics[operation.fact(0, int)])

    def _do_local_set(self, operation: Operation) -> None:
        self._push(operation.arguments[0])
        self._add("local.set", self._statics[operation.fact(0, int)])

    # --- arrays -----------------------------------------------------------------------------

    def _address(self, elements: Element, pointer: Value, index: Value) -> None:
        self._add("local.get", self._numbers[pointer])
        self._push(index)
        self._add("i32.wrap_i64")
        if elements.shift:
            self._add("i32.const", elements.shift)
            self._add("i32.shl")
        self._add("i32.add")

    def _load(self, elements: Element) -> None:
        t = elements.type
        kind = t.value if t.is_float else "i64"
        part = "" if t.is_float or elements.bits == 64 else f"{elements.bits}_u"
        self._add(f"{kind}.load{part}", elements.shift, 0)

    def _store(self, elements: Element) -> None:
        t = elements.type
        kind = t.value if t.is_float else "i64"
        part = "" if t.is_float or elements.bits == 64 else f"{elements.bits}"
        self._add(f"{kind}.store{part}", elements.shift, 0)

    def _do_array_load(self, operation: Operation) -> None:
        elements = operation.fact(0, Element)
        self._address(elements, *operation.arguments)
        self._load(elements)

    def _do_array_store(self, operation: Operation) -> None:
        elements = operation.fact(0, Element)
        pointer, index, value = operation.arguments
        self._address(elements, pointer, index)
        self._push(value)
        self._store(elements)

    def _do_array_canonical(self, operation: Operation) -> None:
        elements, operands = operation.fact(0, Element), operation.arguments
        t = elements.type
        for place, value in enumerate(operands[2::3]):
            self._push(value)
            self._push(value)
            self._add(f"{t.value}.ne")
            if place:
                self._add("i32.or")
        self._open("if", None)
        for pointer, index, value in zip(
            operands[::3], operands[1::3], operands[2::3], strict=True
        ):
            self._address(elements, pointer, index)
            self._canonical(t, value)
            self._store(elements)
        self._close()

    def _do_array_fill(self, operation: Operation) -> None:
        elements = operation.fact(0, Element)
        pointer, index, count, value = operation.arguments
        at, end = self._local(I32), self._local(I32)
        self._address(elements, pointer, index)
        self._add("local.tee", at)
        self._push(count)
        self._add("i32.wrap_i64")
        self._add("i32.const", elements.shift)
        self._add("i32.shl")
        self._add("i32.add")
        self._add("local.set", end)
        self._open("block", None)
        self._open("loop", None)
        for each in (at, end):
            self._add("local.get", each)
        self._add("i32.ge_u")
        self._add("br_if", 1)
        self._add("local.get", at)
        self._push(value)
        if elements.type.is_float:
            self._from_slot(elements.type)
        self._store(elements)
        self._add("local.get", at)
        self._add("i32.const", elements.bytes)
        self._add("i32.add")
        self._add("local.set", at)
        self._add("br", 0)
        self._close()
        self._close()

    def _do_array_move(self, operation: Operation) -> None:
        elements = operation.fact(0, Element)
        to, at, from_, first, count = operation.arguments
        self._address(elements, to, at)
        self._address(elements, from_, first)
        self._push(count)
        self._add("i32.wrap_i64")
        self._add("i32.const", elements.shift)
        self._add("i32.shl")
        self._add("memory.copy")

    def _do_array_update(self, operation: Operation) -> None:
        elements, update = operation.fact(0, Element), operation.fact(1, Atomic)
        pointer, index, value = operation.arguments
        old = self._former(elements, pointer, index)
        self._address(elements, pointer, index)
        if update in _UPDATED:
            self._add("local.get", old)
            self._push(value)
            self._add(_UPDATED[update])
        elif update is Atomic.EXCHANGE:
            self._push(value)
        else:
            self._extreme(elements, update.value, old, value)
        self._store(elements)
        self._add("local.get", old)

    def _former(self, elements: Element, pointer: Value, index: Value) -> int:
        old = self._local(I64)
        self._address(elements, pointer, index)
        self._load(elements)
        self._add("local.set", old)
        return old

    def _extreme(self, elements: Element, name: str, old: int, value: Value) -> None:
        """The smaller or larger of a former element and a value, as a word."""
        base, _, sign = name.partition("_")

        def compared(push: Callable[[], Any]) -> None:
            push()
            if elements.bits == 32:
                self._add("i32.wrap_i64")
                self._add(f"i64.extend_i32_{sign}")

        self._push(value)
        self._add("local.get", old)
        compared(lambda: self._push(value))
        compared(lambda: self._add("local.get", old))
        self._add(f"i64.{'lt' if base == 'min' else 'gt'}_{sign}")
        self._add("select")

    def _do_array_exchange(self, operation: Operation) -> None:
        elements = operation.fact(0, Element)
        pointer, index, expected, value = operation.arguments
        old = self._former(elements, pointer, index)
        self._add("local.get", old)
        self._push(expected)
        if elements.bits == 32:
            self._add("i32.wrap_i64")
            self._add("i64.extend_i32_u")
        self._add("i64.eq")
        self._open("if", None)
        self._address(elements, pointer, index)
        self._push(value)
        self._store(elements)
        self._close()
        self._add("local.get", old)
