# SPDX-License-Identifier: Apache-2.0
"""No pass leaves malformed IR, and none changes what a program does, whatever its control flow
is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.ir.graph import Body, Module
from ferryvm.ir.lift import lift
from ferryvm.ir.loop.preheader import add_preheaders
from ferryvm.ir.passes import optimise
from ferryvm.ir.passes.address_base import share_bases
from ferryvm.ir.passes.code_motion import hoist_invariants
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.load_forwarding import forward_loads
from ferryvm.ir.passes.loop_deletion import delete_counting_loops
from ferryvm.ir.passes.range_check import hoist_range_checks
from ferryvm.ir.passes.strength_reduction import reduce_strength
from ferryvm.ir.passes.unswitch import unswitch
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.ir.text import module_text
from ferryvm.ir.verify import verify_module
from ferryvm.region.graph import graph
from ferryvm.region.region import region, regions
from ferryvm.verify import Verified, verify

from ..tier import sample
from .comparison import compare, visits
from .control_flow import any_graph

Pipeline = Callable[[Module, Verified], None]


def at_level(level: int) -> Pipeline:
    def change(module: Module, verified: Verified) -> None:
        optimise(module, level, verified)

    return change


def counting(module: Module, verified: Verified) -> None:
    """As `opencl` has it."""
    optimise(module, 2, verified)
    if not module.counting:
        each_verified(module, verified, delete_counting_loops, hoist_range_checks)


def scheduling(module: Module, verified: Verified) -> None:
    """As `vliw` has it."""
    optimise(module, 2, verified, unrolled=True)
    each_verified(
        module,
        verified,
        hoist_range_checks,
        lambda body: unswitch(body, module.footprints),
        lambda body: add_preheaders(body, of_branches=True),
        share_bases,
        hoist_invariants,
        number_values,
        remove_dead_code,
        reduce_strength,
        hoist_invariants,
        remove_dead_code,
        lambda body: forward_loads(body, module.footprints, lambda _: 8),
        remove_dead_code,
    )


def each_verified(module: Module, verified: Verified, *passes: Callable[[Body], object]) -> None:
    for each in passes:
        for body in module.bodies:
            each(body)
        verify_module(module, verified)


PIPELINES = {
    "lifted": at_level(0),
    "level 1": at_level(1),
    "level 2": at_level(2),
    "counting": counting,
    "scheduling": scheduling,
}


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRYVM_CHECK_IR", "1")


@pytest.mark.parametrize("count", sample([5, 15], 1))
@pytest.mark.parametrize("name", PIPELINES)
def test_regions_of_any_graph_leave_in_the_state_of_the_reference(name: str, count: int) -> None:
    change, seeds = PIPELINES[name], [*PIPELINES].index(name)
    for seed in range(seeds, count, len(PIPELINES)):
        verified = any_graph(seed)
        for turn, (each, machine) in enumerate(visits(verified, most=400, times=1)):
            compare(each, machine, lambda m, v=verified: change(m, v), polls=40 if turn % 2 else 3)


@pytest.mark.parametrize("count", sample([2, 6], 1))
@pytest.mark.parametrize("name", PIPELINES)
def test_ir_of_any_graph_is_well_formed_after_each_pass(name: str, count: int) -> None:
    for seed in range(100, 100 + count):
        verified = any_graph(seed)
        for each in regions(verified):
            module = lift(each, counting=bool(seed % 2))
            PIPELINES[name](module, verified)


def test_half_of_the_graphs_have_cycles_with_several_entries() -> None:
    assert sum(graph(any_graph(seed), 1).irreducible for seed in range(60)) >= 25


TWO_ENTRIES = """
.function main
.local n i64
    local.get n
    i64.eqz
    jump_if second
:first
    local.get n
    i64.const 1
    i64.add
    local.set n
:second
    local.get n
    i64.const 2
    i64.add
    local.set n
    jump first
"""


def test_a_cycle_with_two_entries_gets_a_head_and_polls_in_front_of_it() -> None:
    module = lift(region(verify(ferryvm.assemble(TWO_ENTRIES)), "main"))
    assert module_text(module).endswith(
        """
  branch %1 b1(i64:0, %0) b1(i64:1, %0)
b1 @7 (%2: i64, %3: i64):
  switch %2 b3() b2()
b2 @3 ():
  %4: i64 = add i64 %3, i64:1
  jump poll4()
poll4 @7 ():
  poll @7 [_ _ %4]
  jump b1(i64:0, %4)^
b3 @7 ():
  %5: i64 = add i64 %3, i64:2
  jump poll6()
poll6 @3 ():
  poll @3 [_ _ %5]
  jump b1(i64:1, %5)^
"""
    )
