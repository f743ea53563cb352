# SPDX-License-Identifier: Apache-2.0
"""Programs of the machine as native code, which takes the same cycles and leaves the same state.

What is on its way when a bundle is fetched, results that have not landed and a branch that has not
been taken yet, is known before the program runs: it depends on the bundles in front of it alone. So
there is native code for each bundle with each *context* that it can be fetched in, and results on
their way are values there, not entries of a queue. An exit goes on in two contexts.
"""

from __future__ import annotations

import ctypes
import dataclasses

import numpy as np
from llvmlite import ir

from ferryvm.ir.graph import Static
from ferryvm.ir.operation import computed_types
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import Type
from ferryvm.machine.control import ControlBlock
from ferryvm_backends._llvm.arithmetic import I1, LLVM_TYPE, WORD, Arithmetic, word
from ferryvm_backends._llvm.build import compile_module
from ferryvm_backends._llvm.native import NativeCode
from ferryvm_backends.vliw.code.operation import BRANCHES, EXITS, Segment, canonical_type, work_of
from ferryvm_backends.vliw.code.program import Bypass, Immediate, Program, Read, Slot, Source
from ferryvm_backends.vliw.machine.model import FileKind, Work
from ferryvm_backends.vliw.simulate.count import Counts, HazardError, Issue
from ferryvm_backends.vliw.simulate.memory import Memory

_SEGMENTS = list(Segment)
_POINTER = ir.PointerType()
_BYTE = ir.IntType(8)
_INTERRUPT: int = vars(ControlBlock)["interrupt"].offset
_STOP = -1
"""As a branch's target: the program stops."""
_DYNAMIC = -2
"""The target is a value."""


@dataclasses.dataclass(frozen=True, order=True)
class _Flight:
    """A result on its way."""

    unit: int
    left: int
    """Cycles until it lands; 0: at the beginning of this one."""
    file: int
    number: int
    """The register that it goes to; -1: none."""


@dataclasses.dataclass(frozen=True)
class _Branch:
    """A branch on its way."""

    target: int
    left: int
    """Cycles until control goes on there; 0: after this one."""
    is_exit: bool


@dataclasses.dataclass(frozen=True)
class _Context:
    """What is on its way when a bundle is fetched."""

    flights: tuple[_Flight, ...] = ()
    branches: tuple[_Branch, ...] = ()
    """The next one first."""

    def branching(self, target: int, left: int, is_exit: bool) -> _Context:
        """With one more branch on its way."""
        return _Context(self.flights, (*self.branches, _Branch(target, left, is_exit)))


class _Frame(ctypes.Structure):
    """What native code is given."""

    _fields_ = [
        ("segments", ctypes.c_uint64 * (2 * len(_SEGMENTS))),  # address and size of each
        ("budget", ctypes.c_uint64),
        ("flag", ctypes.c_uint64),  # address of a host's word that is not 0 when the time is over
        ("cycles", ctypes.c_uint64),
        ("counts", ctypes.c_uint64),  # address of a word a bundle
    ]


class NativeProgram:
    """A program that can be run."""

    def __init__(self, program: Program) -> None:
        self.program, self._issue = program, Issue(program)
        module = _Translation(program).run()
        self._code = NativeCode(compile_module(module, merge_tails=True))
        kind = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
        self._run = kind(self._code.function_address("run"))

    def run(self, memory: Memory, budget: int, control: ControlBlock | None = None) -> Counts:
        """As `interpret`. Raises HazardError for a store to where there is no memory, and for counts that
        no machine can have. `control`: the host's; its interrupt flag ends the program's time, too."""
        frame = _Frame()
        for number, segment in enumerate(_SEGMENTS):
            bytes_ = memory.segments[segment]
            frame.segments[2 * number] = bytes_.ctypes.data
            frame.segments[2 * number + 1] = len(bytes_)
        frame.budget = budget
        never = ctypes.c_uint32(0)
        frame.flag = ctypes.addressof(never)
        if control is not None:
            frame.flag = ctypes.addressof(control) + _INTERRUPT
        bundles = np.zeros(len(self.program.bundles), np.int64)
        frame.counts = bundles.ctypes.data
        if self._run(ctypes.addressof(frame)):
            raise HazardError(f"{self.program.name}: a store to where there is no memory")
        return self._issue.counts(frame.cycles, bundles)


