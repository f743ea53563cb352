# SPDX-License-Identifier: Apache-2.0
"""Every fused group leaves the state that its instructions leave one at a time.

A group gets a program of its own, in which `nop`s keep its instructions from joining others:

    main:  call trial · nop · halt
    trial: operands · nop · the group · nop · halt            callee: nop · halt
           after: nop · halt   (where the group's jump goes)

It starts at the group with random edge values in locals, statics and on the operand stack, with and
without the interrupt flag and memory for objects, and the whole state at the end or trap is
compared.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import zlib
from collections.abc import Iterator

import pytest

from ferryvm.backend import Artifact
from ferryvm.engine import Engine
from ferryvm.isa import BY_MNEMONIC, F32, F64, I32, I64, Flow, Immediate, Instruction
from ferryvm.isa.element import Element
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.struct import field_immediate
from ferryvm.isa.table import REF, T, Variable
from ferryvm.isa.type import ANYREF, ARRAYREF, I31REF, Reference, ValueType
from ferryvm.listing import FunctionListing, Item, Label, Line, Listing
from ferryvm.listing.encode import encode
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.program import Data, Signature, Static
from ferryvm.verify import Verified, verify
from ferryvm_backends.threaded.fusion import Fusion, Group, groups, packed

from ..tier import sample
from . import fused_object
from .fused_object import CELL, CELLS, FIELDS, PAIR

BACKENDS = ("reference", "switch", "threaded")
SHARDS = 12
ITERATIONS = 6
HEAP = b"".join((7 * word % 40).to_bytes(8, "little") for word in range(64))
"""Any aligned address below its end is that of a vector with a small length."""

_ENDS = (Flow.JUMP, Flow.RETURN)

EDGES = {
    I64: [0, 1, 2, 3, 5, 7, 8, 16, 40, 63, 64, 120, 255, 496, 504, 505, 511, 512, 1 << 31, 1 << 32,
          (1 << 32) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, I64.mask - 8, I64.mask - 1,
          I64.mask],
    I32: [0, 1, 2, 5, 31, 32, 33, 0xFF, 0x8000, 1 << 30, (1 << 31) - 1, 1 << 31, I32.mask - 1,
          I32.mask],
    F64: [0, 1 << 63, 1, 1 | 1 << 63, 0x3FF0 << 48, 0xBFF0 << 48, 0x4008 << 48, 0x3FD5555555555555,
          0x7FEFFFFFFFFFFFFF, 0x0010 << 48, 0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, 0xFFF8 << 48,
          0x7FF0000000000001, 0x7FFC000000000123],
    F32: [0, 1 << 31, 1, 0x3F800000, 0xBF800000, 0x3EAAAAAB, 0x7F7FFFFF, 0x00800000, 0x7F800000,
          0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FE00123],
}  # fmt: skip


class Clash(Exception):  # noqa: N818 - not an error: other variables are tried
    """A variable is used with two types."""


class Kind:
    """The type of a value, found out as a group is read: a variable of unification."""

    def __init__(self, known: ValueType | None = None) -> None:
        is_bound = known in (ANYREF, ARRAYREF)
        self.known = None if is_bound else known
        self.bound = known if is_bound else None
        """A supertype that it is known to have."""
        self.link = self

    def root(self) -> Kind:
        """The representative."""
        return self if self.link is self else self.link.root()

    @property
    def type(self) -> ValueType:
        """The type; where nothing says which, the largest one that it can be, else i64."""
        root = self.root()
        return root.known or root.bound or I64

    def unify(self, other: Kind) -> None:
        """Make both the same type."""
        left, right = self.root(), other.root()
        if left is right:
            return
        if left.known and right.known and left.known is not right.known:
            raise Clash
        known = left.known or right.known
        bounds = {left.bound, right.bound}
        bound = ARRAYREF if ARRAYREF in bounds else ANYREF if ANYREF in bounds else None
        if known and bound and known not in _BELOW[bound]:
            raise Clash
        right.known, right.bound = known, bound
        left.link = right


_ARRAYS = {element.array for element in Element} | {CELLS}
_BELOW: dict[Reference, set[Reference]] = {
    ARRAYREF: _ARRAYS,
    ANYREF: _ARRAYS | {I31REF, CELL, PAIR},
}
"""Types below a type."""


@dataclasses.dataclass
class Trial:
    """The program of a group, and what can be set at its start."""

    verified: Verified
    group_pc: int
    locals: list[ValueType]
    statics: list[ValueType]
    operands: list[ValueType]


class _Builder:
    """Finds the types that a group needs, and builds a program around it."""

    def __init__(self, group: Group, rng: random.Random, is_shared: bool) -> None:
        self.group, self.rng, self.is_shared = group, rng, is_shared
        # A group that ends in a jump is chosen only where what follows costs no dispatch.
        self.gap = [Line(BY_MNEMONIC["nop"])] if group[-1].flow not in _ENDS else []
        self.stack: list[Kind] = []
        self.operands: list[Kind] = []
        self.variables: dict[Immediate, list[Kind]] = {Immediate.LOCAL: [], Immediate.STATIC: []}
        self.parameters: list[Kind] = []
        self.result: Kind | None = None
        self.lines: list[tuple[Instruction, int | str | Kind | None]] = []
        """Instructions with their immediates; a kind says which field or which type that is."""

    def _pop(self) -> Kind:
        if self.stack:
            return self.stack.pop()
        self.operands.insert(0, Kind())
        return self.operands[0]

    def _variable(self, where: Immediate) -> int:
        known = self.variables[where]
        if not known or not self.is_shared or self.rng.random() < 0.2:
            known.append(Kind())
        return self.rng.randrange(len(known)) if self.is_shared else len(known) - 1

    def _read(self, row: Instruction) -> None:
        operand: int | str | Kind | None = None
        opened: dict[object, Kind] = {}
        if row.immediate in self.variables:
            operand = self._variable(row.immediate)
            opened[next(t for t in (*row.pops, *row.pushes))] = self.variables[row.immediate][
                operand
            ]
        elif row.immediate.literal:
            operand = self.rng.choice(EDGES[row.immediate.literal])
        elif row.immediate is Immediate.OFFSET:
            operand = self.rng.choice([0, 0, 0, 1, 8, 500, (1 << 32) - 1])
        elif row.immediate is Immediate.TARGET:
            operand = "after"
        elif row.immediate is Immediate.FUNCTION:
            operand = "callee"
            self._call()
        elif row.immediate is Immediate.RESULTS:
            self.result = self._pop()
            operand = 1
        elif row.immediate is Immediate.FIELD:
            opened[REF], operand = Kind(CELL), opened.setdefault(T, Kind())
        elif row.immediate is Immediate.TYPE:
            operand = opened.setdefault(REF, Kind(ANYREF))
        elif row.immediate is Immediate.ARRAY:
            opened[REF], opened[T], operand = Kind(CELLS), Kind(CELL), CELLS.number
        elif row.immediate in (Immediate.FIELDS, Immediate.STRUCT):
            opened[REF], operand = Kind(PAIR), PAIR.number
            for _ in range(2 if row.immediate is Immediate.FIELDS else 0):
                self._pop().unify(Kind(I64))
        for t in reversed(row.pops):
            found = self._pop()
            found.unify(opened.setdefault(t, Kind()) if isinstance(t, Variable) else Kind(t))
        for t in row.pushes:
            self.stack.append(opened.setdefault(t, Kind()) if isinstance(t, Variable) else Kind(t))
        self.lines.append((row, operand))

    def _line(self, row: Instruction, operand: int | str | Kind | None) -> Line:
        if not isinstance(operand, Kind):
            return Line(row, operand)
        t = operand.type
        if row.immediate is Immediate.TYPE:
            if not isinstance(t, Reference):
                raise Clash
            return Line(row, t.number)
        if t not in FIELDS:
            raise Clash
        return Line(row, field_immediate(CELL.number, FIELDS.index(t)))

    def _call(self) -> None:
        """Every value on the stack is an argument."""
        while self.stack:
            self.parameters.insert(0, self._pop())

    def trial(self) -> Trial:
        """The group's program."""
        for row in self.group:
            self._read(row)
        locals_ = [kind.type for kind in self.variables[Immediate.LOCAL]]
        statics = [kind.type for kind in self.variables[Immediate.STATIC]]
        operands = [kind.type for kind in self.operands]
        nop, halt = Line(BY_MNEMONIC["nop"]), Line(BY_MNEMONIC["halt"])
        setup: list[Item] = [_zero(t) for t in operands]
        lines = [self._line(row, operand) for row, operand in self.lines]
        ends: list[Item] = [*self.gap, halt, Label("after"), nop, halt]
        results = () if self.result is None else (self.result.type,)
        padding = (I64,) * self.rng.choice([0, 1, 1000])  # where 1000, its frame does not fit
        listing = Listing(
            [
                FunctionListing("main", items=[
                    Line(BY_MNEMONIC["call"], "trial"), nop, halt]),
                FunctionListing("trial", Signature((), results), tuple(locals_),
                                [*setup, nop, *lines, *ends]),
                FunctionListing("callee", Signature(tuple(k.type for k in self.parameters)), padding,
                                [nop, halt]),
            ],
            [Static(f"s{n}", t) for n, t in enumerate(statics)],
            [Data(0, HEAP)],
            types=fused_object.TYPES,
        )  # fmt: skip
        verified = verify(encode(listing))
        group_pc = 3 + len(setup) + 1
        return Trial(verified, group_pc, locals_, statics, operands)


