# SPDX-License-Identifier: Apache-2.0
"""The region IR: SSA values in basic blocks, with the machine's state at each exit.

    Module ─> Body (one for the region, one for each function it calls)
                └─> Block(parameters) ─> Operation … Operation ─> terminator ─> Edge(block, arguments)
                                             │
                                             └─ FrameState: what memory must hold if control leaves here

A block has parameters instead of phi operations: an edge passes one argument for each. Most
operations have the name and the meaning of an emitter method, with the same arguments in the same
order, so that an operation is lowered by calling that method of the lowering emitter.

It is not an abstract syntax of programs: it has no operand stack and no locals. They are values,
and appear only in states.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import functools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ferryvm.ir.footprint import Footprint
from ferryvm.ir.versioned_nest import VersionedNest
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import Type

if TYPE_CHECKING:
    from ferryvm.ir.group.record import Group

__all__ = [
    "BOOLEAN",
    "Block",
    "Body",
    "Boolean",
    "Constant",
    "Edge",
    "FrameState",
    "Module",
    "Operation",
    "Parameter",
    "Phase",
    "Static",
    "Terminator",
    "Value",
    "ValueType",
    "Virtual",
]


class Boolean(enum.Enum):
    """The type of boolean values."""

    BOOLEAN = "boolean"

    def __str__(self) -> str:
        return self.value


BOOLEAN = Boolean.BOOLEAN
"""The type of conditions."""

ValueType = Type | Boolean
"""Type of an SSA value: one of the machine's types, or boolean."""

Static = object
"""A static attribute of an operation: a type, a condition, a number."""

Fact = TypeVar("Fact")


class Value:
    """A possible operand of operations."""

    __slots__ = ("type",)

    def __init__(self, type_: ValueType) -> None:
        self.type = type_

    @property
    def word_type(self) -> Type:
        """The type of a value that a word of memory can hold: any but a boolean."""
        assert isinstance(self.type, Type)
        return self.type


class Constant(Value):
    """A bit pattern; for a boolean 0 or 1. Equal constants of one body are one object."""

    __slots__ = ("bits",)

    def __init__(self, type_: ValueType, bits: int) -> None:
        super().__init__(type_)
        self.bits = bits


