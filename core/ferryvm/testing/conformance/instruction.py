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
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import ValueType
from ferryvm.listing import FunctionListing, Item, Line, Listing
from ferryvm.listing.encode import encode
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.program import Data, Program, Static
from ferryvm.testing.conformance.golden import GoldenCase, Setting, cases_of
from ferryvm.testing.conformance.manner import whole
from ferryvm.testing.conformance.record import PLENTY, Recorder, Task
from ferryvm.testing.conformance.script import Script
from ferryvm.verify import verify

LIMITS = Limits(stack=1 << 16, heap=1 << 26, first_heap=1 << 16)
SENTINEL = 0x5EED_5EED_5EED_5EED
"""An operand below those of a trapping instruction, which has to survive too."""

HALT, NOP = Line(BY_MNEMONIC["halt"]), Line(BY_MNEMONIC["nop"])


def scripts(mnemonic: str, is_counting: bool, reference: Interpreter) -> Iterator[Script]:
    """The scripts of all golden cases of an instruction, each piece a program by itself."""
    for piece in pieces(mnemonic, is_counting):
        yield alone(piece, PLENTY if is_counting else None, reference)


# --- dressings ------------------------------------------------------------------------------


def _constant(t: Type, bits: int) -> Line:
    return Line(BY_MNEMONIC[f"{t}.const"], bits)


def _types(case: GoldenCase) -> tuple[Type, ...]:
    return tuple(t for t in case.row.pops if isinstance(t, Type))


def _from_constants(case: GoldenCase) -> list[Line]:
    operands = zip(_types(case), case.operands, strict=True)
    return [*(_constant(t, bits) for t, bits in operands), Line(case.row, case.immediate)]


def _apart(case: GoldenCase) -> list[Line]:
    return [x for line in _from_constants(case) for x in (line, NOP)][:-1]


def _from_locals(case: GoldenCase) -> list[Line]:
    *constants, line = _from_constants(case)
    stores = [(c, Line(BY_MNEMONIC["local.set"], n)) for n, c in enumerate(constants)]
    loads = [Line(BY_MNEMONIC["local.get"], n) for n in range(len(constants))]
    return [*itertools.chain(*stores), *loads, line]


