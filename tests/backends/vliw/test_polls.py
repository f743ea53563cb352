# SPDX-License-Identifier: Apache-2.0
"""Every loop of the machine's code asks whether its time is over."""

from __future__ import annotations

import re

from tests.ir.control_flow import any_graph

from ferryvm.backend import Options
from ferryvm.flowgraph.component import cycle_without
from ferryvm.ir.graph import Module
from ferryvm.region.region import regions
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import Verified, verify
from ferryvm_backends.vliw.code.if_conversion import convert_conditions
from ferryvm_backends.vliw.code.lower.body import lower
from ferryvm_backends.vliw.code.operation import MachineBlock
from ferryvm_backends.vliw.machine.read import find
from ferryvm_backends.vliw.passes import optimised

MACHINE = find("wide16")


def unpolled(module: Module) -> list[str]:
    """Blocks in cycles of a module's code that do not ask. A loop over the elements that one
    instruction fills or copies ends by itself."""
    blocks = lower(module, convert_conditions(module, MACHINE)).blocks
    places = {block: place for place, block in enumerate(blocks)}
    onward = [
        [places[o.target] for o in block.operations if isinstance(o.target, MachineBlock)]
        for block in blocks
    ]
    asks = {
        place
        for block, place in places.items()
        if any(operation.name == "exit_expired" for operation in block.operations)
        or re.fullmatch(r"each\d+", block.label)
    }
    return [blocks[place].label for place in cycle_without(onward, asks)]


def found_in(verified: Verified) -> list[str]:
    modules = [optimised(each, Options(optimize=2), MACHINE) for each in regions(verified)]
    return [label for module in modules for label in unpolled(module)]


def test_every_loop_of_the_machines_code_asks_whether_its_time_is_over() -> None:
    for seed in range(5):
        assert found_in(any_graph(seed)) == []
        assert found_in(verify(generate(20261123, seed, ProgramKind.BYTECODE))) == []


def test_a_loop_that_does_not_ask_is_seen() -> None:
    module = optimised(next(iter(regions(any_graph(0)))), Options(optimize=2), MACHINE)
    for body in module.bodies:
        for block in body.blocks:
            block.operations = [o for o in block.operations if o.name != "poll"]
    assert unpolled(module)