class _Translation(Arithmetic):
    def __init__(self, program: Program) -> None:
        self.program, self.machine = program, program.machine
        self.module = ir.Module("program")
        self.function = ir.Function(self.module, ir.FunctionType(WORD, [_POINTER]), "run")
        self.frame = self.function.args[0]
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.registers: dict[tuple[int, int], ir.Value] = {}
        self.outputs: dict[int, ir.Value] = {}
        self.flying: dict[tuple[int, int], ir.Value] = {}
        self.blocks: dict[tuple[int, _Context], ir.Block] = {}
        self.waiting: list[tuple[int, _Context]] = []

    def run(self) -> ir.Module:
        """The module of a function `run`: 0, or 1 for a store to where there is no memory."""
        b = self.builder
        self.cycles, self.to = b.alloca(WORD), b.alloca(WORD)
        b.store(word(0), self.cycles)
        b.store(word(0), self.to)
        self._declare()
        self.budget = self._field("budget")
        self.flag = b.inttoptr(self._field("flag"), _POINTER)
        self.counts = b.inttoptr(self._field("counts"), _POINTER)
        self.places = [
            (b.inttoptr(self._segment(2 * n), _POINTER), self._segment(2 * n + 1))
            for n in range(len(_SEGMENTS))
        ]
        self.fault = self.function.append_basic_block("fault")
        b.branch(self._block(0, _Context()))
        while self.waiting:
            at, context = self.waiting.pop()
            b.position_at_end(self.blocks[at, context])
            self._bundle(at, context)
        b.position_at_end(self.fault)
        b.ret(word(1))
        return self.module

    def _declare(self) -> None:
        """A variable for each register, output register and result on its way."""
        b = self.builder
        for bundle in self.program.bundles:
            for slot in bundle:
                places = [slot.written, *slot.reads]
                for place in places:
                    if isinstance(place, Read):
                        key = place.file, place.number
                        kind = self.machine.files[place.file].kind
                        t = I1 if kind is FileKind.BOOLEAN else WORD
                        if key not in self.registers:
                            self.registers[key] = b.alloca(t)
                            b.store(ir.Constant(t, 0), self.registers[key])
                if slot.has_result and slot.unit not in self.outputs:
                    self.outputs[slot.unit] = b.alloca(WORD)
                    b.store(word(0), self.outputs[slot.unit])

    def _field(self, name: str) -> ir.Value:
        where = getattr(_Frame, name).offset
        place = self.builder.gep(self.frame, [word(where)], source_etype=_BYTE)
        return self.builder.load(place, typ=WORD)

    def _segment(self, number: int) -> ir.Value:
        place = self.builder.gep(self.frame, [word(8 * number)], source_etype=_BYTE)
        return self.builder.load(place, typ=WORD)

    def _block(self, at: int, context: _Context) -> ir.Block:
        key = at, context
        if key not in self.blocks:
            self.blocks[key] = self.function.append_basic_block(f"b{at}")
            self.waiting.append(key)
        return self.blocks[key]

    # --- a bundle ---------------------------------------------------------------------------

    def _bundle(self, at: int, context: _Context) -> None:
        b = self.builder
        place = b.gep(self.counts, [word(at)], source_etype=WORD)
        b.store(b.add(b.load(place, typ=WORD), word(1)), place)
        now = b.load(self.cycles)
        b.store(b.add(now, word(1)), self.cycles)
        self._land(context)
        bundle = self.program.bundles[at]
        given = [
            tuple(self._read(source, _is_truth(slot, n)) for n, source in enumerate(slot.sources))
            for slot in bundle
        ]
        results = [
            self._result(slot, operands) if slot.has_result else None
            for slot, operands in zip(bundle, given, strict=True)
        ]
        flights = self._shift(context)
        for slot, result in zip(bundle, results, strict=True):
            if result is not None:
                flights.append(self._issue(slot, result))
        for slot, operands in zip(bundle, given, strict=True):
            if slot.name == "store":
                self._store(slot, operands)
        onward = _Context(tuple(sorted(flights)), context.branches)
        if any(each.is_exit for each in context.branches):
            self._next(at, onward)
            return
        for slot, operands in zip(bundle, given, strict=True):
            if slot.name in BRANCHES:
                self._leave(at, onward, slot, operands, now)
                return
        self._next(at, onward)

    def _leave(
        self,
        at: int,
        context: _Context,
        slot: Slot,
        operands: tuple[ir.Value, ...],
        now: ir.Value,
    ) -> None:
        """Go on with a branch on its way."""
        delay = self.machine.delay_slots
        target = _STOP if slot.target is None else slot.target
        if slot.name == "jump_to":
            self.builder.store(operands[0], self.to)
            target = _DYNAMIC
        onward = context
        if slot.again is not None:
            onward = context.branching(slot.again, delay, is_exit=False)
        if slot.target is None or slot.name not in EXITS:
            is_back = slot.again is not None
            self._next(at, onward if is_back else context.branching(target, delay, is_exit=False))
            return
        taken = context.branching(target, delay, is_exit=True)
        b = self.builder
        yes, no = (self.function.append_basic_block(f"b{at}.{n}") for n in ("taken", "not"))
        if slot.name in ("exit_expired", "repeat"):
            flag = b.load_atomic(self.flag, "monotonic", align=4, typ=ir.IntType(32))
            is_told = b.icmp_unsigned("!=", flag, ir.Constant(flag.type, 0))
            b.cbranch(b.or_(is_told, b.icmp_unsigned(">=", now, self.budget)), yes, no)
        elif slot.name == "exit":
            b.cbranch(operands[0], yes, no)
        else:
            b.cbranch(operands[0], no, yes)
        b.position_at_end(yes)
        self._next(at, taken)
        b.position_at_end(no)
        self._next(at, onward)

    def _next(self, at: int, context: _Context) -> None:
        """Go on in the next cycle."""
        b = self.builder
        left = tuple(dataclasses.replace(each, left=each.left - 1) for each in context.branches)
        if not left or left[0].left >= 0:
            b.branch(self._block(at + 1, _Context(context.flights, left)))
            return
        there = _Context(context.flights, left[1:])
        target = left[0].target
        if target == _STOP:
            place = b.gep(self.frame, [word(_Frame.cycles.offset)], source_etype=_BYTE)
            b.store(b.load(self.cycles), place)
            b.ret(word(0))
        elif target == _DYNAMIC:
            chosen = b.switch(b.load(self.to), self.fault)
            for target in self.program.returns:
                chosen.add_case(word(target), self._block(target, there))
        else:
            b.branch(self._block(target, there))

    # --- results ----------------------------------------------------------------------------

    def _land(self, context: _Context) -> None:
        b = self.builder
        for flight in context.flights:
            if flight.left == 0:
                value = b.load(self.flying[flight.unit, 0])
                b.store(value, self.outputs[flight.unit])
                if flight.file >= 0:
                    register = self.registers[flight.file, flight.number]
                    if self.machine.files[flight.file].kind is FileKind.BOOLEAN:
                        value = b.trunc(value, I1)
                    b.store(value, register)

    def _flying(self, unit: int, left: int) -> ir.Value:
        """The variable of a result on its way."""
        key = unit, left
        if key not in self.flying:
            with self.builder.goto_block(self.function.entry_basic_block):
                self.flying[key] = self.builder.alloca(WORD)
        return self.flying[key]

    def _shift(self, context: _Context) -> list[_Flight]:
        b = self.builder
        found = []
        for flight in sorted(context.flights, key=lambda each: each.left):
            if flight.left > 0:
                value = b.load(self._flying(flight.unit, flight.left))
                b.store(value, self._flying(flight.unit, flight.left - 1))
                found.append(dataclasses.replace(flight, left=flight.left - 1))
        return found

    def _issue(self, slot: Slot, value: ir.Value) -> _Flight:
        timing = self.machine.units[slot.unit].work[work_of(slot.name, slot.static)]
        if value.type == I1:
            value = self.builder.zext(value, WORD)
        self.builder.store(value, self._flying(slot.unit, timing.latency - 1))
        to = slot.written
        file, number = (-1, -1) if to is None else (to.file, to.number)
        return _Flight(slot.unit, timing.latency - 1, file, number)

    def _read(self, source: Source, is_truth: bool) -> ir.Value:
        """An operand: a word, or an i1 for a truth."""
        match source:
            case Immediate(bits):
                return ir.Constant(I1 if is_truth else WORD, bits)
            case Read(file, register):
                return self.builder.load(self.registers[file, register])
            case Bypass(unit):
                value = self.builder.load(self.outputs[unit])
                return self.builder.trunc(value, I1) if is_truth else value

    def _result(self, slot: Slot, operands: tuple[ir.Value, ...]) -> ir.Value:
        b = self.builder
        if slot.name == "load":
            return self._load(slot, operands)
        if slot.name in ("move", "select"):
            return operands[0] if slot.name == "move" else b.select(*operands)
        types, _ = computed_types(slot.name, slot.static)
        typed = [
            self.from_slot(t, value) if isinstance(t, Type) else value
            for t, value in zip(types, operands, strict=True)
        ]
        value = self._total(slot.name, slot.static, typed)
        return self._word(value)

    def _word(self, value: ir.Value) -> ir.Value:
        """A typed value as a word; a truth stays."""
        if value.type == I1:
            return value
        t = next(t for t, each in LLVM_TYPE.items() if each == value.type)
        return self.to_slot(t, value)

    def _total(self, name: str, static: tuple[Static, ...], operands: list[ir.Value]) -> ir.Value:
        """The result of an operation, for any operands (`arithmetic.compute`)."""
        b = self.builder
        method = getattr(self, name)
        work = work_of(name, static)
        if work is Work.DIVIDE:
            return self._division(name, static, operands)
        if work is Work.SHIFT:
            width = ir.Constant(operands[1].type, operands[1].type.width - 1)
            return method(*static, operands[0], b.and_(operands[1], width))
        if name in ("to_int_s", "to_int_u"):
            return self._to_int(name, static, operands[0])
        value = method(*static, *operands)
        t = canonical_type(name, static)
        return value if t is None else canonical(self, t, value)

    def _division(
        self, name: str, static: tuple[Static, ...], operands: list[ir.Value]
    ) -> ir.Value:
        b = self.builder
        a, divisor = operands
        kind = divisor.type
        zero, one = ir.Constant(kind, 0), ir.Constant(kind, 1)
        is_zero = b.icmp_unsigned("==", divisor, zero)
        divisor = b.select(is_zero, one, divisor)
        if name in ("div_s", "rem_s"):
            least = ir.Constant(kind, -(1 << (kind.width - 1)))
            minus = ir.Constant(kind, -1)
            is_large = b.and_(
                b.icmp_unsigned("==", a, least), b.icmp_unsigned("==", divisor, minus)
            )
            # The quotient wraps around, and there is no rest: as with 1.
            divisor = b.select(is_large, one, divisor)
        return b.select(is_zero, zero, getattr(self, name)(*static, a, divisor))

    def _to_int(self, name: str, static: tuple[Static, ...], a: ir.Value) -> ir.Value:
        to, t = static
        assert isinstance(to, Type)
        assert isinstance(t, Type)
        kind = LLVM_TYPE[to]
        sign = "s" if name == "to_int_s" else "u"
        found = self._intrinsic(f"llvm.fpto{sign}i.sat.{to}.{t}", kind, a)
        # What does not fit saturates: it is seen by its being larger in size as a float.
        low = -float(1 << (to.bits - 1)) if sign == "s" else 0.0
        high = float(1 << (to.bits - (sign == "s")))
        b = self.builder
        whole = self.ftrunc(t, a)
        fits = b.and_(
            b.fcmp_ordered(">=", whole, ir.Constant(a.type, low)),
            b.fcmp_ordered("<", whole, ir.Constant(a.type, high)),
        )
        return b.select(fits, found, ir.Constant(kind, 0))

    # --- memory -----------------------------------------------------------------------------

    def _where(self, slot: Slot, address: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The place of an access, and whether it is there."""
        b = self.builder
        assert slot.place is not None
        base, size = self.places[_SEGMENTS.index(slot.place.segment)]
        where = b.add(address, word(slot.place.offset))
        room = b.sub(size, word(slot.place.size))
        is_there = b.and_(
            b.icmp_unsigned("<=", where, room),
            b.icmp_unsigned(">=", size, word(slot.place.size)),
        )
        return b.gep(base, [where], source_etype=_BYTE), is_there

    def _load(self, slot: Slot, operands: tuple[ir.Value, ...]) -> ir.Value:
        b = self.builder
        assert slot.place is not None
        place, is_there = self._where(slot, operands[0])
        # Nothing is at the frame that a program could tell from a zero, for it is not taken.
        kind = ir.IntType(8 * slot.place.size)
        found = b.load(b.select(is_there, place, self.frame), align=1, typ=kind)
        if slot.place.size < 8:
            found = b.zext(found, WORD)
        return b.select(is_there, found, word(0))

    def _store(self, slot: Slot, operands: tuple[ir.Value, ...]) -> None:
        b = self.builder
        assert slot.place is not None
        after = None
        if slot.predicate is not None:
            truth, holds = slot.predicate
            do, after = (self.function.append_basic_block(name) for name in ("do", "after"))
            b.cbranch(self._read(truth, is_truth=True), *((do, after) if holds else (after, do)))
            b.position_at_end(do)
        place, is_there = self._where(slot, operands[0])
        onward = self.function.append_basic_block("stored")
        b.cbranch(is_there, onward, self.fault)
        b.position_at_end(onward)
        value = operands[1]
        if slot.place.size < 8:
            value = b.trunc(value, ir.IntType(8 * slot.place.size))
        b.store(value, place, align=1)
        if after is not None:
            b.branch(after)
            b.position_at_end(after)


_TRUTHS = {"all": (0, 1), "any": (0, 1), "none": (0,), "select": (0,)}


def _is_truth(slot: Slot, number: int) -> bool:
    """Whether an operand is a truth."""
    if slot.name in EXITS:
        return True
    if slot.name == "move":
        return slot.is_truth
    return number in _TRUTHS.get(slot.name, ())
