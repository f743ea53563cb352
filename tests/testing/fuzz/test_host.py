# SPDX-License-Identifier: Apache-2.0
"""Campaigns whose programs call host functions of a user."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferryvm.isa import BY_MNEMONIC
from ferryvm.machine.host import HostError
from ferryvm.registry import Registry
from ferryvm.testing.fuzz import Campaign, CampaignPlan, TrialOutcome
from ferryvm.testing.fuzz.host import load_hosts
from ferryvm.testing.generate import ProgramKind, generate

MODULE = """
import itertools
from ferryvm import f64, host, i32, i64

numbers = itertools.count()

@host(pure=True)
def mixed(x: i64, y: f64) -> i64:
    return x * 31 % 1000 + (y > 0)

@host(pure=True)
def picky(x: i32) -> f64:
    if x % 3 == 0:
        raise ValueError("a multiple of 3")
    return x / 3

@host(replayable=True)
def ticket() -> i64:
    return next(numbers)

@host
def plain(x: i64) -> i64:
    return x

some = [mixed, picky, ticket]
"""
KINDS = (ProgramKind.BYTECODE, ProgramKind.SKIFF)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MODULE, encoding="utf-8")
    return path


@pytest.mark.rotate("kind", most=1)
@pytest.mark.parametrize("kind", KINDS)
def test_most_programs_call_them(file: Path, kind: ProgramKind) -> None:
    hosts = load_hosts(Registry(), [f"{file}:some"])
    calls, own = BY_MNEMONIC["host"].opcode, {host.name for host in hosts}
    assert own == {"mixed", "picky", "ticket"}
    found = set[str]()
    having = 0
    for number in range(20):
        program = generate(1, number, kind, hosts=hosts)
        code = program.code
        called = {
            program.hosts[code.immediates[pc]].name
            for pc, opcode in enumerate(code.opcodes)
            if opcode == calls
        }
        found |= called & own
        having += bool(called & own)
    assert found == own
    assert having > 10


@pytest.mark.nightly
def test_backends_agree_also_where_a_function_raises(file: Path) -> None:
    plan = CampaignPlan(2, ("threaded",), "switch", KINDS, hosts=(f"{file}:some",))
    assert CampaignPlan.from_json(plan.to_json()) == plan
    assert f"--hosts {file}:some" in plan.command(3)
    report = Campaign(plan, 1, 40).run()
    assert report.findings == []
    assert sum(report.outcomes[kind, TrialOutcome.HALTED] for kind in KINDS) > 10


def test_function_that_may_have_effects_is_refused(file: Path) -> None:
    with pytest.raises(HostError) as caught:
        load_hosts(Registry(), [f"{file}:plain"])
    assert str(caught.value) == (
        f"--hosts {file}:plain: random programs call host functions many times; declare plain "
        "pure=True or replayable=True if it has no effects"
    )
