# SPDX-License-Identifier: Apache-2.0
"""Every backend gives the bits, or the trap, that the golden cases state.

A case runs in several dressings, because a backend may fuse neighbouring instructions: with
operands from constants or from locals, with a `nop` between all instructions, and counting.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from ferryvm.engine import Engine, Execution, TrapError
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Type
from ferryvm.isa.control import HEADER_WORDS
from ferryvm.listing import FunctionListing, Item, Line, Listing
from ferryvm.listing.encode import encode
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.program import Data, Program
from ferryvm_backends import ferryvm_backends

from .golden import Case, Setting, cases

BACKENDS = tuple(entry.name for entry in ferryvm_backends())
LIMITS = Limits(stack=1 << 16, heap=1 << 26, first_heap=1 << 16)
SENTINEL = 0x5EED_5EED_5EED_5EED
"""An operand below those of a trapping instruction, which has to survive too."""

HALT, NOP = Line(BY_MNEMONIC["halt"]), Line(BY_MNEMONIC["nop"])


@pytest.fixture(scope="module", params=BACKENDS)
def engine(request: pytest.FixtureRequest) -> Engine:
    return Engine(request.param, limits=LIMITS)


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
    "from constants": _from_constants,
    "apart": _apart,
    "from locals": _from_locals,
}


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


def _spread(items: list[Item]) -> list[Item]:
    """The items with a `nop` before every instruction."""
    return [x for item in items for x in ((NOP, item) if isinstance(item, Line) else (item,))]


def _spread_setting(setting: Setting) -> Setting:
    functions = tuple(
        FunctionListing(f.name, f.signature, f.locals, _spread(f.items)) for f in setting.functions
    )
    return Setting(setting.heap, setting.statics, setting.locals, functions, setting.table,
                   setting.hosts)  # fmt: skip


# --- running --------------------------------------------------------------------------------


def _operands(execution: Execution) -> list[int]:
    """Words of the operand stack of the running function."""
    machine = execution.machine
    control, verified = machine.control, machine.verified
    frame = HEADER_WORDS + len(verified.program.frame_types(verified.owner(control.pc)))
    words: list[int] = machine.memory.stack[control.fp + frame : control.sp].tolist()
    return words


def _state(execution: Execution) -> dict[str, object]:
    """All that a program can see or go on from."""
    control, memory = execution.machine.control, execution.machine.memory
    return {
        "pc": control.pc,
        "sp": control.sp,
        "fp": control.fp,
        "heap": bytes(memory.heap[: control.hp]),
        "statics": memory.statics.tolist(),
        "stack": memory.stack[: control.sp].tolist(),
    }


def _trap_faults(
    engine: Engine, program: Program, case: Case, pc: int, operands: list[int] | None
) -> Iterator[str]:
    """What is wrong with the way in which a program traps; nothing if it traps as it should.

    `operands` are what the trapping instruction is to leave on the stack, if the case tells.
    """
    execution = engine.start(program)
    try:
        result = execution.run()
    except TrapError as error:
        if error.kind is not case.outcome.trap:
            yield f"trap {error.kind.name.lower()}"
            return
        if error.pc != pc:
            yield f"trap at pc {error.pc}, not {pc}"
    else:
        yield f"{result.status.name} with {result.bits} instead of a trap"
        return
    found, depth = _operands(execution), execution.machine.verified.depth(pc)
    if len(found) != depth or (operands is not None and found != operands):
        yield f"operands {[hex(word) for word in found]} after the trap, {depth} before it"


def _state_faults(engine: Engine, program: Program) -> Iterator[str]:
    """Where the state at a trap differs from the state in which fuel ends just before it."""
    plain, counted, stopped = (engine.start(program) for _ in range(3))
    with pytest.raises(TrapError):
        plain.run()
    with pytest.raises(TrapError):
        counted.run(count=True)
    stopped.run(fuel=counted.instructions)
    before = _state(stopped)
    for name, execution in {"plain": plain, "counted": counted}.items():
        after = _state(execution)
        changed = ", ".join(part for part in before if before[part] != after[part])
        if changed:
            yield f"{name} run: {changed} not as before the trap"


def _halt_faults(engine: Engine, program: Program, case: Case, count: bool) -> Iterator[str]:
    """What is wrong with the way in which a `run` line's program ends."""
    execution = engine.start(program)
    try:
        result = execution.run(count=count)
    except TrapError as error:
        yield f"trap {error.kind.name.lower()} at pc {error.pc}"
        return
    outcome, control = case.outcome, execution.machine.control
    if result.status is not Status.HALT:
        yield f"ends with {result.status.name}"
    elif outcome.heap is not None:
        heap = bytes(execution.machine.memory.heap[: control.hp])
        if heap != outcome.heap:
            yield f"heap {heap.hex(' ')}"
    elif outcome.prints is not None:
        if result.output != outcome.prints + "\n":
            yield f"prints {result.output!r}"
    else:
        types = execution.machine.verified.operand_types(control.pc)
        found = list(zip(types, _operands(execution), strict=True))
        if found != list(outcome.stack):
            yield f"stack {[(str(t), hex(word)) for t, word in found]}"
        top = outcome.stack[-1] if outcome.stack else (None, None)
        if (result.type, result.bits) != top:
            yield f"result {result.type} {result.bits}"