def _zero(t: ValueType) -> Line:
    if isinstance(t, Reference):
        return Line(BY_MNEMONIC["ref.null"], t.number)
    return Line(BY_MNEMONIC[f"{t}.const"], 0)


def _trial(group: Group, rng: random.Random, is_shared: bool) -> Trial:
    for _ in range(8 if is_shared else 0):
        with contextlib.suppress(Clash):
            return _Builder(group, rng, True).trial()
    return _Builder(group, rng, False).trial()


def _bits(rng: random.Random, t: ValueType) -> int:
    if isinstance(t, Reference):
        return fused_object.reference(rng, t)
    if t is I64 and rng.random() < 0.7:
        return rng.choice(EDGES[I64][:14])  # mostly what may be an address, an index, a count
    if rng.random() < 0.1:
        return rng.getrandbits(t.bits)
    return rng.choice(EDGES[t])


@dataclasses.dataclass
class Values:
    """What a trial starts with."""

    locals: list[int]
    statics: list[int]
    operands: list[int]
    interrupt: int
    free: int
    """Bytes for objects before a collection is due."""


def _start(machine: Machine, trial: Trial, values: Values) -> None:
    """Put a machine at the first instruction of the group."""
    control, memory = machine.control, machine.memory
    fp = HEADER_WORDS  # main has no locals; the header of `trial`'s frame follows its own
    frame = [0, 0, 1, HEADER_WORDS, *values.locals, *values.operands]
    for index, word in enumerate(frame):
        memory.stack[index] = word
    for index, word in enumerate(values.statics):
        memory.statics[index] = word
    memory.heap[: len(HEAP)] = HEAP
    control.status = control.trap = 0
    control.pc, control.sp, control.fp, control.hp = trial.group_pc, len(frame), fp, len(HEAP)
    control.interrupt = values.interrupt
    fused_object.put(machine, values.free)


