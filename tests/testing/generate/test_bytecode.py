# SPDX-License-Identifier: Apache-2.0
"""Random programs in bytecode: valid, ending, the same everywhere, and of all sorts."""

from __future__ import annotations

import functools
import hashlib
import statistics

import pytest

from ferryvm import asm
from ferryvm.image import to_bytes
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow, Trap
from ferryvm.machine.control import Status
from ferryvm.testing import Differ, Schedule, Verdict
from ferryvm.testing.generate import LIMITS, MOST_INSTRUCTIONS, generate
from ferryvm.testing.generate.catalogue import COMPUTING, OPERATORS, Guard
from ferryvm.verify import verify

from ...tier import sample
from .census import Life, live
from .settled import NAMES, SETTLED

COUNT = 480


@functools.cache
def lives() -> tuple[Life, ...]:
    return tuple(live(24, number) for number in range(COUNT))


def share(lives_: int) -> float:
    return lives_ / COUNT


# --- the same everywhere ------------------------------------------------------------------------


def test_programs_of_a_seed_are_the_same_on_every_python() -> None:
    """A change of the generator or its weights changes what is pinned here; a change of Python,
    processor or operating system must not, nor a new instruction, which changes opcodes."""
    lines = []
    for number in range(40):
        code = generate(2026, number, weights=SETTLED).code
        for opcode, immediate in zip(code.opcodes, code.immediates, strict=True):
            lines.append(f"{INSTRUCTIONS[opcode].mnemonic} {immediate}\n")
    digest = hashlib.blake2b("".join(lines).encode(), digest_size=16).hexdigest()
    assert digest == "22d1d426ba4ca8c844f342bbc7c263a6"


def test_program_does_not_depend_on_those_before_it() -> None:
    alone = to_bytes(generate(7, 5))
    assert [to_bytes(generate(7, number)) for number in range(6)][5] == alone
    assert to_bytes(generate(8, 5)) != alone


@pytest.mark.parametrize("count", sample([15, 50], 1))
def test_programs_can_be_disassembled(count: int) -> None:
    for number in range(count):
        program = generate(5, number)
        assert to_bytes(asm.assemble(asm.disassemble(program))) == to_bytes(program)


# --- valid and ending ---------------------------------------------------------------------------


@pytest.mark.parametrize("count", sample([20, 300], 1))
@pytest.mark.parametrize("seed", [3, 1 << 70, -1])
def test_programs_pass_the_verifier(seed: int, count: int) -> None:
    for number in range(count):
        verify(generate(seed, number))


@pytest.mark.nightly
def test_programs_end_by_themselves() -> None:
    assert all(life.status in (Status.HALT, Status.TRAP) for life in lives())
    assert max(life.instructions for life in lives()) < MOST_INSTRUCTIONS


@pytest.mark.parametrize("count", sample([20, 120], 1))
def test_backends_agree_on_programs_that_stay_and_that_move(count: int) -> None:
    differ = Differ(["switch", "threaded"], "reference", limits=LIMITS, most=MOST_INSTRUCTIONS)
    for number in range(count):
        program = verify(generate(4, number))
        schedule = Schedule.NONE if number % 2 else Schedule.RANDOM
        for comparison in differ.compare(program, schedule, number):
            assert comparison.verdict is Verdict.AGREE, (number, comparison)


# --- of all sorts -------------------------------------------------------------------------------


@pytest.mark.nightly
def test_all_settled_instructions_but_a_fiftieth_are_executed() -> None:
    programs = {row.opcode: 0 for row in INSTRUCTIONS}
    for life in lives():
        for opcode in life.opcodes:
            programs[opcode] += 1
    drawn = [row for row in INSTRUCTIONS if row not in COMPUTING or row.mnemonic in NAMES]
    rare = [row.mnemonic for row in drawn if not programs[row.opcode]]
    assert len(rare) <= len(drawn) // 50, rare


def test_every_instruction_that_computes_can_be_drawn_for_its_result() -> None:
    assert len(OPERATORS) == len(COMPUTING) > 120
    assert not [o for o in OPERATORS.values() if o.guard is Guard.UNKNOWN]
    divisions = [o.opcode for o in OPERATORS.values() if o.guard is Guard.DIVISOR]
    names = {INSTRUCTIONS[opcode].mnemonic.partition(".")[2] for opcode in divisions}
    assert names == {"div_s", "div_u", "rem_s", "rem_u", "div_floor", "mod_floor"}
    overflowing = [INSTRUCTIONS[o.opcode] for o in OPERATORS.values() if o.guard is Guard.OVERFLOW]
    assert len(overflowing) == 6
    assert all(row.mnemonic.endswith("_checked") for row in overflowing)
    assert all(o.fitting for o in OPERATORS.values() if o.guard is Guard.RANGE)


@pytest.mark.nightly
def test_most_programs_halt_after_more_than_100_instructions() -> None:
    assert share(sum(life.instructions > 100 for life in lives())) > 0.7
    assert 0.18 < share(sum(life.status is Status.TRAP for life in lives())) < 0.35
    assert 300 < statistics.mean(life.instructions for life in lives()) < 900
    assert share(sum(life.instructions > 5000 for life in lives())) < 0.05