DRESSINGS: dict[str, Callable[[GoldenCase], list[Line]]] = {
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


# --- pieces ---------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Piece:
    """Code of golden cases that is run from start to end: the body of a function, and its end as
    stated by hand."""

    about: str
    setting: Setting
    items: tuple[Item, ...]
    locals: tuple[ValueType, ...]
    complaint: Callable[[Recorder, int], str | None]
    """The difference of the reference's end from the stated one, given what recorded it and the pc
    of the piece's marked line."""
    marked: Line | None = None
    """The line that is expected to trap, None if there is none."""
    chosen: tuple[GoldenCase, ...] = ()
    """The cases that leave their results on the stack, deepest first."""

    @property
    def names(self) -> dict[int, str]:
        """Names of the words above the header and the locals, for messages."""
        first = HEADER_WORDS + len(self.locals)
        return {
            first + number: f"{case.where}: {case.text}" for number, case in enumerate(self.chosen)
        }


def pieces(mnemonic: str, is_counting: bool) -> Iterator[Piece]:
    """The golden cases of an instruction, in every dressing that fits the way of running."""
    mine = cases_of(mnemonic)
    for name, dress in DRESSINGS.items():
        if not is_counting or dress is _from_constants:
            yield from _table_pieces(mine, name)
            if dress is not _from_locals:
                yield from _run_pieces(mine, name)


def rotated_pieces(mnemonic: str) -> Iterator[Piece]:
    """The golden cases of an instruction, each in one dressing, by rotation."""
    mine, names = cases_of(mnemonic), list(DRESSINGS)
    for offset, name in enumerate(names):
        chosen = mine[offset :: len(names)]
        yield from _table_pieces(chosen, name)
        # Code of a case's own takes no operands from locals.
        yield from _run_pieces(chosen, "" if DRESSINGS[name] is _from_locals else name)


def _table_pieces(chosen: Iterable[GoldenCase], name: str) -> Iterator[Piece]:
    """Table lines in one dressing. Those of one setting that do not trap share a piece, in which
    each leaves its result on the stack."""
    table = [case for case in chosen if case.code is None]
    for setting, group in itertools.groupby(table, key=lambda case: case.setting):
        members = list(group)
        smooth = [case for case in members if case.outcome.trap is None]
        if smooth:
            yield _smooth(setting, smooth, name)
        for case in members:
            if case.outcome.trap is not None:
                lines = DRESSINGS[name](case)
                items = (_constant(Type.I64, SENTINEL), *lines, HALT)
                operands = [SENTINEL, *case.operands]
                yield _trapping(case, name, setting, items, _types(case), lines[-1], operands)


def _run_pieces(chosen: Iterable[GoldenCase], name: str) -> Iterator[Piece]:
    """Run lines in one dressing."""
    for case in chosen:
        if case.code is not None:
            yield _run(case, name)


def _smooth(setting: Setting, chosen: list[GoldenCase], name: str) -> Piece:
    lines: list[Item] = [line for case in chosen for line in DRESSINGS[name](case)]

    def complaint(recorder: Recorder, _pc: int) -> str | None:
        machine = recorder.machines[0]
        if machine.status is not Status.HALT:
            return f"ends with {machine.status.name} at pc {machine.control.pc}"
        for case, word in zip(chosen, _operands(machine), strict=True):
            if word != case.outcome.stack[0][1]:
                return f"{case.where}: {case.text}: gives {word:x}"
        return None

    first, last = chosen[0], chosen[-1].where.rpartition(":")[2]
    about = _about(f"{first.where}-{last}", first, name)
    return Piece(about, setting, (*lines, HALT), _types(first), complaint, chosen=tuple(chosen))


def _run(case: GoldenCase, name: str) -> Piece:
    setting, items = case.setting, [*(case.code or ()), HALT]
    if name == "apart":
        setting, items = _spread_setting(setting), _spread(items)
    if case.outcome.trap is not None:
        return _trapping(case, name, setting, tuple(items), setting.locals, case.marked, None)

    def complaint(recorder: Recorder, _pc: int) -> str | None:
        return _end_complaint(case, recorder)

    return Piece(_about(case.where, case, name), setting, tuple(items), setting.locals, complaint)


def _trapping(
    case: GoldenCase,
    name: str,
    setting: Setting,
    items: tuple[Item, ...],
    locals_: tuple[ValueType, ...],
    marked: Line | None,
    operands: list[int] | None,
) -> Piece:
    """`operands`: the stack after the trap, if the case states it."""

    def complaint(recorder: Recorder, pc: int) -> str | None:
        return _trap_complaint(case, recorder.machines[0], pc, operands)

    return Piece(_about(case.where, case, name), setting, items, locals_, complaint, marked)


# --- programs -------------------------------------------------------------------------------


def program_of(
    setting: Setting, functions: Iterable[FunctionListing], statics: Iterable[Static] = ()
) -> Program:
    """The program of some functions, the first of which is main, in a setting; `statics` come
    behind those of the setting."""
    data = [Data(0, setting.heap)] if setting.heap else []
    every, table, hosts = [*setting.statics, *statics], list(setting.table), list(setting.hosts)
    return encode(
        Listing(
            list(functions),
            every,
            data,
            table,
            hosts,
            tags=list(setting.tags),
            types=list(setting.types),
        )
    )


def pc_of(line: Line | None, functions: Iterable[FunctionListing]) -> int:
    """The pc of a line in the program of these functions; -1 if it has none."""
    pc = 0
    for item in itertools.chain(*(function.items for function in functions)):
        if item is line:
            return pc
        if isinstance(item, Line):
            pc += 1 + (len(item.operand) if isinstance(item.operand, tuple) else 0)
    return -1


def _operands(machine: Machine) -> list[int]:
    """Words of the operand stack of the running function."""
    control, verified = machine.control, machine.verified
    locals_ = verified.program.functions[verified.owner(control.pc)].locals
    frame = HEADER_WORDS + len(locals_)
    words: list[int] = machine.memory.stack[control.fp + frame : control.sp].tolist()
    return words


def alone(piece: Piece, fuel: int | None, reference: Interpreter) -> Script:
    """The script of a piece that is a program by itself."""
    main = FunctionListing("main", locals=piece.locals, items=list(piece.items))
    functions = [main, *piece.setting.functions]
    program = verify(program_of(piece.setting, functions))
    script, recorder = whole(Task(piece.about, program, LIMITS, reference), fuel)
    complaint = piece.complaint(recorder, pc_of(piece.marked, functions))
    return dataclasses.replace(script, names=piece.names, complaint=complaint)


def _about(where: str, case: GoldenCase, name: str) -> str:
    text = f": {case.text}" if where == case.where else ""
    return f"{where}: [{case.row.mnemonic}]{text}{f', {name}' if name else ''}"


# --- statements by hand ---------------------------------------------------------------------


def _trap_complaint(
    case: GoldenCase, machine: Machine, pc: int, operands: list[int] | None
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


def _end_complaint(case: GoldenCase, recorder: Recorder) -> str | None:
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