def _state(machine: Machine, status: Status) -> dict[str, object]:
    control, memory = machine.control, machine.memory
    return {
        "status": status.name,
        "trap": control.trap,
        "pc": control.pc,
        "sp": control.sp,
        "fp": control.fp,
        "hp": control.hp,
        "statics": memory.statics.tolist(),
        "stack": memory.stack[: control.sp].tolist(),
        "heap": bytes(memory.heap[: len(HEAP)]),
        "wanted": (control.wanted, control.wanted_type) if status is Status.ALLOCATE else (),
        "objects": fused_object.content(machine),
    }


LIMITS = Limits(stack=4096, heap=1 << 12, first_heap=1 << 12)
ENGINES = {name: Engine(name, limits=LIMITS) for name in BACKENDS}


def _faults(group: Group, rng: random.Random, seen: set[str]) -> Iterator[str]:
    """Where a group's states differ; adds the ways in which it ended to `seen`."""
    for is_shared in (False, True):
        trial = _trial(group, rng, is_shared)
        runs: dict[str, tuple[Artifact, Machine]] = {
            name: (engine.backend.prepare(trial.verified), Machine(trial.verified, LIMITS))
            for name, engine in ENGINES.items()
        }
        for _ in range(ITERATIONS):
            values = Values(
                [_bits(rng, t) for t in trial.locals],
                [_bits(rng, t) for t in trial.statics],
                [_bits(rng, t) for t in trial.operands],
                int(rng.random() < 0.2),
                rng.choice([0, 1 << 12, 1 << 12]),
            )
            states = {}
            for name, (artifact, machine) in runs.items():
                _start(machine, trial, values)
                states[name] = _state(machine, artifact.enter(machine, counting=False))
            expected = states["reference"]
            seen.add(f"{expected['status']} {expected['trap']}")
            for name, state in states.items():
                parts = [part for part in expected if state[part] != expected[part]]
                if parts:
                    shown = [
                        f"{p}: {state[p]}, not {expected[p]}"
                        for p in parts
                        if p not in ("heap", "objects")
                    ]
                    yield f"{name}: {' '.join(r.mnemonic for r in group)} {values}: {parts} {shown}"


