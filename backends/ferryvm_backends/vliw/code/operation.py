# SPDX-License-Identifier: Apache-2.0
"""The machine's code before scheduling: operations on virtual registers.

A block is entered at its top alone, may be left in the middle by an `exit`, and ends with a `jump`
or with `stop`. Operations that compute are those of the region IR. Besides them there are

    move a                    a; of words or of predicates
    load  segment a + offset  1, 2, 4 or 8 bytes, zero-extended
    store segment a + offset, b
    exit p, block             branch there if p holds
    exit_unless p, block      branch there if it does not
    exit_expired block        branch there if the program's time slice is over
    repeat [block]            back edge of a pipelined loop; with a block: to it if time is over
    jump block
    jump_to a                 branch to the block whose number is in a
    stop                      return control

A register may be written in several places, as block parameters are.

A store may have a *predicate*: one more operand, its last. `store … if p` does nothing if p does
not hold, `store … unless p` nothing if p holds.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import NamedTuple

from ferryvm.ir import footprint as heap
from ferryvm.ir.graph import Static
from ferryvm.isa.element import Element
from ferryvm.isa.type import F32, F64, Type
from ferryvm_backends.vliw.machine.model import FileKind, Work


class Segment(enum.Enum):
    """Parts of the machine's memory; an address is an offset in one. They never overlap."""

    CONTROL = "control"
    STATICS = "statics"
    STACK = "stack"
    HEAP = "heap"
    OBJECTS = "objects"
    """The object space, and the elements of arrays that are outside of it."""
    TYPES = "types"
    """Type rows, which nothing changes."""
    FUNCTIONS = "functions"
    TABLE = "table"
    SPILL = "spill"
    """Of the code alone: words of registers that there are too few of."""
    CALLS = "calls"
    """Operations of calls in the code alone: active functions need some values when their callees
    return."""


class Register:
    """A register that has no number yet."""

    __slots__ = ("file", "is_spill", "kind", "number")

    def __init__(self, number: int, kind: FileKind, is_spill: bool = False) -> None:
        self.number, self.kind, self.is_spill = number, kind, is_spill
        self.file = ""
        """Name of the file that it is to be in, once that is decided."""

    def __repr__(self) -> str:
        return f"{'p' if self.kind is FileKind.BOOLEAN else 'v'}{self.number}"


class HeaderPart(NamedTuple):
    """One word of the headers of all objects."""

    word: int


class FieldPart(NamedTuple):
    """A field of all structs that have it."""

    type: int
    """The number of the type that declares it."""
    field: int


class ElementPart(NamedTuple):
    """The elements of all arrays of one type."""

    elements: Element | int
    """An element kind, or the number of a type of arrays of references."""
    bytes: int
    """Of one element."""


class ContextPart(NamedTuple):
    """A context array of a group, on the stack."""

    group: int
    """The group's number; arrays of two groups may be in the same place."""
    array: int


ObjectPart = HeaderPart | FieldPart | ElementPart
"""A part of the object space; different parts have no byte in common."""

Part = ObjectPart | ContextPart


def are_parts_apart(one: Part, other: Part) -> bool:
    """True if two parts of a segment have no byte in common."""
    is_context = isinstance(one, ContextPart) and isinstance(other, ContextPart)
    return one != other and (not is_context or one[0] == other[0])


class AccessingItem(NamedTuple):
    """The item of a launch that makes an access, within the innermost loop around the access."""

    loop: int
    """The unrolled loop over items that the access was in; 0: none."""
    number: int
    """Number of the item in the unrolled loop."""
    of_iteration: bool
    """True if each iteration of the innermost loop has other items."""
    iteration: int = 0
    """Number of its iteration: of several that are scheduled as one, or in a proof from the first
    one on."""
    iterations: int = 1
    """Iterations that are scheduled as one."""

    def is_other(self, item: AccessingItem) -> bool:
        """True if another item is certainly not this one, and does not wait for it between the two
        accesses."""
        if self.iteration != item.iteration:
            return self.of_iteration and item.of_iteration
        return self.loop == item.loop and self.number != item.number

    def in_pass(self, number: int) -> AccessingItem:
        """The item in the n-th pass of a loop, from 0 on, in the iterations of the program's
        loop."""
        return self._replace(iteration=number * self.iterations + self.iteration, iterations=1)

    def in_copy(self, number: int) -> AccessingItem:
        """The item in one of several copies of an iteration's code that run one after another."""
        return self if self.of_iteration else self._replace(loop=self.loop + number * _COPY)


