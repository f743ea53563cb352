# SPDX-License-Identifier: Apache-2.0
"""Random programs in Skiff: they compile, end, and are the same everywhere."""

from __future__ import annotations

import functools
import hashlib
import statistics

import pytest

from ferryvm.isa import INSTRUCTIONS, Trap
from ferryvm.machine.control import Status
from ferryvm.testing import Differ, Verdict
from ferryvm.testing.generate import LIMITS, MOST_INSTRUCTIONS, ProgramKind, generate, skiff_source
from ferryvm.testing.generate.catalogue import COMPUTING
from ferryvm.verify import verify

from ...tier import sample
from .census import Life, live
from .settled import NAMES, SETTLED

COUNT = 120


@functools.cache
def lives() -> tuple[Life, ...]:
    return tuple(live(1, number, ProgramKind.SKIFF) for number in range(COUNT))


def test_texts_of_a_seed_are_the_same_on_every_python() -> None:
    texts = "".join(skiff_source(2026, number, SETTLED) for number in range(40))
    digest = hashlib.blake2b(texts.encode(), digest_size=16).hexdigest()
    assert digest == "10a1420fd1b08e196ea19dccad3f3548"


@pytest.mark.parametrize("count", sample([8, 150], 1))
def test_texts_compile_to_programs_that_pass_the_verifier(count: int) -> None:
    for number in range(count):
        verify(generate(3, number, ProgramKind.SKIFF))


@pytest.mark.nightly
def test_programs_end_by_themselves_most_by_halting() -> None:
    assert all(life.status in (Status.HALT, Status.TRAP) for life in lives())
    assert max(life.instructions for life in lives()) < MOST_INSTRUCTIONS
    assert 0.1 < sum(life.status is Status.TRAP for life in lives()) / COUNT < 0.4
    assert 200 < statistics.mean(life.instructions for life in lives()) < 1500


@pytest.mark.nightly
def test_programs_loop_call_and_print() -> None:
    assert sum(life.back_edges > 0 for life in lives()) > COUNT // 3
    assert sum(len(life.functions) > 1 for life in lives()) > COUNT // 5
    assert sum(life.deepest > 3 for life in lives()) > COUNT // 50
    assert sum(life.hosts > 0 for life in lives()) > COUNT // 2


@pytest.mark.nightly
def test_exceptions_are_thrown_and_caught_within_functions_and_across_calls() -> None:
    assert sum(life.caught > 0 for life in lives()) > COUNT // 6
    assert 0.06 < sum(life.caught_across > 0 for life in lives()) / COUNT < 0.16
    assert 0 < sum(life.trap is Trap.UNCAUGHT_EXCEPTION for life in lives()) < COUNT // 40


@pytest.mark.nightly
def test_most_instructions_are_executed() -> None:
    executed = {opcode for life in lives() for opcode in life.opcodes}
    possible = [
        row
        for row in INSTRUCTIONS
        if not row.has_references and (row not in COMPUTING or row.mnemonic in NAMES)
    ]
    assert len(executed) > 0.8 * len(possible)


@pytest.mark.parametrize("count", sample([6, 60], 1))
def test_backends_agree_on_programs(count: int) -> None:
    differ = Differ(["switch", "threaded"], "reference", limits=LIMITS, most=MOST_INSTRUCTIONS)
    for number in range(count):
        for comparison in differ.compare(verify(generate(5, number, ProgramKind.SKIFF))):
            assert comparison.verdict is Verdict.AGREE, (number, comparison)
