# SPDX-License-Identifier: Apache-2.0
"""Compilers without references refuse code with them and say so; other code is compiled beside
it."""

from __future__ import annotations

import dataclasses

import pytest

import ferryvm
from ferryvm.backend import RefusalError
from ferryvm.engine import Engine
from ferryvm.engine.journal import Outcome
from ferryvm.region.reference import uses_references
from ferryvm.region.region import region
from ferryvm.verify import verify
from ferryvm_backends.vliw import VliwBackend

from ..double.registry import registry
from ..engine.mixing import placements, policy, start


class _Plain(VliwBackend):
    """A compiler without references."""

    name = "plain"
    capabilities = dataclasses.replace(VliwBackend.capabilities, references=False)


LISTS = """
.struct node value i64 next node
.static head node
.function main
.local n i64
:again
    local.get n
    static.get head
    struct.new node
    static.set head
    call numbers
    drop
    local.get n
    i64.const 1
    i64.add
    local.set n
    local.get n
    i64.const 300
    i64.lt_s
    jump_if again
    static.get head
    struct.get node.value
    halt
.function numbers -> i64
.local n i64
:loop
    local.get n
    i64.const 1
    i64.add
    local.set n
    local.get n
    i64.const 50
    i64.lt_s
    jump_if loop
    local.get n
    return
.function pass (any anyref) -> i32
    i32.const 7
    return
"""


def test_a_compiler_that_is_asked_for_by_name_refuses() -> None:
    engine = Engine("plain", registry=registry(_Plain()))
    with pytest.raises(RefusalError, match="it uses references, which plain does not compile"):
        engine.start(ferryvm.assemble(LISTS)).run()


def test_the_interpreter_goes_on_where_a_region_is_refused() -> None:
    execution = start(ferryvm.assemble(LISTS), policy("plain"), registry(_Plain()))
    assert execution.run().value == 299
    attempts = [attempt for placement in placements(execution) for attempt in placement.attempts]
    assert any(attempt.code is not None for attempt in attempts)
    refused = [attempt.reason for attempt in attempts if attempt.outcome is Outcome.REFUSED]
    assert refused
    assert set(refused) == {"it uses references, which plain does not compile yet"}


def test_a_compiler_with_references_compiles_the_same_regions() -> None:
    execution = start(ferryvm.assemble(LISTS), policy())
    assert execution.run().value == 299
    attempts = [attempt for placement in placements(execution) for attempt in placement.attempts]
    outcomes = {attempt.outcome for attempt in attempts}
    assert outcomes
    assert outcomes <= {Outcome.COMPILED, Outcome.CACHED}


def test_a_region_uses_references_by_its_instructions_and_by_its_frame() -> None:
    verified = verify(ferryvm.assemble(LISTS))
    found = {name: uses_references(region(verified, name)) for name in ("main", "numbers", "pass")}
    assert found == {"main": True, "numbers": False, "pass": True}