@dataclasses.dataclass(eq=False, slots=True)
class MemoryOperand:
    """The memory that a load or store accesses, besides its address."""

    segment: Segment
    offset: int = 0
    """Added to the address, modulo 2^64; its magnitude is less than 2^32."""
    size: int = 8
    object: heap.Footprint | None = None
    """The array or heap object that it accesses, if that is known."""
    part: Part | None = None
    """The part of the object space, for an access to it; of the stack, for a context array."""
    item: AccessingItem | None = None
    """For an access by an item of a launch: which one. Accesses of two items, one of which stores,
    have no byte in common if no barrier is between: so the program promises (docs/parallel.md)."""


@dataclasses.dataclass(eq=False, slots=True)
class MachineOperation:
    """One operation."""

    name: str
    static: tuple[Static, ...] = ()
    operands: tuple[Operand, ...] = ()
    result: Register | None = None
    place: MemoryOperand | None = None
    target: MachineBlock | None = None
    others: tuple[MachineBlock, ...] = ()
    """The blocks that a `jump_to` may go to."""
    pc: int = -1
    """The instruction of the program that it was made for."""
    holds: bool | None = None
    """Value of the predicate, its last operand, for which it is executed; None: no predicate."""

    @property
    def predicate(self) -> tuple[Operand, bool] | None:
        """The predicate that it depends on, and the required value."""
        return None if self.holds is None else (self.operands[-1], self.holds)

    @property
    def given(self) -> tuple[Operand, ...]:
        """Its operands but for the predicate."""
        return self.operands if self.holds is None else self.operands[:-1]

    @property
    def work(self) -> Work:
        """The kind of work that a unit must support for it."""
        return work_of(self.name, self.static)

    def registers(self) -> list[Register]:
        """The registers that it reads."""
        return [each for each in self.operands if isinstance(each, Register)]

    def constants(self) -> list[int | MachineBlock]:
        """The constants that its bundle has to hold: a base of nothing is none."""
        operands = self.operands
        if self.place is not None and operands[0] == 0:
            operands = operands[1:]
        return list(dict.fromkeys(each for each in operands if not isinstance(each, Register)))

    def kind_of(self, number: int) -> FileKind:
        """The kind of an operand."""
        is_predicate = self.name in _PREDICATES and (number == 0 or self.name != "select")
        is_predicate |= self.holds is not None and number == len(self.operands) - 1
        return FileKind.BOOLEAN if is_predicate else FileKind.INTEGER

    def targets(self) -> tuple[MachineBlock, ...]:
        """The blocks at which control may continue after it, other than the next operation."""
        return self.others if self.target is None else (self.target,)

    def __str__(self) -> str:
        static = " ".join(getattr(each, "value", str(each)) for each in self.static)
        place = ""
        if self.place is not None:
            place = f" {self.place.segment.value}{self.place.offset:+}:{self.place.size}"
        operands = ", ".join(map(_shown, self.given))
        target = f" {self.target.label}" if self.target is not None else ""
        if self.holds is not None:
            target += f" {'if' if self.holds else 'unless'} {_shown(self.operands[-1])}"
        text = (
            f"{self.name} {static}".strip() + place + (f" {operands}" if operands else "") + target
        )
        return f"{self.result} = {text}" if self.result is not None else text


@dataclasses.dataclass(eq=False, slots=True, repr=False)
class MachineBlock:
    """Operations that run one after another, unless one leaves."""

    label: str
    operations: list[MachineOperation] = dataclasses.field(default_factory=list)
    is_cold: bool = False
    """It is entered once at most: control leaves the code by it."""

    def __repr__(self) -> str:
        return f"MachineBlock({self.label!r})"


