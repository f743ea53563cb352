# SPDX-License-Identifier: Apache-2.0
"""Blocks that are one jump are left out, but for preheaders of loops and where calls return."""

from __future__ import annotations

from ferryvm_backends.vliw.code.jump_threading import thread_jumps
from ferryvm_backends.vliw.code.operation import MachineBlock, MachineCode, MachineOperation


def jump(target: MachineBlock) -> MachineOperation:
    return MachineOperation("jump", target=target)


def code(*blocks: MachineBlock) -> MachineCode:
    return MachineCode("by hand", [*blocks])


def test_a_branch_goes_where_the_jumps_behind_it_go() -> None:
    end = MachineBlock("end", [MachineOperation("stop")])
    second = MachineBlock("second", [jump(end)])
    first = MachineBlock("first", [jump(second)])
    entry = MachineBlock("entry", [MachineOperation("exit", (), (1,), target=first), jump(second)])
    found = code(entry, first, second, end)
    thread_jumps(found)
    assert found.blocks == [entry, end]
    assert {each.target for each in entry.operations} == {end}


def test_a_loop_keeps_its_preheader() -> None:
    loop = MachineBlock("loop")
    loop.operations = [jump(loop)]
    preheader = MachineBlock("preheader", [jump(loop)])
    entry = MachineBlock("entry", [jump(preheader)])
    found = code(entry, preheader, loop)
    thread_jumps(found)
    assert found.blocks == [entry, preheader, loop]


def test_a_block_whose_number_is_a_constant_stays() -> None:
    end = MachineBlock("end", [MachineOperation("stop")])
    back = MachineBlock("back", [jump(end)])
    entry = MachineBlock("entry", [MachineOperation("store", (), (0, back)), jump(back)])
    found = code(entry, back, end)
    thread_jumps(found)
    assert found.blocks == [entry, back, end]
    assert entry.operations[-1].target is back


def test_jumps_in_a_circle_stay() -> None:
    one, other = MachineBlock("one"), MachineBlock("other")
    one.operations, other.operations = [jump(other)], [jump(one)]
    entry = MachineBlock("entry", [jump(one)])
    found = code(entry, one, other)
    thread_jumps(found)
    assert one in found.blocks