@pytest.mark.nightly
def test_programs_are_of_60_to_some_hundred_instructions() -> None:
    sizes = sorted(len(generate(1, number, weights=SETTLED).code) for number in range(COUNT))
    assert sizes[0] >= 40
    assert 120 < statistics.median(sizes) < 320
    assert sizes[-COUNT // 50] < 1800  # one in fifty may have hundreds of operands
    assert sizes[-1] < 4000


@pytest.mark.nightly
def test_every_trap_is_reached() -> None:
    found = {life.trap for life in lives()}
    # Only hosts make arrays that are read-only, and only they exchange the records of launches; the
    # programs have no barriers.
    barriers = {Trap.BARRIER_DIVERGENCE, Trap.BARRIER_OUTSIDE}
    assert found == set(Trap) - {Trap.READ_ONLY_ARRAY, Trap.INVALID_LAUNCH} - barriers


@pytest.mark.nightly
def test_loops_run_some_with_operands_below_them() -> None:
    assert share(sum(life.back_edges > 0 for life in lives())) > 0.6
    assert share(sum(life.back_edges > 20 for life in lives())) > 0.15
    assert share(sum(life.laden_back_edges > 0 for life in lives())) > 0.1
    assert any(life.back_edges > 1000 for life in lives())


@pytest.mark.nightly
def test_calls_nest_and_recursions_get_deep() -> None:
    assert share(sum(len(life.functions) > 1 for life in lives())) > 0.5
    assert share(sum(life.deepest > 3 for life in lives())) > 0.1
    assert any(life.deepest > 40 for life in lives())
    assert any(life.deepest > 15 and life.status is Status.HALT for life in lives())


@pytest.mark.nightly
def test_exceptions_are_caught_in_the_function_that_throws_and_in_callers() -> None:
    assert share(sum(life.caught > 0 for life in lives())) > 0.2
    assert 0.08 < share(sum(life.caught_across > 0 for life in lives())) < 0.2
    assert any(life.caught_across > 3 for life in lives())
    assert share(sum(life.trap is Trap.UNCAUGHT_EXCEPTION for life in lives())) < 0.06


@pytest.mark.nightly
def test_indirect_calls_and_jump_tables_are_taken() -> None:
    for flow in (Flow.CALL_INDIRECT, Flow.TABLE):
        (opcode,) = (row.opcode for row in INSTRUCTIONS if row.flow is flow)
        assert share(sum(life.opcodes[opcode] > 0 for life in lives())) > 0.1


@pytest.mark.nightly
def test_heaps_grow_and_run_out() -> None:
    assert share(sum(life.grown > 0 for life in lives())) > 0.02
    assert any(life.grown > 1 for life in lives())
    assert sum(life.trap is Trap.HEAP_EXHAUSTED for life in lives()) >= 3


@pytest.mark.nightly
def test_objects_are_made_and_stay_alive_and_some_die() -> None:
    with_objects = [life for life in lives() if life.objects]
    assert 0.35 < share(len(with_objects)) < 0.55
    assert statistics.median(life.objects for life in with_objects) > 100
    assert sum(life.provided > 0 for life in with_objects) > 0.08 * len(with_objects)
    assert any(life.collections > 1 for life in with_objects)
    of_objects = [row.opcode for row in INSTRUCTIONS if row.has_references]
    executed = sum(life.opcodes[opcode] for life in with_objects for opcode in of_objects)
    assert executed > 0.08 * sum(sum(life.opcodes.values()) for life in with_objects)


SHARES = {
    "struct.new": 0.6,
    "struct.get": 0.2,
    "struct.set": 0.15,
    "array.get_ref": 0.04,
    "array.set_ref": 0.1,
    "ref.null": 0.5,  # dropped
    "ref.is_null": 0.6,
    "ref.eq": 0.03,
    "ref.test": 0.2,
    "ref.cast": 0.15,
}
"""The least share of the programs with objects that executes an instruction."""


@pytest.mark.nightly
def test_objects_are_shared_linked_dropped_compared_tested_and_cast() -> None:
    with_objects = [life for life in lives() if life.objects]
    for name, least in SHARES.items():
        opcode = BY_MNEMONIC[name].opcode
        found = sum(life.opcodes[opcode] > 0 for life in with_objects)
        assert found > least * len(with_objects), (name, found, len(with_objects))
    for trap in (Trap.NULL_REFERENCE, Trap.CAST_FAILURE, Trap.INDEX_OUT_OF_BOUNDS):
        found = sum(life.trap is trap for life in with_objects)
        assert 0.005 * len(with_objects) < found < 0.1 * len(with_objects), (trap, found)


@pytest.mark.nightly
def test_few_programs_trap_early() -> None:
    for has_objects in (False, True):
        some = [life for life in lives() if bool(life.objects) is has_objects]
        early = sum(life.status is Status.TRAP and life.instructions < 100 for life in some)
        assert early < 0.1 * len(some)


@pytest.mark.nightly
def test_host_calls_are_made_but_rarely() -> None:
    assert 0.03 < share(sum(life.hosts > 0 for life in lives())) < 0.4
    assert statistics.mean(life.hosts for life in lives()) < 2


@pytest.mark.nightly
def test_statics_are_numbered_at_run_time_in_some_programs() -> None:
    for name in ("static.load", "static.store"):
        opcode = BY_MNEMONIC[name].opcode
        assert share(sum(life.opcodes[opcode] > 0 for life in lives())) > 0.05
