# SPDX-License-Identifier: Apache-2.0
"""Programs beyond the limits of compilers: compiled by function, or interpreted with the reason
told."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import pytest

import ferryvm
from ferryvm import cache
from ferryvm.backend import Forcing
from ferryvm.cost import Cost
from ferryvm.engine import Engine, Execution
from ferryvm.engine.journal import Attempt, Outcome
from ferryvm.engine.mixed import MixedArtifact
from ferryvm.isa.type import I64
from ferryvm.program import Program
from ferryvm.region.cost import cost, too_costly, within
from ferryvm.region.region import region
from ferryvm.registry import Registry
from ferryvm.testing.differential import Differ, Verdict
from ferryvm.testing.generate import LIMITS, ProgramKind, generate
from ferryvm.verify import verify

CALLED = """
.function main
.local i i32
:again
    local.get i
    i64.extend_i32_u
    call a
    drop
    local.get i
    i32.const 1
    i32.add
    local.set i
    local.get i
    i32.const 400
    i32.lt_u
    jump_if again
    i64.const 7
    call a
    halt
.function a (n i64) -> i64
    local.get n
    i64.const 3
    i64.mul
    call b
    return 1
.function b (n i64) -> i64
    local.get n
    i64.const 1
    i64.add
    i64.const 5
    i64.mul
    return 1
"""


def attempts(execution: Execution) -> list[Attempt]:
    """All attempts to compile something of what was run."""
    ((_, artifact),) = execution._prepared.values()
    assert isinstance(artifact, MixedArtifact)
    return [each for one in artifact.journal.placements for each in one.attempts]


def compilers() -> list[str]:
    """Compilers that are usable here."""
    registry = Registry()
    names = []
    for name in ("llvm", "vliw", "opencl", "cc"):
        if name in registry.names and registry.get(name).probe() is None:
            names.append(name)
    return names


@pytest.mark.parametrize("name", compilers())
def test_a_program_too_large_for_a_compiler_runs_and_the_reason_is_told(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    limits = Registry().get(name).capabilities.limits
    assert limits is not None
    lines = "i64.const 1\ni64.add\n" * limits.instructions
    program = ferryvm.assemble(f".function main\ni64.const 0\n{lines}halt\n")
    with caplog.at_level(logging.WARNING):
        execution = Engine(name).start(program)
        assert execution.run().value == limits.instructions
    (attempt, *_) = attempts(execution)
    wanted = f"instructions with what it calls, more than {limits.instructions}"
    assert attempt.outcome is Outcome.TOO_LARGE
    assert attempt.reason.endswith(wanted)
    assert attempt.reason in caplog.text


def with_locals(count: int) -> Program:
    """A function of so many locals, called in a loop."""
    program = ferryvm.assemble(CALLED)
    main, a, b = program.functions
    return dataclasses.replace(
        program, functions=(main, a, dataclasses.replace(b, locals=(I64,) * count))
    )


@pytest.mark.rotate("name", "count")
@pytest.mark.parametrize(("count", "fuel"), [(1056, 1_000_000), (20_000, None)])
@pytest.mark.parametrize("name", compilers())
def test_a_function_of_many_locals_is_compiled_or_refused(
    name: str, count: int, fuel: int | None
) -> None:
    program = with_locals(count)
    execution = Engine(name).start(program)
    assert execution.run(fuel).value == 110
    assert {each.outcome for each in attempts(execution)} <= {
        Outcome.COMPILED,
        Outcome.CACHED,
        Outcome.TOO_LARGE,
    }


def test_cost_grows_with_locals_times_exits() -> None:
    def words(count: int) -> int:
        return cost(region(verify(with_locals(count)), "b")).words

    assert words(2_000) - words(1_000) == 1_000 * (words(1) - words(0))


def test_a_region_beyond_limits_leaves_for_what_does_not_fit() -> None:
    whole = region(verify(ferryvm.assemble(CALLED)), "program")
    limits = Cost(25, 1_000, 100)
    assert too_costly(whole, limits) == "26 instructions with what it calls, more than 25"
    part = within(whole, limits)
    assert part is not None
    assert part.outside == {2}
    assert part.callees == (1,)
    assert cost(part).beyond(limits) is None
    assert within(whole, Cost(10, 1_000, 100)) is None


@pytest.mark.parametrize(("first", "outside"), [("nop", {1, 2}), ("", None)])
def test_code_that_would_leave_at_its_first_instruction_is_left_out(
    first: str, outside: set[int] | None
) -> None:
    """The second function begins with a call of the third one, which is too large."""
    large = "nop\n" * 30
    text = f"""
.function main
    {first}
    call second
    halt
.function second
    call third
    return
.function third
    {large}
    return
"""
    part = within(region(verify(ferryvm.assemble(text)), "program"), Cost(25, 1_000, 100))
    assert (None if part is None else part.outside) == outside


@pytest.mark.rotate("name", most=1)
@pytest.mark.parametrize("name", compilers())
def test_a_large_program_is_compiled_by_function(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(cache.ENVIRONMENT, str(tmp_path))
    limit(name, Cost(25, 1_000, 100), monkeypatch)
    execution = Engine(name).start(ferryvm.assemble(CALLED))
    assert execution.run().value == 110
    made = {each.region: each.reason for each in attempts(execution) if each.code is not None}
    assert made["program"].startswith("without b, which it leaves for: 26 instructions")
    assert made["b"] == ""


def limit(name: str, limits: Cost, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a compiler take less than it says."""
    backend = Registry().get(name)
    own = dataclasses.replace(backend.capabilities, limits=limits)
    monkeypatch.setattr(type(backend), "capabilities", own)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "kind"), [("llvm", ProgramKind.SKIFF), ("vliw", ProgramKind.BYTECODE)]
)
def test_random_programs_run_alike_where_little_is_compiled_at_once(
    name: str, kind: ProgramKind, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(cache.ENVIRONMENT, str(tmp_path))
    limit(name, Cost(70, 2_000, 100), monkeypatch)
    differ = Differ([name], limits=LIMITS, forcing=frozenset({Forcing.HOT}))
    for number in range(2):
        for comparison in differ.compare(verify(generate(20261123, number, kind))):
            assert comparison.verdict is Verdict.AGREE, comparison
