# SPDX-License-Identifier: Apache-2.0
"""The verifier of the IR; docs/ir.md lists the rules.

Every rule is checked in one pass over the blocks, along the dominator tree; the first fault is
raised. It costs about as much as lifting, so it is off by default: tests verify between passes, and
the environment variable `FERRYVM_CHECK_IR=1` makes `optimise` do so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ferryvm.flowgraph.component import cycle_without
from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.exception_rule import exception_fault
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Constant,
    Edge,
    FrameState,
    Module,
    Operation,
    Terminator,
    Value,
    ValueType,
)
from ferryvm.ir.lane.rule import lane_fault
from ferryvm.ir.operation import (
    POLL_BUDGET,
    SHAPES,
    AnyType,
    IrError,
    Role,
    Shape,
    computed_types,
)
from ferryvm.ir.text import operation_text
from ferryvm.ir.use import callees
from ferryvm.isa.element import Element
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import I64, Type, as_number
from ferryvm.verify import Verified


def verify_module(module: Module, verified: Verified | None = None) -> None:
    """Raise IrError, which names body, block and operation, for the first fault found.

    `verified`: the program; without it states and statics are not compared with its types.
    """
    IrVerifier(module, verified).check_module()


class IrVerifier:
    """Verifies a module between passes: an unchanged operation is not compared with its shape
    again, but its position and its operands are checked each time."""

    def __init__(self, module: Module, verified: Verified | None = None) -> None:
        """`verified`: the program; without it states and statics are not compared with its
        types."""
        self.module, self.verified = module, verified
        self._known: dict[Body, dict[Operation, _Known]] = {}

    def check_module(self) -> None:
        """Raise IrError, which names body, block and operation, for the first fault found."""
        lanes = [] if self.module.lanes is None else [self.module.lanes]
        for body in (*self.module.bodies, *lanes):
            self.check_body(body)
        _check_recursion(self.module)

    def check_body(self, body: Body) -> None:
        """As `check_module`, of one body alone: the one that a pass has changed."""
        _Check(self.module, body, self.verified, self._known.setdefault(body, {})).run()


class _Known(NamedTuple):
    """An operation as it was when it was found to be correct."""

    arguments: tuple[Value, ...]
    state: FrameState | None
    uses: tuple[Value, ...]
    """The values that it and its state use, without arguments of edges."""


def _check_recursion(module: Module) -> None:
    """Mutually recursive functions must poll the flag, and check the native stack."""
    numbers = {function: place for place, function in enumerate(module.functions)}
    bodies = [*module.functions.values()]
    calls = [
        [numbers[callee] for operation in body.operations for callee in callees(operation)]
        for body in bodies
    ]
    guarded = {place for place, body in enumerate(bodies) if body.recurs}
    for place in cycle_without(calls, guarded):
        name = bodies[place].name
        raise IrError(f"body {name}: it can call itself, `check_entry true` expected at its entry")


def _polls(block: Block) -> bool:
    """True if a block looks at the interrupt flag, or is in a loop so short that none has to."""
    return any(
        operation.name in ("poll", "poll_lanes")
        or (operation.name == "bounded" and operation.fact(0, int) <= POLL_BUDGET)
        for operation in block.operations
    )


class _Check:
    """The check of one body."""

    def __init__(
        self,
        module: Module,
        body: Body,
        verified: Verified | None,
        known: dict[Operation, _Known],
    ) -> None:
        self.module, self.body, self.verified, self.known = module, body, verified, known
        self.block: Block | None = None
        self.operation: Operation | None = None

    def _fault(self, expected: str) -> IrError:
        where = [f"body {self.body.name}"]
        if self.block is not None:
            where.append(f"block {self.block.label}")
        if self.operation is not None:
            where.append(f"`{operation_text(self.body, self.operation)}`")
        return IrError(f"{', '.join(where)}: {expected}")

    def run(self) -> None:
        self._blocks()
        self.graph = ControlFlowGraph(self.body)
        self._loops()
        self._definitions()
        self.visible: set[Value] = {
            constant
            for (t, bits), constant in self.body.constants.items()
            if constant.type is t and constant.bits == bits
        }
        """Values whose definitions dominate the current point."""
        above: list[tuple[int, list[Value]]] = []
        """The blocks that dominate this one: the end of the range that each dominates, and the
        values that each defines."""
        for rank, number in enumerate(self.graph.preorder()):
            while above and above[-1][0] <= rank:
                self.visible.difference_update(above.pop()[1])
            defined = self._contents(self.graph.blocks[number])
            above.append((self.graph.interval(number)[1], defined))
            self._exceptions(number)

    def _contents(self, block: Block) -> list[Value]:
        """Check the operations of a block; the values that it defines."""
        visible, known = self.visible, self.known
        defined: list[Value] = [*block.parameters]
        visible.update(defined)
        self.block = block
        for operation in (*block.operations, block.end):
            self.operation = operation
            old = known.get(operation)
            if (
                old is None
                or old.arguments is not operation.arguments
                or old.state is not operation.state
            ):
                old = self._operation(operation)
            if not visible.issuperset(old.uses):
                raise self._unusable(old.uses)
            if operation.type is not None:
                visible.add(operation)
                defined.append(operation)
        self._edges(block.end)
        self.operation = None
        return defined

    def _exceptions(self, number: int) -> None:
        fault = exception_fault(self.body, self.graph, number, self.verified)
        if fault is not None:
            self.operation = fault[0]
            raise self._fault(fault[1])

    def _definitions(self) -> None:
        """Every value is defined once, and has a type."""
        self.defined: set[Value] = set()
        for block in self.body.blocks:
            self.block = block
            for parameter in block.parameters:
                self._define(parameter)
            for operation in block.operations:
                if operation.type is not None:
                    self.operation = operation
                    self._define(operation)
            self.operation = None

    def _define(self, value: Value) -> None:
        if value in self.defined:
            raise self._fault("it is defined twice")
        if not isinstance(value.type, Type) and value.type is not BOOLEAN:
            raise self._fault(f"a type expected, found {value.type!r}")
        self.defined.add(value)

    def _unusable(self, uses: Iterable[Value]) -> IrError:
        """The fault of the first of some values that cannot be used here."""
        value = next(value for value in uses if value not in self.visible)
        if isinstance(value, Constant):
            return self._fault("a constant that is not the body's own")
        if value not in self.defined:
            return self._fault("a value that is defined nowhere")
        return self._fault("a value that is not defined on every way to here")

    # --- blocks -----------------------------------------------------------------------------

    def _blocks(self) -> None:
        body = self.body
        if not body.blocks:
            raise self._fault("it has no block")
        places: dict[Block, int] = {}
        labels: set[str] = set()
        for block in body.blocks:
            self.block = block
            if block.label in labels:
                raise self._fault("another block has the same label")
            labels.add(block.label)
            places[block] = len(places)
            if block.terminator is None:
                raise self._fault("it has no terminator")
        reached = {body.blocks[0]}
        for block in body.blocks:
            self.block, self.operation = block, block.end
            for edge in block.end.edges:
                if edge.block not in places:
                    raise self._fault(f"block {edge.block.label} is not in the body")
        self.operation = None
        self._polls(places)
        for block in body.blocks:
            self.block, self.operation = block, block.end
            for edge in block.end.edges:
                self._edge_order(block, edge, places)
                if not edge.is_back:
                    reached.add(edge.block)
        self.operation = None
        for block in body.blocks:
            self.block = block
            if block not in reached:
                raise self._fault("no block leads to it")
        self.block = None
        if body.is_root and body.blocks[0].parameters:
            raise self._fault("a region's entry has no parameters")

    def _edge_order(self, block: Block, edge: Edge, places: dict[Block, int]) -> None:
        if edge.block is self.body.blocks[0]:
            raise self._fault("nothing leads to the entry")
        if edge.is_back != (places[edge.block] <= places[block]):
            raise self._fault(
                "an edge is marked as going back (^) exactly where its block does not come later"
            )
        is_scalar = self.body.varying is None  # in others it may be in another block of the cycle
        if edge.is_back and is_scalar and not _polls(block):
            raise self._fault("a `poll` expected in a block from which an edge goes back")

    def _polls(self, places: dict[Block, int]) -> None:
        """Every cycle polls, however edges are marked: the graph without polls has none."""
        blocks = self.body.blocks
        onward = [[places[edge.block] for edge in block.end.edges] for block in blocks]
        polls = {place for place, block in enumerate(blocks) if _polls(block)}
        for place in cycle_without(onward, polls):
            self.block = blocks[place]
            raise self._fault("it is in a cycle without a `poll`")

    def _loops(self) -> None:
        """Every backward edge leads to a dominator, so every cycle is a natural loop."""
        for place, incoming in enumerate(self.graph.incoming):
            for source, edge in incoming:
                if edge.is_back and not self.graph.dominates(place, source):
                    self.block = self.graph.blocks[source]
                    raise self._fault(f"it goes back to {edge.block.label}, another way leads by")

    # --- operations -------------------------------------------------------------------------

    def _operation(self, operation: Operation) -> _Known:
        """Check an operation against its shape; the record for later checks."""
        shape = SHAPES.get(operation.name)
        if shape is None:
            raise self._fault("no operation has this name")
        is_end = isinstance(operation, Terminator)
        if is_end != (shape.role is Role.ENDS):
            raise self._fault("a terminator expected here" if is_end else "it ends a block")
        self._static(operation, shape)
        self._types(operation, shape)
        fault = lane_fault(self.body, operation, shape.role is Role.COMPUTES)
        if fault is not None:
            raise self._fault(fault)
        state = operation.state
        if (state is not None) != shape.has_state:
            raise self._fault("a state expected" if shape.has_state else "no state expected")
        if state is not None:
            self._state(operation, state)
        right = _Known(operation.arguments, state, (*Operation.uses(operation),))
        # A call's arguments must match the callee, which a pass over the callee may change.
        if shape.role is not Role.CALLS:
            self.known[operation] = right
        return right

    def _static(self, operation: Operation, shape: Shape) -> None:
        if len(operation.static) != len(shape.static):
            wanted = ", ".join(kind.value for kind in shape.static) or "nothing"
            raise self._fault(f"{wanted} expected after the name")
        for kind, item in zip(shape.static, operation.static, strict=True):
            if not kind.holds(item):
                raise self._fault(f"{kind.value} expected, found {item!r}")

    def _types(self, operation: Operation, shape: Shape) -> None:
        wanted, result = shape.arguments, shape.result
        if shape.role is Role.COMPUTES:
            try:
                wanted, result = computed_types(operation.name, operation.static)
            except IrError as error:
                raise self._fault(str(error)) from None
        elif shape.role is Role.CALLS:
            wanted, result = self._call_types(operation)
        elif operation.name == "call_host":
            wanted, result = self._host_types(operation)
        elif operation.name == "canonicalise":
            wanted = self._stored_types(operation)
        elif operation.name == "canonicalise_elements":
            wanted = self._stored_element_types(operation)
        elif operation.name == "return":
            wanted = self.body.results
        elif operation.name in ("static", "set_static") and self.verified is not None:
            wanted, result = self._static_types(operation)
        assert wanted is not None
        if len(operation.arguments) != len(wanted):
            raise self._fault(f"{len(wanted)} operands expected, found {len(operation.arguments)}")
        for value, t in zip(operation.arguments, wanted, strict=True):
            self._match(value.type, operation.type if t is AnyType.SAME else t)
        if result is None:
            if operation.type is not None:
                raise self._fault(f"no value expected, found one of type {operation.type}")
        else:
            self._match(operation.type, result)

    def _match(self, found: ValueType | None, wanted: ValueType | AnyType | None) -> None:
        is_right = isinstance(found, Type) if wanted is AnyType.WORD else found is wanted
        if not is_right:
            raise self._fault(f"{wanted} expected, found {found or 'no value'}")

    def _stored_types(self, operation: Operation) -> tuple[ValueType, ...]:
        t = operation.fact(0, Type)
        if not t.is_float:
            raise self._fault(f"a float type expected, found {t}")
        return (I64, t) * max(1, (len(operation.arguments) + 1) // 2)

    def _stored_element_types(self, operation: Operation) -> tuple[ValueType, ...]:
        kind = operation.static[0]
        if not isinstance(kind, Element) or not kind.type.is_float:
            raise self._fault(f"a kind of float elements expected, found {kind}")
        return (I64, I64, kind.type) * max(1, (len(operation.arguments) + 2) // 3)

    def _call_types(self, operation: Operation) -> tuple[tuple[ValueType, ...], ValueType | None]:
        callees, base = operation.static
        is_direct = operation.name == "call"
        numbers = (callees,) if is_direct else callees
        assert isinstance(numbers, tuple)
        assert isinstance(base, int)
        if base < HEADER_WORDS and (base or not self.body.is_root):
            raise self._fault(f"a frame past the header of the running one expected, found {base}")
        first: tuple[ValueType, ...] = () if is_direct else (I64,)
        if not numbers:  # an indirect call that cannot succeed: its operands are unknown
            return (*first, *self._own_types(operation)[1:]), operation.type
        found = set()
        for number in numbers:
            body = self.module.functions.get(number)
            if body is None:
                raise self._fault(f"function {number} is not in the module")
            found.add((tuple(p.type for p in body.blocks[0].parameters), body.results))
        if len(found) > 1:
            raise self._fault("functions of one signature expected")
        parameters, results = found.pop()
        return (*first, *parameters), results[0] if results else None

    def _host_types(self, operation: Operation) -> tuple[tuple[ValueType, ...], ValueType | None]:
        if self.verified is None:  # its operands are unknown
            return self._own_types(operation), operation.type
        number, hosts = operation.fact(0, int), self.verified.program.hosts
        if number >= len(hosts):
            raise self._fault(f"a host import below {len(hosts)} expected, found {number}")
        signature = hosts[number].signature
        result = as_number(signature.results[0]) if signature.results else None
        return tuple(map(as_number, signature.parameters)), result

    @staticmethod
    def _own_types(operation: Operation) -> tuple[ValueType, ...]:
        return tuple(a.type for a in operation.arguments)

    def _static_types(self, operation: Operation) -> tuple[tuple[ValueType, ...], ValueType | None]:
        assert self.verified is not None
        (number,) = operation.static
        assert isinstance(number, int)
        statics = self.verified.program.statics
        if number >= len(statics):
            raise self._fault(f"a static below {len(statics)} expected, found {number}")
        t = as_number(statics[number].type)
        return ((), t) if operation.name == "static" else ((t,), None)

    def _edges(self, end: Terminator) -> None:
        shape = SHAPES[end.name]
        count = len(end.edges)
        if not count if shape.edges is None else count != shape.edges:
            raise self._fault(f"{shape.edges or 'one or more'} edges expected, found {count}")
        for edge in end.edges:
            parameters = edge.block.parameters
            if len(edge.arguments) != len(parameters):
                expected = f"{len(parameters)} arguments of {edge.block.label} expected"
                raise self._fault(f"{expected}, found {len(edge.arguments)}")
            if not self.visible.issuperset(edge.arguments):
                raise self._unusable(edge.arguments)
            for value, parameter in zip(edge.arguments, parameters, strict=True):
                self._match(value.type, parameter.type)

    # --- states -----------------------------------------------------------------------------

    def _state(self, operation: Operation, state: FrameState) -> None:
        if self.body.varying is not None and not self.body.lanes:  # those of all frames of an item
            if None in state.words or state.statics or state.heap_pointer is not None:
                raise self._fault("a state of all words of an item, and of nothing else, expected")
            return
        self._words(operation, state)
        numbers = [number for number, _ in state.statics]
        if numbers != sorted(set(numbers)):
            raise self._fault("statics of a state in rising order expected, each once")
        if state.heap_pointer is not None:
            self._match(state.heap_pointer.type, I64)
        if self.verified is not None:
            self._stack_map(operation, state, self.verified)

    def _words(self, operation: Operation, state: FrameState) -> None:
        """A state has every word of the frame except its header. At a call that leaves, it also has
        the header of the callee's frame, whose arguments the callee writes."""
        first, length = self.body.parameters, len(state.words)
        absent = {*range(first, first + HEADER_WORDS)}
        if SHAPES[operation.name].role is Role.CALLS:
            base = operation.fact(1, int)
            absent |= {*range(base, length - HEADER_WORDS)} if base else {*range(length)}
        if any((word is None) != (place in absent) for place, word in enumerate(state.words)):
            raise self._fault("a state has every word of the frame but those of its header")

    def _stack_map(self, operation: Operation, state: FrameState, verified: Verified) -> None:
        """A state has the words that the verifier's stack map has, with their types: those of the
        body's frame, and above it those of the frames of inlined calls."""
        own, parameters = self.body.function, self.body.parameters
        header, pc = self.body.header_of(state), state.pc
        call = None
        if SHAPES[operation.name].role is Role.CALLS:
            # The callee's frame begins with the arguments, and its header is after them.
            call = operation.fact(1, int)
            arguments = len(operation.arguments) - (operation.name == "call_indirect")
            end = call + arguments + HEADER_WORDS
            if len(state.words) != end:
                raise self._fault(f"{end} words at pc {pc} expected, found {len(state.words)}")
        while True:
            is_own = header == parameters
            is_code = 0 <= pc < len(verified.program.code)
            function = verified.owner(pc) if is_code else -1
            if not is_code or (is_own and function != own):
                raise self._fault(f"a pc of function {own} expected, found {pc}")
            first = header - len(verified.program.signature(function).parameters)
            if is_own and first:
                raise self._fault(f"{header - first} parameters expected, found {parameters}")
            self._frame(state, verified, pc, first, header, call)
            if is_own:
                break
            outer, distance = state.words[header : header + HEADER_WORDS]
            if not isinstance(outer, Constant) or not isinstance(distance, Constant):
                raise self._fault("constants in the header of an inlined call's frame expected")
            pc, header, call = outer.bits - 1, header - distance.bits, first
            if header < parameters:
                raise self._fault(f"a frame above word {parameters} expected, found {header}")
        for number, value in state.statics:
            if number >= len(verified.program.statics):
                raise self._fault(f"there is no static {number}")
            self._match(value.type, as_number(verified.program.statics[number].type))

    def _frame(
        self,
        state: FrameState,
        verified: Verified,
        pc: int,
        first: int,
        header: int,
        callee: int | None,
    ) -> None:
        """Check the words of the frame of the function of `pc`, from word `first` up to that of the
        frame that it calls."""
        types = [*verified.program.frame_types(verified.owner(pc)), *verified.operand_types(pc)]
        past = header + HEADER_WORDS
        end = len(state.words) if callee is None else callee
        words = (*state.words[first:header], *state.words[past:end])
        if callee is None and len(words) != len(types):
            count = header + HEADER_WORDS + len(types) - (header - first)
            raise self._fault(f"{count} words at pc {pc} expected, found {len(state.words)}")
        for word, t in zip(words, types, strict=False):
            if word is not None:
                self._match(word.type, as_number(t))
