# SPDX-License-Identifier: Apache-2.0
"""Items of launches become part of the launch's loop, with the same states wherever that leaves."""

from __future__ import annotations

import re

import pytest

import ferryvm
from ferryvm.ir.graph import Module
from ferryvm.ir.lift import lift
from ferryvm.ir.operation import IrError
from ferryvm.ir.parse import parse_module
from ferryvm.ir.passes import optimise
from ferryvm.ir.passes.inline import inline_items
from ferryvm.ir.text import module_text
from ferryvm.ir.verify import verify_module
from ferryvm.machine.control import Status
from ferryvm.region.region import region
from ferryvm.verify import Verified, verify

from ..launching import launch
from .comparison import compare, visits

MAIN = f"""
.host print_i64 (i64)
.tag odd i64
.static counter i64
.function main
.local to i64[]
    i64.const 6
    array.new_default_i64
    local.set to
    local.get to
    i64.const 3
    i64.const 6
{launch("item", drops=5)}
    local.get to
    i64.const 5
    array.get_i64
    halt
"""

STORE = """
.function item (item i64, to i64[], factor i64)
.local more i64
    local.get to
    local.get item
    local.get item
    local.get factor
    call both
    local.set more
    local.get more
    i64.sub
    array.set_i64
    return
"""

BOTH = """
.function both (a i64, b i64) -> (i64, i64)
    local.get a
    local.get b
    i64.mul
    local.get a
    return
"""

PROGRAMS = {
    "calls a function with two results": STORE + BOTH,
    "divides by what may be zero": STORE
    + """
.function both (a i64, b i64) -> (i64, i64)
    i64.const 100
    local.get a
    i64.const 4
    i64.sub
    i64.div_s
    local.get b
    return
""",
    "prints in a callee": STORE
    + BOTH.replace("    local.get a\n    return", "    local.get a\n    host print_i64\n    local.get a\n    return"),
    "writes a static in the callee": STORE.replace("    call both", "    call both\n    static.get counter\n    i64.add")
    + BOTH.replace("    i64.mul", "    i64.mul\n    static.get counter\n    local.get a\n    i64.add\n    static.set counter"),
    "throws": STORE + BOTH.replace("    i64.mul", "    i64.mul\n    local.get a\n    i64.const 3\n    i64.eq\n    jump_unless go\n    local.get a\n    throw odd\n:go"),
    "loops": """
.function item (item i64, to i64[], factor i64)
.local n i64
:again
    local.get n
    local.get item
    i64.ge_s
    jump_if over
    local.get n
    local.get factor
    i64.add
    local.set n
    jump again
:over
    local.get to
    local.get item
    local.get n
    array.set_i64
    return
""",
}  # fmt: skip


def launched(name: str) -> Verified:
    return verify(ferryvm.assemble(MAIN + PROGRAMS[name]))


def inlined(module: Module, verified: Verified) -> None:
    """All that compilers do before and after inlining."""
    assert inline_items(module, verified.program)
    verify_module(module, verified)
    optimise(module, 2, verified, check=True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_states_where_it_leaves_are_those_of_the_frames_of_all_calls(name: str) -> None:
    verified = launched(name)
    found = set()
    for each, machine in visits(verified):
        if "launch" in each.name or each.name == "main":
            for polls in (2, 100):
                found.add(compare(each, machine, lambda m: inlined(m, verified), polls=polls))
    expected = {
        "divides by what may be zero": Status.TRAP,
        "prints in a callee": Status.HOST,
        "throws": Status.LEAVE,
    }
    assert expected.get(name, Status.INTERRUPTED) in found


def test_the_text_of_a_state_says_where_the_header_of_an_inlined_frame_is() -> None:
    verified = launched("divides by what may be zero")
    module = lift(region(verified, "main/launch.1"))
    assert inline_items(module, verified.program) == 2
    assert not module.functions
    text = module_text(module)
    (state,) = re.findall(r"trap_if INTEGER_DIVIDE_BY_ZERO \S+ (@.*)", text)
    assert state.count("header=") == 1
    parsed = parse_module(text)
    verify_module(parsed, verified)
    assert module_text(parsed) == text
    for wrong, fault in (("header=12", "words at pc"), ("header=17", "words at pc")):
        changed = parse_module(text.replace(state, re.sub(r"header=\d+", wrong, state)))
        with pytest.raises(IrError, match=fault):
            verify_module(changed, verified)


def test_a_callee_does_not_grow_beyond_the_largest_size() -> None:
    twice = "".join(
        f"""
.function f{n} (a i64) -> i64
    local.get a
    call f{n + 1}
    call f{n + 1}
    return
"""
        for n in range(12)
    )
    last = (
        ".function f12 (a i64) -> i64\n    local.get a\n    i64.const 3\n    i64.mul\n    return\n"
    )
    item = """
.function item (item i64, to i64[], factor i64)
    local.get to
    local.get item
    local.get item
    call f0
    array.set_i64
    return
"""
    verified = verify(ferryvm.assemble(MAIN + item + twice + last))
    module = lift(region(verified, "main/launch.1"))
    assert inline_items(module, verified.program, largest=200) > 10
    verify_module(module, verified)
    sizes = [sum(len(b.operations) for b in body.blocks) for body in module.bodies]
    assert max(sizes) < 300  # addresses of frames take some more; without a limit 2^12 calls
    assert len(module.functions) > 1


def test_functions_that_call_themselves_or_are_large_stay_calls() -> None:
    verified = verify(ferryvm.assemble(MAIN + STORE + BOTH.replace(
        "    i64.mul", "    i64.mul\n    local.get a\n    local.get b\n    call both\n    drop\n    drop"
    )))  # fmt: skip
    module = lift(region(verified, "main/launch.1"))
    assert inline_items(module, verified.program) == 1
    assert [body.name for body in module.functions.values()] == ["both"]
    module = lift(region(launched("loops"), "main/launch.1"))
    assert inline_items(module, launched("loops").program, largest=3) == 0
    assert len(module.functions) == 1
