# SPDX-License-Identifier: Apache-2.0
"""Compiled simulation: programs of the machine as native code, with the same cycles and final
state.

There is native code for each state that a bundle can be fetched in (`control_flow`), so a result in
flight is an SSA value, not an entry of a queue. A run of states is one basic block; a counter of
its entries gives the number of fetches of its bundles.
"""

from __future__ import annotations

import ctypes

import numpy as np

from ferryvm.ir.graph import Static
from ferryvm.ir.operation import computed_types
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import Type
from ferryvm.machine.control import ControlBlock
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import I1, LLVM_TYPE, WORD, Arithmetic, word
from ferryvm_backends._llvm.build import compile_module, compile_quickly
from ferryvm_backends._llvm.codegen import ObjectCode
from ferryvm_backends.vliw.code.operation import EXITS, Segment, canonical_type, work_of
from ferryvm_backends.vliw.code.program import Bypass, Immediate, Program, Read, Slot, Source
from ferryvm_backends.vliw.machine.model import FileKind, Work
from ferryvm_backends.vliw.simulate.control_flow import (
    Context,
    FetchGraph,
    FetchState,
    Next,
    Onward,
)
from ferryvm_backends.vliw.simulate.memory import Memory
from ferryvm_backends.vliw.simulate.metric import HazardError, Issue, RunMetrics

LARGE = 8_000
"""Operations of a program past which its code is made in less time and takes more to run."""

_SEGMENTS = list(Segment)
_FIXED = frozenset({Segment.CONTROL, Segment.SPILL})
"""Segments of which the program itself says how large they are: constant addresses are not
checked."""
_Key = tuple[str, int, int]
"""A register by file and number, an output register by unit, or a result by unit and cycles
left."""
_POINTER = ir.PointerType()
_BYTE = ir.IntType(8)
_INTERRUPT: int = vars(ControlBlock)["interrupt"].offset


class _Frame(ctypes.Structure):
    """Arguments of native code."""

    _fields_ = [
        ("segments", ctypes.c_uint64 * (2 * len(_SEGMENTS))),  # address and size of each
        ("budget", ctypes.c_uint64),
        ("flag", ctypes.c_uint64),  # address of a host's word that is not 0 when the time is over
        ("cycles", ctypes.c_uint64),
        ("counts", ctypes.c_uint64),  # address of a word a run
    ]


class NativeProgram:
    """A program that can be run."""

    def __init__(
        self, program: Program, is_quick: bool = False, paths: FetchGraph | None = None
    ) -> None:
        """`is_quick`: its native code is to be made in less time, and takes more to run; `paths`:
        its states, where these are known."""
        self.program, self._issue = program, Issue(program)
        paths = FetchGraph(program) if paths is None else paths
        runs = list(paths.runs())
        self._bundles = np.array([state.at for run in runs for state in run], np.int64)
        """Of all runs, one after another."""
        self._lengths = np.array([len(run) for run in runs], np.int64)
        translation = _Translation(program, paths, runs)
        module = translation.run()
        self._least = translation.least
        size = sum(len(program.bundles[state.at]) for run in runs for state in run)
        # What runs once is not worth the time that good code takes to make.
        is_quick = is_quick or size > LARGE or not paths.is_cyclic()
        code = compile_quickly(module) if is_quick else compile_module(module, merge_tails=True)
        self._code = ObjectCode(code)
        kind = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
        self._run = kind(self._code.address("run"))

    def run(self, memory: Memory, budget: int, control: ControlBlock | None = None) -> RunMetrics:
        """As `interpret`. Raises HazardError for a store to where there is no memory, and for
        counts that no machine can have. `control`: the host's; its interrupt flag ends the
        program's time, too."""
        frame = _Frame()
        for number, segment in enumerate(_SEGMENTS):
            bytes_ = memory.segments[segment]
            if len(bytes_) < self._least.get(segment, 0):
                raise HazardError(f"{self.program.name}: {segment.value} has {len(bytes_)} bytes")
            frame.segments[2 * number] = bytes_.ctypes.data
            frame.segments[2 * number + 1] = len(bytes_)
        frame.budget = budget
        never = ctypes.c_uint32(0)
        frame.flag = ctypes.addressof(never)
        if control is not None:
            frame.flag = ctypes.addressof(control) + _INTERRUPT
        entered = np.zeros(len(self._lengths), np.int64)
        frame.counts = entered.ctypes.data
        if self._run(ctypes.addressof(frame)):
            raise HazardError(f"{self.program.name}: a store to where there is no memory")
        bundles = np.zeros(len(self.program.bundles), np.int64)
        np.add.at(bundles, self._bundles, np.repeat(entered, self._lengths))
        return self._issue.counts(frame.cycles, bundles)