_COPY = 1 << 20
"""More than the number of any unrolled loop."""

Operand = Register | int | MachineBlock
"""An int is a constant: its bits; a block the number of its first bundle, which is one too."""


@dataclasses.dataclass
class MachineCode:
    """The code of a region."""

    name: str
    blocks: list[MachineBlock]
    """The first one is entered."""
    guards: tuple[int, ...] = ()
    """pc of each guard, by the number that is left in `exit_id`."""
    registers: int = 0
    """Number of registers created so far."""
    spills: int = 0
    """Words of the segment of that name."""
    call_bytes: int = 0
    """Of the segment of calls."""
    records: list[MachineBlock] = dataclasses.field(default_factory=list)
    """The entries of routines that write the record of a group, to which exits jump."""

    def register(self, kind: FileKind, is_spill: bool = False) -> Register:
        """A new register."""
        self.registers += 1
        return Register(self.registers - 1, kind, is_spill)

    def __str__(self) -> str:
        return "".join(
            f"{block.label}:\n" + "".join(f"    {each}\n" for each in block.operations)
            for block in self.blocks
        )


def work_of(name: str, static: tuple[Static, ...]) -> Work:
    """The kind of work that a unit must support for an operation."""
    if name == "compare":
        (t, _) = static
        assert isinstance(t, Type)
        return Work.FLOAT_COMPARE if t.is_float else Work.COMPARE
    return _WORK[name]


def canonical_type(name: str, static: tuple[Static, ...]) -> Type | None:
    """The type of an operation's result if that is a float whose NaN the machine makes
    canonical."""
    if name in _CONVERTED:
        return _CONVERTED[name]
    if _WORK.get(name) not in _FLOAT_ARITHMETIC:
        return None
    t = static[0]
    assert isinstance(t, Type)
    return t


def _shown(operand: Operand) -> str:
    if isinstance(operand, MachineBlock):
        return f"@{operand.label}"
    return repr(operand) if isinstance(operand, Register) else f"{operand:#x}"


EXITS = frozenset({"exit", "exit_unless", "exit_expired", "repeat"})
"""Operations by which control may leave a block in the middle."""
BRANCHES = EXITS | {"jump", "jump_to", "stop"}
_PREDICATES = frozenset({"all", "any", "none", "exit", "exit_unless", "select"})
"""Operations with predicates among their operands: all of them, or the first of `select`."""
_NAMES = {
    Work.MOVE: "move",
    Work.ADD: "add sub",
    Work.LOGIC: "bit_and bit_or bit_xor",
    Work.SHIFT: "shl shr_s shr_u",
    Work.EXTEND: "wrap extend_s",
    Work.SELECT: "select",
    Work.BOOLEAN: "all any none",
    Work.COUNT: "clz ctz popcnt",
    Work.MULTIPLY: "mul",
    Work.DIVIDE: "div_s div_u rem_s rem_u",
    Work.FLOAT_ADD: "fadd fsub",
    Work.FLOAT_MULTIPLY: "fmul ffma",
    Work.FLOAT_DIVIDE: "fdiv",
    Work.FLOAT_ROOT: "fsqrt",
    Work.FLOAT_ROUND: "fceil ffloor ftrunc fnearest",
    Work.CONVERT: "to_float_s to_float_u to_int_s to_int_u promote demote",
    Work.LOAD: "load",
    Work.STORE: "store",
    Work.BRANCH: " ".join(BRANCHES),
}
_FLOAT_ARITHMETIC = frozenset(
    {Work.FLOAT_ADD, Work.FLOAT_MULTIPLY, Work.FLOAT_DIVIDE, Work.FLOAT_ROOT, Work.FLOAT_ROUND}
)
_CONVERTED = {"promote": F64, "demote": F32}
_WORK = {name: work for work, names in _NAMES.items() for name in names.split()}