# --- tests ----------------------------------------------------------------------------------


def _smooth_faults(
    engine: Engine, chosen: list[Case], dress: Callable[[Case], list[Line]], count: bool
) -> Iterator[str]:
    """Faults of table lines of one setting that do not trap.

    They share one program, in which each leaves its result on the stack.
    """
    items: list[Item] = [line for case in chosen for line in dress(case)]
    program, _ = _program(chosen[0].setting, [*items, HALT], _types(chosen[0]), None)
    execution = engine.start(program)
    try:
        execution.run(count=count)
    except TrapError as error:
        case = chosen[error.pc // len(dress(chosen[0]))]
        yield f"{case}: trap {error.kind.name.lower()}"
        return
    for case, word in zip(chosen, _operands(execution), strict=True):
        if word != case.outcome.stack[0][1]:
            yield f"{case}: {word:x}"
    if count and execution.instructions != len(items) + 1:
        yield f"{execution.instructions} instructions counted, {len(items) + 1} completed"


def _table_faults(
    engine: Engine, chosen: list[Case], name: str, dress: Callable[[Case], list[Line]], count: bool
) -> Iterator[str]:
    for setting, group in itertools.groupby(chosen, key=lambda case: case.setting):
        members = list(group)
        smooth = [case for case in members if case.outcome.trap is None]
        if smooth:
            faults = _smooth_faults(engine, smooth, dress, count)
            yield from (f"({name}) {fault}" for fault in faults)
        for case in members:
            if case.outcome.trap is not None:
                lines = dress(case)
                items: list[Item] = [_constant(Type.I64, SENTINEL), *lines, HALT]
                program, pc = _program(setting, items, _types(case), lines[-1])
                operands = [SENTINEL, *case.operands]
                faults = (
                    _state_faults(engine, program)
                    if count
                    else _trap_faults(engine, program, case, pc, operands)
                )
                yield from (f"({name}) {case}: {fault}" for fault in faults)


def _run_faults(engine: Engine, chosen: list[Case], name: str, count: bool) -> Iterator[str]:
    for case in chosen:
        setting, items = case.setting, [*(case.code or ()), HALT]
        if name == "apart":
            setting, items = _spread_setting(setting), _spread(items)
        program, pc = _program(setting, items, setting.locals, case.marked)
        if case.outcome.trap is None:
            faults = _halt_faults(engine, program, case, count)
        elif count:
            faults = _state_faults(engine, program)
        else:
            faults = _trap_faults(engine, program, case, pc, None)
        yield from (f"({name}) {case}: {fault}" for fault in faults)


@pytest.mark.parametrize("mnemonic", [row.mnemonic for row in INSTRUCTIONS])
def test_instruction_gives_the_bits_of_its_golden_cases(engine: Engine, mnemonic: str) -> None:
    mine = [case for case in cases() if case.row.mnemonic == mnemonic]
    table = [case for case in mine if case.code is None]
    code = [case for case in mine if case.code is not None]
    faults = list(_table_faults(engine, table, "counting", _from_constants, True))
    faults += _run_faults(engine, code, "counting", True)
    for name, dress in DRESSINGS.items():
        faults += _table_faults(engine, table, name, dress, False)
    for name in ("as written", "apart"):
        faults += _run_faults(engine, code, name, False)
    assert not faults, f"{len(faults)} faults in {len(mine)} cases:\n" + "\n".join(faults)
