# SPDX-License-Identifier: Apache-2.0
"""A function that is being generated: its code, its variables, and its remaining budget.

Costs are bounds: instructions that the function may execute, bytes that it may allocate. Within a
loop each counts as often as the loop iterates, both arms of a branch count, and a call counts the
bound of its callee; so a program is known to terminate before it runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ferryvm.isa.type import ValueType
from ferryvm.program import Clause, HostImport
from ferryvm.testing.generate.catalogue import CONST, OPCODE
from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.generate.literal import TYPES
from ferryvm.testing.generate.object_type import FIRST, ObjectTypes
from ferryvm.testing.generate.tables import Choices, CodeKind, Tables

GET, SET = OPCODE["local.get"], OPCODE["local.set"]
STATIC_GET, STATIC_SET = OPCODE["static.get"], OPCODE["static.set"]
JUMP, JUMP_IF, JUMP_UNLESS = OPCODE["jump"], OPCODE["jump_if"], OPCODE["jump_unless"]
DROP, DUP, SWAP = OPCODE["drop"], OPCODE["dup"], OPCODE["swap"]

Label = list[int]
"""The jumps to a place that is not reached yet, by pc."""


@dataclasses.dataclass(frozen=True)
class Vector:
    """A vector in the data that the program starts with."""

    address: int
    width: int
    """Bytes of an element."""
    length: int
    static: int
    """The static that holds its address."""


@dataclasses.dataclass(frozen=True)
class Callee:
    """A function that can be called."""

    number: int
    signature: int
    parameters: tuple[int, ...]
    result: int | None
    more: tuple[int, ...] = ()
    """Results below that one."""
    cost: int = 0
    heap: int = 0
    is_risky: bool = False
    throws: frozenset[int] = frozenset()
    """Tags of the exceptions that it may leave to its callers."""


class ItemFunction(NamedTuple):
    """A function that launches call, once for each item."""

    callee: Callee
    written: frozenset[int]
    """Parameters that hold the places of the items, each of which an item writes its own of: an
    array, or an i64 with the address of words."""
    shared: Mapping[int, int]
    """Parameters that hold arrays whose elements all items update, each array by updates that
    commute; and their lengths."""


class SkeletonFunction(NamedTuple):
    """A function that maps, reduces or scans. The costs of the callee: those of a call without
    elements, and the bytes of the heap that one element takes."""

    callee: Callee
    read: tuple[int, ...]
    """Parameters that hold arrays that are read, of one length."""
    written: tuple[int, ...]
    """Parameters that hold arrays for the results, likewise."""
    each: int
    """Instructions for an element, at most."""


@dataclasses.dataclass
class ProgramContext:
    """Context that the functions of a program share."""

    chance: Chance
    tables: Tables
    ops: list[int]
    immediates: list[int]
    statics: list[list[int]]
    """By type, those that can be written; for i64, the first ones."""
    readable_statics: list[list[int]]
    """By type, those that can be read."""
    all_i64: bool
    """True if statics can be numbered at run time: `free_statics` is then a power of two."""
    free_statics: int
    static_count: int
    """Statics beside those that count loops."""
    scratch: int
    """Bytes from address 0 that may be overwritten; a power of two."""
    first_hp: int
    """Bytes of the heap in use from the start: loads below never trap."""
    vectors: list[Vector]
    """At least one."""
    hosts: list[tuple[int, int]]
    """Number and parameter type of each host function."""
    own_hosts: list[tuple[int, HostImport]]
    """Number and import of host functions that a campaign adds."""
    is_risky: bool
    heap_budget: int
    clauses: list[Clause] = dataclasses.field(default_factory=list)
    """Inner ones first, without their depths."""
    callees: list[Callee] = dataclasses.field(default_factory=list)
    items: list[ItemFunction] = dataclasses.field(default_factory=list)
    skeletons: list[SkeletonFunction] = dataclasses.field(default_factory=list)
    names: dict[int, str] = dataclasses.field(default_factory=dict)
    """Functions with names of their own, by number."""
    kind: CodeKind = CodeKind.PLAIN
    table: dict[int, int] = dataclasses.field(default_factory=dict)
    """The place of each function in the function table."""
    table_size: int = 0
    signatures: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = dataclasses.field(
        default_factory=dict
    )
    runaway: Callee | None = None
    """A function that calls itself as often as its first argument says, however often."""
    static_counts: list[int] = dataclasses.field(default_factory=list)
    """The instructions whose literal is the number of all statics, which is known at the end."""
    counters: int = 0
    """Statics that count loops, after the others."""
    occurred: Counter[Corner] = dataclasses.field(default_factory=Counter)
    """Counts of the generated corners."""
    is_crowded: bool = False
    """True if a function still has to get a thousand locals."""
    objects: ObjectTypes | None = None
    """The reference types of a program that has objects."""
    tags: tuple[tuple[int, ...], ...] = ()
    """The values of each tag, by type."""

    @property
    def types(self) -> tuple[ValueType, ...]:
        """All types by their number in this package."""
        return TYPES if self.objects is None else self.objects.types

    @property
    def record_references(self) -> int:
        """The references in the record of an exception."""
        return max(sum(t >= FIRST for t in values) for values in self.tags)

    @property
    def choices(self) -> Choices:
        """The parts of its code, to be drawn."""
        return self.tables.choices[self.kind, self.objects is not None]

    def any_type(self) -> int:
        """The type of a variable, a parameter or a result."""
        chance = self.chance
        if self.objects is not None and chance.flip(self.tables.chance["reference_variable"]):
            return chance.pick(self.objects.usual)
        return chance.below(FIRST)

    def fits(self, t: int, wanted: int) -> bool:
        """True if a value of the type can stand where another one is wanted."""
        return t == wanted if self.objects is None else self.objects.fits(t, wanted)


class Corner(enum.Enum):
    """A rare situation that a campaign counts; the value is its name in reports."""

    IRREDUCIBLE = "cycles with several entries"
    FORGED = "forged or overlapping vectors"
    WRAPPING = "induction variables that wrap"
    DEEP = "hundreds of operands"
    LOCALS = "a thousand locals"
    OBJECTS = "structs and arrays"
    LINKED = "lists of structs"
    GARBAGE = "loops whose objects die"
    HOARD = "loops whose objects live"
    CAUGHT = "handlers of exceptions with references"
    RECORD = "records with references that wait"
    LAUNCH = "launches"
    SKELETON = "maps, reductions and scans"


class ObjectLocal(NamedTuple):
    """A local that holds an object here, not null."""

    local: int
    type: int
    length: int
    """Elements of an array; 0 for a struct."""


class Body:
    """Code of one function, with the variables in scope."""

    def __init__(
        self,
        plan: ProgramContext,
        parameters: tuple[int, ...],
        result: int | None,
        limit: int,
        budget: int,
        is_risky: bool,
    ) -> None:
        """`limit`: pc after which nothing more is started; `budget`: instructions that it may
        execute."""
        self.plan, self.chance, self.tables = plan, plan.chance, plan.tables
        self.catalogue = plan.tables.catalogue
        self.ops, self.immediates = plan.ops, plan.immediates
        self.result = result
        self.more: tuple[int, ...] = ()
        """Types of the results below that one."""
        self.is_main = False
        self.limit, self.budget = limit, budget
        self.is_risky = is_risky
        self.weight = 1
        """Upper bound of executions of the code that is being generated."""
        self.cost = self.heap = 0
        self._settled = len(self.ops)
        self.locals: list[int] = list(parameters)
        self.parameter_count = len(parameters)
        self.readable: list[list[int]] = [[] for _ in plan.types]
        self.writable: list[list[int]] = [[] for _ in plan.types]
        for number, t in enumerate(parameters):
            self.readable[t].append(number)
            self.writable[t].append(number)
        self.idle_counters: list[list[int]] = [[], []]
        self.indexes: list[tuple[int, int]] = []
        """Locals (i64) that are below a bound here."""
        self.blocks: list[tuple[int, int]] = []
        """Locals (i64) that hold an address here, and the bytes in bounds from there."""
        self.objects: list[ObjectLocal] = []
        self.idle_references: dict[int, list[int]] = {}
        """By type, locals that hold a reference for a moment, while they do not."""
        self.vector_locals: dict[int, int] = {}
        """By address of a vector, the local that holds it."""
        self.exits: list[tuple[Label, Label]] = []
        """Of the loops around, where the stack is as it is here: exits, and to the next
        iteration."""
        self.nesting = 0
        self.caught: frozenset[int] = frozenset()
        """Tags that statements around here catch, or callers."""

    # --- code -------------------------------------------------------------------------------

    def put(self, opcode: int, immediate: int = 0) -> None:
        """Append an instruction."""
        self.ops.append(opcode)
        self.immediates.append(immediate)

    def const(self, t: int, bits: int) -> None:
        """Append a literal."""
        self.ops.append(CONST[t])
        self.immediates.append(bits)

    def jump(self, opcode: int, label: Label) -> None:
        """Append a jump to a place that comes later."""
        label.append(len(self.ops))
        self.ops.append(opcode)
        self.immediates.append(0)

    def place(self, label: Label) -> None:
        """Place the label here, as the target of its jumps."""
        here = len(self.ops)
        for pc in label:
            self.immediates[pc] = here

    # --- costs ------------------------------------------------------------------------------

    def settle(self) -> None:
        """Add up the costs of the code generated since the last call."""
        here = len(self.ops)
        self.cost += self.weight * (here - self._settled)
        self._settled = here

    def affords(self, cost: int, heap: int = 0) -> bool:
        """True if something of that cost can be added here."""
        self.settle()
        return (
            self.cost + self.weight * cost <= self.budget
            and self.heap + self.weight * heap <= self.plan.heap_budget
        )

    def charge(self, cost: int, heap: int = 0) -> None:
        """Add the cost of something besides its instructions."""
        self.cost += self.weight * cost
        self.heap += self.weight * heap

    @contextlib.contextmanager
    def repeated(self, times: int) -> Iterator[None]:
        """Context in which generated code may be executed that often."""
        self.settle()
        self.weight *= max(1, times)
        yield
        self.settle()
        self.weight //= max(1, times)

    @property
    def has_capacity(self) -> bool:
        """True if there is space for more than the open constructs need."""
        return len(self.ops) < self.limit

    # --- variables --------------------------------------------------------------------------

    def new_local(self, t: int, is_writable: bool = False) -> int:
        """A further local; one that is not writable changes only where its maker says."""
        number = len(self.locals)
        self.locals.append(t)
        if is_writable:
            self.readable[t].append(number)
            self.writable[t].append(number)
        return number

    def take_counter(self, t: int) -> int:
        """A local to count with, of type i32 or i64."""
        idle = self.idle_counters[t]
        if idle:
            return idle.pop()
        number = self.new_local(t)
        self.readable[t].append(number)
        return number

    def give_counter(self, number: int) -> None:
        """The local counts no longer."""
        self.idle_counters[self.locals[number]].append(number)

    # --- methods of other parts of this class ------------------------------------------------

    def value(self, t: int, depth: int) -> None:
        """Append code that yields a value of the type; `depth` bounds how deep it nests."""
        raise NotImplementedError

    def leaf(self, t: int) -> None:
        """Append one instruction that yields a value of the type."""
        raise NotImplementedError

    def condition(self, depth: int) -> None:
        """Append code that yields an i32, which is 0 about as often as not."""
        raise NotImplementedError

    def block(self, statements: int) -> None:
        """Append at most that many statements; variables made inside are gone after them."""
        raise NotImplementedError