def _can_occur(group: Group) -> bool:
    try:
        _trial(group, random.Random(0), False)
    except Clash:
        return False
    return True


def _chosen(group: Group, gap: list[Line]) -> bool:
    """Whether a group gets its own handler, with these lines between it and the next `halt`."""
    builder = _Builder(group, random.Random(0), False)
    builder.gap = gap
    trial = builder.trial()
    opcodes = trial.verified.program.code.opcodes.tolist()
    handler: int = FUSION.handlers(opcodes)[trial.group_pc]
    return handler == LISTED.index(group) + FIRST


LISTED = groups()
FIRST = 1000
FUSION = Fusion(packed([[row.opcode for row in group] for group in LISTED]), FIRST)


@pytest.mark.parametrize("part", sample(range(6), 1))
def test_every_group_can_occur_in_a_program_that_verifies(part: int) -> None:
    listed = LISTED[part::6]
    never = [" ".join(row.mnemonic for row in group) for group in listed if not _can_occur(group)]
    assert not never, f"{len(never)} groups are not well-typed"


@pytest.mark.nightly
@pytest.mark.parametrize("part", sample(range(6), 1))
def test_group_is_chosen_in_its_trial(part: int) -> None:
    # Else the comparison below would be of something else than the group.
    for group in LISTED[part::6]:
        assert _chosen(group, _Builder(group, random.Random(0), False).gap), group


def test_group_that_ends_in_a_jump_is_chosen_whatever_follows() -> None:
    nops = [Line(BY_MNEMONIC["nop"])] * 3
    ending = [group for group in LISTED if group[-1].flow in _ENDS]
    assert ending
    assert all(_chosen(group, nops) for group in ending)


@pytest.mark.parametrize("shard", sample(range(SHARDS), SHARDS // 12))
def test_fused_group_leaves_the_state_of_its_instructions(shard: int) -> None:
    seen: set[str] = set()
    faults: list[str] = []
    for group in LISTED[shard::SHARDS]:
        seed = zlib.crc32(" ".join(row.mnemonic for row in group).encode())
        faults += _faults(group, random.Random(seed), seen)
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[:20])
    assert {"HALT 0", "INTERRUPTED 0"} < seen


def test_group_that_makes_an_object_leaves_where_it_does_not_fit() -> None:
    for group in LISTED:
        if any(row.mnemonic.startswith("struct.new") for row in group):
            seen: set[str] = set()
            rng = random.Random(1)
            assert not [*_faults(group, rng, seen), *_faults(group, rng, seen)]
            assert "ALLOCATE 0" in seen, group
