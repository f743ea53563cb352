# SPDX-License-Identifier: Apache-2.0
"""Scripts of the golden cases: every instruction, with the bits that are stated by hand.

A case runs in several dressings, because a backend may fuse neighbouring instructions: with
operands from constants, from locals, and with a `nop` between all instructions; and counting.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator

from ferryvm.backend import Interpreter
from ferryvm.isa import BY_MNEMONIC, Trap, Type
from ferryvm.isa.control import HEADER_WORDS
from ferryvm.listing import FunctionListing, Item, Line, Listing
from ferryvm.listing.encode import encode
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.program import Data, Program
from ferryvm.testing.conformance.golden import Case, Setting, cases_of
from ferryvm.testing.conformance.manner import whole
from ferryvm.testing.conformance.record import PLENTY, Recorder, Task
from ferryvm.testing.conformance.script import Script
from ferryvm.verify import verify

LIMITS = Limits(stack=1 << 16, heap=1 << 26, first_heap=1 << 16)
SENTINEL = 0x5EED_5EED_5EED_5EED
"""An operand below those of a trapping instruction, which has to survive too."""

HALT, NOP = Line(BY_MNEMONIC["halt"]), Line(BY_MNEMONIC["nop"])


def scripts(mnemonic: str, is_counting: bool, reference: Interpreter) -> Iterator[Script]:
    """The scripts of all golden cases of an instruction."""
    mine = cases_of(mnemonic)
    table = [case for case in mine if case.code is None]
    code = [case for case in mine if case.code is not None]
    maker = _Maker(PLENTY if is_counting else None, reference)
    for name, dress in DRESSINGS.items():
        if not is_counting or dress is _from_constants:
            yield from maker.table_lines(table, name, dress)
            if dress is not _from_locals:
                yield from maker.run_lines(code, name)


# --- dressings ------------------------------------------------------------------------------


def _constant(t: Type, bits: int) -> Line:
    return Line(BY_MNEMONIC[f"{t}.const"], bits)


def _types(case: Case) -> tuple[Type, ...]:
    return tuple(t for t in case.row.pops if isinstance(t, Type))


def _from_constants(case: Case) -> list[Line]:
    operands = zip(_types(case), case.operands, strict=True)
    return [*(_constant(t, bits) for t, bits in operands), Line(case.row, case.immediate)]


def _apart(case: Case) -> list[Line]:
    return [x for line in _from_constants(case) for x in (line, NOP)][:-1]


def _from_locals(case: Case) -> list[Line]:
    *constants, line = _from_constants(case)
    stores = [(c, Line(BY_MNEMONIC["local.set"], n)) for n, c in enumerate(constants)]
    loads = [Line(BY_MNEMONIC["local.get"], n) for n in range(len(constants))]
    return [*itertools.chain(*stores), *loads, line]


DRESSINGS: dict[str, Callable[[Case], list[Line]]] = {
    "": _from_constants,
    "apart": _apart,
    "from locals": _from_locals,
}


def _spread(items: Iterable[Item]) -> list[Item]:
    """The items with a `nop` before every instruction."""
    return [x for item in items for x in ((NOP, item) if isinstance(item, Line) else (item,))]


def _spread_setting(setting: Setting) -> Setting:
    functions = tuple(
        dataclasses.replace(function, items=_spread(function.items))
        for function in setting.functions
    )
    return dataclasses.replace(setting, functions=functions)


# --- programs -------------------------------------------------------------------------------


def _program(
    setting: Setting, items: list[Item], locals_: tuple[Type, ...], marked: Line | None
) -> tuple[Program, int]:
    """The program of a case, and the pc of the marked line (-1 without one)."""
    main = FunctionListing("main", locals=locals_, items=items)
    functions = [main, *setting.functions]
    data = [Data(0, setting.heap)] if setting.heap else []
    hosts = list(setting.hosts)
    listing = Listing(functions, list(setting.statics), data, list(setting.table), hosts)
    pc, found = 0, -1
    for item in itertools.chain(*(function.items for function in functions)):
        if isinstance(item, Line):
            found = pc if item is marked else found
            pc += 1 + (len(item.operand) if isinstance(item.operand, tuple) else 0)
    return encode(listing), found


def _operands(machine: Machine) -> list[int]:
    """Words of the operand stack of the running function."""
    control, verified = machine.control, machine.verified
    frame = HEADER_WORDS + len(verified.program.frame_types(verified.owner(control.pc)))
    words: list[int] = machine.memory.stack[control.fp + frame : control.sp].tolist()
    return words


@dataclasses.dataclass(frozen=True)
class _Maker:
    """Makes scripts of cases, run from start to end."""

    fuel: int | None
    reference: Interpreter

    def _record(self, about: str, program: Program) -> tuple[Script, Recorder]:
        return whole(Task(about, verify(program), LIMITS, self.reference), self.fuel)

    def table_lines(
        self, chosen: list[Case], name: str, dress: Callable[[Case], list[Line]]
    ) -> Iterator[Script]:
        """Scripts of table lines. Those of one setting that do not trap share a program, in which
        each leaves its result on the stack."""
        for setting, group in itertools.groupby(chosen, key=lambda case: case.setting):
            members = list(group)
            smooth = [case for case in members if case.outcome.trap is None]
            if smooth:
                yield self._smooth(setting, smooth, name, dress)
            for case in members:
                if case.outcome.trap is not None:
                    lines = dress(case)
                    items: list[Item] = [_constant(Type.I64, SENTINEL), *lines, HALT]
                    program, pc = _program(setting, items, _types(case), lines[-1])
                    yield self._trapping(case, name, program, pc, [SENTINEL, *case.operands])

    def _smooth(
        self, setting: Setting, chosen: list[Case], name: str, dress: Callable[[Case], list[Line]]
    ) -> Script:
        items: list[Item] = [line for case in chosen for line in dress(case)]
        program, _ = _program(setting, [*items, HALT], _types(chosen[0]), None)
        first, last = chosen[0], chosen[-1].where.rpartition(":")[2]
        script, recorder = self._record(_about(f"{first.where}-{last}", first, name), program)
        machine = recorder.machines[0]
        complaint = None
        if machine.status is not Status.HALT:
            complaint = f"ends with {machine.status.name} at pc {machine.control.pc}"
        else:
            for case, word in zip(chosen, _operands(machine), strict=True):
                if word != case.outcome.stack[0][1]:
                    complaint = f"{case.where}: {case.text}: gives {word:x}"
        base = HEADER_WORDS + len(_types(chosen[0]))
        names = {base + number: f"{case.where}: {case.text}" for number, case in enumerate(chosen)}
        return dataclasses.replace(script, names=names, complaint=complaint)

    def run_lines(self, chosen: list[Case], name: str) -> Iterator[Script]:
        """Scripts of run lines."""
        for case in chosen:
            setting, items = case.setting, [*(case.code or ()), HALT]
            if name == "apart":
                setting, items = _spread_setting(setting), _spread(items)
            program, pc = _program(setting, items, setting.locals, case.marked)
            if case.outcome.trap is not None:
                yield self._trapping(case, name, program, pc, None)
            else:
                script, recorder = self._record(_about(case.where, case, name), program)
                yield dataclasses.replace(script, complaint=_end_complaint(case, recorder))

    def _trapping(
        self, case: Case, name: str, program: Program, pc: int, operands: list[int] | None
    ) -> Script:
        """`operands` are what the trap is to leave on the stack, if the case tells."""
        script, recorder = self._record(_about(case.where, case, name), program)
        complaint = _trap_complaint(case, recorder.machines[0], pc, operands)
        return dataclasses.replace(script, complaint=complaint)


def _about(where: str, case: Case, name: str) -> str:
    text = f": {case.text}" if where == case.where else ""
    return f"{where}: [{case.row.mnemonic}]{text}{f', {name}' if name else ''}"


# --- what is stated by hand -----------------------------------------------------------------


def _trap_complaint(
    case: Case, machine: Machine, pc: int, operands: list[int] | None
) -> str | None:
    control = machine.control
    # A growth that is past the limit is the engine's to refuse: it makes a trap of it.
    is_refused = machine.status is Status.GROW and control.wanted > LIMITS.heap
    trap = Trap.HEAP_EXHAUSTED if is_refused else Trap(control.trap)
    if machine.status is not Status.TRAP and not is_refused:
        return f"ends with {machine.status.name} instead of a trap"
    if trap is not case.outcome.trap:
        return f"trap {trap.name.lower()}"
    if control.pc != pc:
        return f"trap at pc {control.pc}, not {pc}"
    found, depth = _operands(machine), machine.verified.depth(pc)
    if len(found) != depth or (operands is not None and found != operands):
        return f"operands {[hex(word) for word in found]} after the trap, {depth} before it"
    return None


def _end_complaint(case: Case, recorder: Recorder) -> str | None:
    machine, outcome = recorder.machines[0], case.outcome
    if machine.status is not Status.HALT:
        return f"ends with {machine.status.name} at pc {machine.control.pc}"
    if outcome.heap is not None:
        heap = bytes(machine.memory.heap[: machine.control.hp])
        return None if heap == outcome.heap else f"heap {heap.hex(' ')}"
    if outcome.prints is not None:
        right = recorder.output == outcome.prints.encode() + b"\n"
        return None if right else f"prints {recorder.output!r}"
    types = machine.verified.operand_types(machine.control.pc)
    found = list(zip(types, _operands(machine), strict=True))
    if found != list(outcome.stack):
        return f"stack {[(str(t), hex(word)) for t, word in found]}"
    top = outcome.stack[-1] if outcome.stack else None
    return None if machine.result() == top else f"result {machine.result()}"