class Parameter(Value):
    """A parameter of a block."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Phase:
    """The other items of a group at an exit in one of its parallel regions: the record of their
    launch is made of them, see `ferryvm.ir.group`."""

    group: Group
    region: int
    """The number of the parallel region."""
    values: tuple[Value, ...]
    """As `Group` lists them: items that have come to its end, items that have started, all items,
    address of the context arrays, then the values that all items share."""


@dataclasses.dataclass(frozen=True, eq=False)
class FrameState:
    """The contents of control block and memory at a pc, except those that are there already."""

    pc: int
    """The instruction at which control continues, or that leaves."""
    words: tuple[Value | None, ...]
    """Words of the body's frame up to the stack pointer, with the frames of inlined calls above it.
    None for a word that memory has already (the header of the body's frame), or that a callee
    writes (its arguments)."""
    statics: tuple[tuple[int, Value], ...] = ()
    """Values of statics that are not in memory yet, by number."""
    heap_pointer: Value | None = None
    """None if the control block has it already."""
    unpaid: int = 0
    """Instructions of the last payment that have not completed, in the counting form."""
    header: int | None = None
    """The word of the running frame's header if that frame is one of an inlined call; None: it is
    the body's own."""
    phase: Phase | None = None
    """Of an exit in a parallel region of a group, its other items. They become the record of the
    launch, and the bounds of its range, whose words are those below the running item's."""

    def values(self) -> Iterable[Value]:
        """Every value that it refers to, once."""
        return self._distinct

    @functools.cached_property
    def _distinct(self) -> dict[Value, None]:
        # Of a hundred words most are constants, and passes ask for each state again and again.
        found: dict[Value, None] = dict.fromkeys([word for word in self.words if word is not None])
        if self.statics:
            found.update(dict.fromkeys([value for _, value in self.statics]))
        if self.heap_pointer is not None:
            found[self.heap_pointer] = None
        if self.phase is not None:
            found.update(dict.fromkeys(self.phase.values))
        return found

    def uses(self) -> tuple[Value, ...]:
        """Every value that it needs, once: a virtual value needs its raw float."""
        return self._used

    @functools.cached_property
    def _used(self) -> tuple[Value, ...]:
        values = [v.raw if isinstance(v, Virtual) else v for v in self._distinct]
        return tuple(dict.fromkeys(values))

    @functools.cached_property
    def _renameable(self) -> frozenset[Value]:
        return frozenset((*self._distinct, *self._used))

    def replace(self, new: dict[Value, Value]) -> FrameState:
        """The state with values replaced by others, or by virtual values of others."""
        changed: dict[Value | None, Value] = {}
        for value in self._distinct:
            if value in new:
                changed[value] = new[value]
            elif isinstance(value, Virtual) and value.raw in new:
                changed[value] = Virtual(new[value.raw])
        pointer, phase = self.heap_pointer, self.phase
        if phase is not None:
            values = tuple([changed.get(each, each) for each in phase.values])
            phase = Phase(phase.group, phase.region, values)
        return FrameState(
            self.pc,
            tuple([changed.get(word, word) for word in self.words]),
            tuple([(number, changed.get(value, value)) for number, value in self.statics]),
            pointer if pointer is None else changed.get(pointer, pointer),
            self.unpaid,
            self.header,
            phase,
        )

    def renamed(self, new: dict[Value, Value]) -> FrameState:
        """The state with values replaced by others; the same object if nothing changes."""
        return self if new.keys().isdisjoint(self._renameable) else self.replace(new)


class UnrolledItem(NamedTuple):
    """An item of a launch in the code of an unrolled loop over items. Items of one loop are
    independent: none of them waits for another one in it."""

    launch: int
    """pc of the head of the launch's loop."""
    loop: int
    """Number of the unrolled loop; where a loop around it was unrolled, another one in each
    iteration."""
    number: int
    """Number of the item in the loop."""


class Operation(Value):
    """One operation; a value if `type` is not None."""

    __slots__ = ("arguments", "item", "name", "pc", "state", "static")

    type: ValueType | None  # type: ignore[assignment]  # one that has only effects has no type

    def __init__(
        self,
        name: str,
        type_: ValueType | None,
        static: tuple[Static, ...] = (),
        arguments: tuple[Value, ...] = (),
        state: FrameState | None = None,
    ) -> None:
        self.name, self.type, self.static = name, type_, static
        self.arguments, self.state = arguments, state
        self.pc = -1
        """The instruction that it was lifted from; -1 if there is none."""
        self.item: UnrolledItem | None = None
        """The item that it is of, if a loop over items was unrolled around it."""

    def fact(self, place: int, kind: builtins.type[Fact]) -> Fact:
        """Its static attribute of this kind, at an index of its shape."""
        found = self.static[place]
        assert isinstance(found, kind)
        return found

    @property
    def exit(self) -> FrameState:
        """The state of an operation that may leave."""
        assert self.state is not None
        return self.state

    def uses(self) -> tuple[Value, ...]:
        """Every value that it needs."""
        return self.arguments if self.state is None else self.arguments + self.state.uses()


class Virtual(Operation):
    """The canonical value of a float, which only states refer to: it is in no block, and is
    computed at the exit."""

    __slots__ = ()

    def __init__(self, raw: Value) -> None:
        assert isinstance(raw.type, Type)
        super().__init__("canonical", raw.type, (raw.type,), (raw,))

    @property
    def raw(self) -> Value:
        """The float."""
        return self.arguments[0]


@dataclasses.dataclass(eq=False)
class Edge:
    """An edge to a block, with the arguments for its parameters."""

    block: Block
    arguments: list[Value]
    is_back: bool = False
    """True for a back edge, which leads to the head of a loop."""


class Terminator(Operation):
    """The last operation of a block: `jump`, `branch`, `switch`, `return`, or an exit."""

    __slots__ = ("edges",)

    def __init__(
        self,
        name: str,
        static: tuple[Static, ...] = (),
        arguments: tuple[Value, ...] = (),
        state: FrameState | None = None,
        edges: tuple[Edge, ...] = (),
    ) -> None:
        super().__init__(name, None, static, arguments, state)
        self.edges = edges

    def uses(self) -> tuple[Value, ...]:
        """Every value that it needs, the arguments of its edges included."""
        found = super().uses()
        for edge in self.edges:
            found += tuple(edge.arguments)
        return found


class Block:
    """Operations that run in sequence."""

    __slots__ = ("label", "operations", "parameters", "pc", "terminator")

    def __init__(self, label: str, pc: int) -> None:
        self.label = label
        self.pc = pc
        """The first instruction that it was lifted from."""
        self.parameters: list[Parameter] = []
        self.operations: list[Operation] = []
        self.terminator: Terminator | None = None

    @property
    def end(self) -> Terminator:
        """The terminator of a finished block."""
        assert self.terminator is not None
        return self.terminator


@dataclasses.dataclass(eq=False)
class Body:
    """Code with one entry: a region's, or that of a function that it calls."""

    name: str
    function: int
    entry: int
    """pc of the entry."""
    is_root: bool
    """True for the region's own body: it is entered from an interpreter, with its frame in
    memory."""
    results: tuple[Type, ...]
    """Types of the function's results."""
    parameters: int = 0
    """Number of the function's parameters: the words of its frame below the header."""
    blocks: list[Block] = dataclasses.field(default_factory=list)
    """The entry first; each other one after all its predecessors, except along back edges. The
    parameters of the entry are the function's, unless it is a root; a root has none."""
    constants: dict[tuple[ValueType, int], Constant] = dataclasses.field(default_factory=dict)
    """Every constant used in it, by type and bits: equal ones are one object."""
    varying: set[Value] | None = None
    """Of a body of lanes, see `ferryvm.ir.lane`, and of one with loops in lanes, the values that are
    one for each lane. None: it is scalar."""
    lanes: int = 0
    """Lanes of the loops in lanes that a scalar body has; 0: it has none."""

    @property
    def result(self) -> Type | None:
        """Type of the first result, which is passed as a value; the others are passed in memory."""
        return self.results[0] if self.results else None

    def header_of(self, state: FrameState) -> int:
        """The word of the header of the frame that runs in a state of this body."""
        return self.parameters if state.header is None else state.header

    def place_of(self, result: int) -> int:
        """The word of the function's frame in which it leaves a result after the first: after the
        header."""
        return self.parameters + HEADER_WORDS + result - 1

    @property
    def edges(self) -> Iterator[Edge]:
        """All edges between blocks."""
        for block in self.blocks:
            yield from block.end.edges

    def constant(self, t: ValueType, bits: int) -> Constant:
        """The constant with these bits."""
        found = self.constants.get((t, bits))
        if found is None:
            found = self.constants[t, bits] = Constant(t, bits)
        return found

    @property
    def operations(self) -> Iterator[Operation]:
        """All operations except terminators."""
        for block in self.blocks:
            yield from block.operations

    @property
    def recurs(self) -> bool:
        """True if the function can call itself, directly or not."""
        entry = self.blocks[0].operations
        return any(o.name == "check_entry" and o.fact(0, bool) for o in entry)


@dataclasses.dataclass(eq=False)
class Module:
    """A region in the form for compilers."""

    name: str
    root: Body
    functions: dict[int, Body]
    """Bodies of the functions that are called, by number."""
    counting: bool
    """True if blocks pay for their instructions."""
    footprints: dict[Operation, Footprint] = dataclasses.field(default_factory=dict)
    """Footprints of the accesses that `loop_versioning` has analysed. A pass that copies an access
    records the footprint of the copy."""
    streams: dict[Operation, Value] = dataclasses.field(default_factory=dict)
    """Stores of elements that fill a large array line by line, so that a compiler may have them
    bypass the caches; each with the invariant part of its offset."""
    nests: list[VersionedNest] = dataclasses.field(default_factory=list)
    """The nests that have two versions, or were considered; recorded only if a compiler requests
    it."""
    launches: frozenset[int] = frozenset()
    """pcs of the heads of launches' loops, where a compiler uses that their items are
    independent."""
    lanes: Body | None = None
    """Of a launch's loop, the items in lanes, see `ferryvm.ir.lane`."""
    headroom: int = 0
    """Bytes above the frame of the launch that an item in lanes needs on the stack."""
    scalar: str = ""
    """The reason that it has none; empty if it has, or nobody asked for it."""
    groups: list[Group] = dataclasses.field(default_factory=list)
    """The launches whose items run in parallel regions between barriers, see `ferryvm.ir.group`."""
    ungrouped: dict[int, str] = dataclasses.field(default_factory=dict)
    """The reasons that launches with barriers have none, by the pc of their `launch.test`."""
    one_by_one: dict[int, str] = dataclasses.field(default_factory=dict)
    """The reasons that items of parallel regions with branches or loops do not run in lanes, by the
    pc at which the region begins."""

    @property
    def bodies(self) -> list[Body]:
        """All bodies, the root first."""
        return [self.root, *self.functions.values()]

    @property
    def guards(self) -> list[int]:
        """pcs of all guards, in the order in which their failures are counted."""
        operations = (o for body in self.bodies for o in body.operations)
        return sorted({o.fact(0, int) for o in operations if o.name == "guard"})