class _Translation(Arithmetic):
    def __init__(self, program: Program, paths: FetchGraph, runs: list[list[FetchState]]) -> None:
        self.program, self.machine, self.paths, self.runs = program, program.machine, paths, runs
        self.module = ir.Module("program")
        self.function = ir.Function(self.module, ir.FunctionType(WORD, [_POINTER]), "run")
        self.frame = self.function.args[0]
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.variables: dict[_Key, ir.Value] = {}
        """Variables of registers, output registers and results in flight, between runs."""
        self.values: dict[_Key, ir.Value] = {}
        """The same within a run, as far as it was read or written there."""
        self.changed: set[_Key] = set()
        self.bounds: dict[tuple[Segment, int], ir.Value] = {}
        self.least: dict[Segment, int] = {}
        """The minimum size of segments with a fixed size, in bytes."""

    def run(self) -> ir.Module:
        """The module of a function `run`: 0, or 1 for a store to where there is no memory."""
        b = self.builder
        self.cycles, self.to = b.alloca(WORD), b.alloca(WORD)
        b.store(word(0), self.cycles)
        b.store(word(0), self.to)
        self.budget = self._field("budget")
        self.flag = b.inttoptr(self._field("flag"), _POINTER)
        self.counts = b.inttoptr(self._field("counts"), _POINTER)
        self.places = [
            (b.inttoptr(self._segment(2 * n), _POINTER), self._segment(2 * n + 1))
            for n in range(len(_SEGMENTS))
        ]
        self.fault = self.function.append_basic_block("fault")
        self.blocks = {
            run[0]: self.function.append_basic_block(f"b{run[0].at}") for run in self.runs
        }
        for number, run in enumerate(self.runs):
            b.position_at_end(self.blocks[run[0]])
            self._run(number, run)
        b.position_at_end(self.function.blocks[0])
        b.branch(self.blocks[self.paths.first])
        b.position_at_end(self.fault)
        b.ret(word(1))
        return self.module

    def _field(self, name: str) -> ir.Value:
        where = getattr(_Frame, name).offset
        place = self.builder.gep(self.frame, [word(where)], source_etype=_BYTE)
        return self.builder.load(place, typ=WORD)

    def _segment(self, number: int) -> ir.Value:
        place = self.builder.gep(self.frame, [word(8 * number)], source_etype=_BYTE)
        return self.builder.load(place, typ=WORD)

    # --- runs -------------------------------------------------------------------------------

    def _run(self, number: int, run: list[FetchState]) -> None:
        b = self.builder
        place = b.gep(self.counts, [word(number)], source_etype=WORD)
        b.store(b.add(b.load(place, typ=WORD), word(1)), place)
        start = b.load(self.cycles)
        b.store(b.add(start, word(len(run))), self.cycles)
        self.values.clear()
        self.changed.clear()
        for state in run:
            self._bundle(state)
            slot = self.paths.onward[state].branch
            if slot is not None and slot.name == "jump_to":
                b.store(self._operands(slot)[0], self.to)
        self._leave(run[-1], start, len(run) - 1)

    def _get(self, key: _Key) -> ir.Value:
        """A value of the machine."""
        if key not in self.values:
            self.values[key] = self.builder.load(self._variable(key))
        return self.values[key]

    def _set(self, key: _Key, value: ir.Value) -> None:
        self.values[key] = value
        self.changed.add(key)

    def _variable(self, key: _Key) -> ir.Value:
        if key not in self.variables:
            kind, file, _ = key
            is_predicate = kind == "register" and self.machine.files[file].kind is FileKind.BOOLEAN
            t = I1 if is_predicate else WORD
            with self.builder.goto_block(self.function.blocks[0]):
                self.variables[key] = self.builder.alloca(t)
                self.builder.store(ir.Constant(t, 0), self.variables[key])
        return self.variables[key]

    def _bundle(self, state: FetchState) -> None:
        self._write_back(state.context)
        bundle = self.program.bundles[state.at]
        given = [self._operands(slot) for slot in bundle]
        predicates = [
            None if slot.predicate is None else self._read(slot.predicate[0], is_predicate=True)
            for slot in bundle
        ]
        results = [
            self._result(slot, operands) if slot.has_result else None
            for slot, operands in zip(bundle, given, strict=True)
        ]
        for flight in sorted(state.context.flights, key=lambda each: each.remaining):
            if flight.remaining > 0:
                value = self._get(("flight", flight.unit, flight.remaining))
                self._set(("flight", flight.unit, flight.remaining - 1), value)
        for slot, result in zip(bundle, results, strict=True):
            if result is not None:
                if result.type == I1:
                    result = self.builder.zext(result, WORD)
                self._set(("flight", slot.unit, self.program.timing(slot).latency - 1), result)
        for slot, operands, predicate in zip(bundle, given, predicates, strict=True):
            if slot.name == "store":
                self._store(slot, operands, predicate)

    def _leave(self, state: FetchState, start: ir.Value, cycle: int) -> None:
        """Go on from the last state of a run, so many cycles after it began."""
        b = self.builder
        onward = self.paths.onward[state]
        is_taken = None
        if onward.taken is not None:
            assert onward.branch is not None
            is_taken = self._is_taken(onward.branch, start, cycle)
        for key in sorted(self._still_there(onward)):
            b.store(self.values[key], self._variable(key))
        if is_taken is None:
            self._next(onward.next)
            return
        assert onward.taken is not None
        yes, no = (self.function.append_basic_block(f"b{state.at}.{n}") for n in ("taken", "not"))
        b.cbranch(is_taken, yes, no)
        for block, following in ((yes, onward.taken), (no, onward.next)):
            b.position_at_end(block)
            self._next(following)

    def _still_there(self, onward: Onward) -> set[_Key]:
        """Changed values that outlive this cycle."""
        flights = {
            ("flight", f.unit, f.remaining) for s in onward.states for f in s.context.flights
        }
        return {key for key in self.changed if key[0] != "flight" or key in flights}

    def _is_taken(self, slot: Slot, start: ir.Value, cycle: int) -> ir.Value:
        """True if an exit is taken."""
        b = self.builder
        if slot.name in ("exit_expired", "repeat"):
            flag = b.load_atomic(self.flag, "monotonic", align=4, typ=ir.IntType(32))
            is_interrupted = b.icmp_unsigned("!=", flag, ir.Constant(flag.type, 0))
            now = b.add(start, word(cycle))
            return b.or_(is_interrupted, b.icmp_unsigned(">=", now, self.budget))
        predicate = self._operands(slot)[0]
        return predicate if slot.name == "exit" else b.not_(predicate)

    def _next(self, following: Next) -> None:
        b = self.builder
        if following.is_dynamic:
            chosen = b.switch(b.load(self.to), self.fault)
            for state in following.states:
                chosen.add_case(word(state.at), self.blocks[state])
        elif following.states:
            b.branch(self.blocks[following.states[0]])
        else:
            place = b.gep(self.frame, [word(_Frame.cycles.offset)], source_etype=_BYTE)
            b.store(b.load(self.cycles), place)
            b.ret(word(0))

    # --- results ----------------------------------------------------------------------------

    def _write_back(self, context: Context) -> None:
        b = self.builder
        for flight in context.flights:
            if flight.remaining == 0:
                value = self._get(("flight", flight.unit, 0))
                self._set(("output", flight.unit, 0), value)
                if flight.file >= 0:
                    if self.machine.files[flight.file].kind is FileKind.BOOLEAN:
                        value = b.trunc(value, I1)
                    self._set(("register", flight.file, flight.number), value)

    def _operands(self, slot: Slot) -> tuple[ir.Value, ...]:
        return tuple(
            self._read(source, _is_predicate(slot, n)) for n, source in enumerate(slot.sources)
        )

    def _read(self, source: Source, is_predicate: bool) -> ir.Value:
        """An operand: a word, or an i1 for a predicate."""
        match source:
            case Immediate(bits):
                return ir.Constant(I1 if is_predicate else WORD, bits)
            case Read(file, register):
                return self._get(("register", file, register))
            case Bypass(unit):
                value = self._get(("output", unit, 0))
                return self.builder.trunc(value, I1) if is_predicate else value

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
        """A typed value as a word; a predicate is not converted."""
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
            shifted: ir.Value = method(*static, operands[0], b.and_(operands[1], width))
            return shifted
        if name in ("to_int_s", "to_int_u"):
            return self._to_int(name, static, operands[0])
        value: ir.Value = method(*static, *operands)
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

    def _bound(self, segment: Segment, size: int) -> ir.Value:
        """The first address that an access of so many bytes cannot have."""
        if (segment, size) not in self.bounds:
            with self.builder.goto_block(self.function.blocks[0]):
                b = self.builder
                _, bytes_ = self.places[_SEGMENTS.index(segment)]
                bound = b.sub(bytes_, word(size - 1))
                fits = b.icmp_unsigned(">=", bytes_, word(size))
                self.bounds[segment, size] = b.select(fits, bound, word(0))
        return self.bounds[segment, size]

    def _where(self, slot: Slot, address: ir.Value) -> tuple[ir.Value, ir.Value | None]:
        """The address of an access, and whether it is in bounds; None if it always is."""
        b = self.builder
        assert slot.place is not None
        segment, offset, size = slot.place.segment, slot.place.offset, slot.place.size
        base, _ = self.places[_SEGMENTS.index(segment)]
        if isinstance(slot.sources[0], Immediate) and segment in _FIXED:
            place = slot.sources[0].bits + offset
            if 0 <= place < 1 << 32:
                self.least[segment] = max(self.least.get(segment, 0), place + size)
                return b.gep(base, [word(place)], source_etype=_BYTE), None
        where = b.add(address, word(offset)) if offset else address
        is_there = b.icmp_unsigned("<", where, self._bound(segment, size))
        return b.gep(base, [where], source_etype=_BYTE), is_there

    def _load(self, slot: Slot, operands: tuple[ir.Value, ...]) -> ir.Value:
        b = self.builder
        assert slot.place is not None
        place, is_there = self._where(slot, operands[0])
        kind = ir.IntType(8 * slot.place.size)
        if is_there is not None:
            # A zero is as good as any value at the frame, because the predicate is false.
            place = b.select(is_there, place, self.frame)
        found = b.load(place, align=1, typ=kind)
        if slot.place.size < 8:
            found = b.zext(found, WORD)
        return found if is_there is None else b.select(is_there, found, word(0))

    def _store(
        self, slot: Slot, operands: tuple[ir.Value, ...], predicate: ir.Value | None
    ) -> None:
        """A store; `predicate`: its condition."""
        b = self.builder
        assert slot.place is not None
        after = None
        if slot.predicate is not None:
            _, holds = slot.predicate
            do, after = (self.function.append_basic_block(name) for name in ("do", "after"))
            assert predicate is not None
            b.cbranch(predicate, *((do, after) if holds else (after, do)))
            b.position_at_end(do)
        place, is_there = self._where(slot, operands[0])
        if is_there is not None:
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


_PREDICATES = {"all": (0, 1), "any": (0, 1), "none": (0,), "select": (0,)}


def _is_predicate(slot: Slot, number: int) -> bool:
    """True if an operand is a predicate."""
    if slot.name in EXITS:
        return True
    if slot.name == "move":
        return slot.is_predicate
    return number in _PREDICATES.get(slot.name, ())
