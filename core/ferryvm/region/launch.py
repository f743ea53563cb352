# SPDX-License-Identifier: Apache-2.0
"""The loops of launches in code, by their instructions."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat

from ferryvm.isa import BY_MNEMONIC
from ferryvm.program import HOST_TAG, Clause, Program
from ferryvm.region.atomic import ordered_updates
from ferryvm.region.barrier import waiting
from ferryvm.region.memo import memoised
from ferryvm.verify import Verified

_STEP = tuple(
    BY_MNEMONIC[name].opcode for name in ("launch.test", "jump_unless", "launch.item", "call")
)
"""The instructions that run an item."""
_TEST = _STEP[0]
_JUMP = BY_MNEMONIC["jump"].opcode
_HOST = BY_MNEMONIC["host"].opcode

CALL_DISTANCE = len(_STEP) - 1
"""Instructions from `launch.test` to the call of the items' function."""


def item_call(program: Program, pc: int) -> int | None:
    """pc of the call of the items of the launch whose `launch.test` is at `pc`; None if the
    instructions there are others."""
    code = program.code
    call = pc + CALL_DISTANCE
    if tuple(code.opcodes[pc : call + 1]) != _STEP:
        return None
    return call if code.immediates[call - 1] == code.immediates[call] else None


def is_launch_head(program: Program, pc: int) -> bool:
    """True if the loop with its head at `pc` runs the items of a launch, and does nothing else."""
    call = item_call(program, pc)
    code = program.code
    if call is None or call + 1 >= len(code):
        return False
    return code.opcodes[call + 1] == _JUMP and code.immediates[call + 1] == pc


def is_in_loop(head: int, pc: int) -> bool:
    """True for an instruction of the loop of the launch whose `launch.test` is at `head`, items'
    functions left out."""
    return head <= pc <= head + CALL_DISTANCE + 1


def why_in_order(verified: Verified, pc: int) -> str:
    """The reason that the items of the launch whose `launch.test` is at `pc` run in order; empty if
    they need not.

    Where items may throw and a handler around the launch may catch that, the program would go on,
    and see if higher items were done.
    """
    if _may_be_caught(verified, pc + CALL_DISTANCE):
        return "its items run in order: a handler outside of them may catch their exceptions"
    barrier = waiting(verified).get(verified.program.code.immediates[pc + CALL_DISTANCE])
    if barrier is not None:
        position = verified.program.source_map.position(barrier) or f"pc {barrier}"
        return f"its items run in order: they wait for each other at {position}"
    ordered = ordered_updates(verified)
    if ordered:
        from ferryvm.region.call import call_graph

        item = verified.program.code.immediates[pc + CALL_DISTANCE]
        for function in call_graph(verified).reached([item]):
            if function in ordered:
                update = ordered[function]
                position = verified.program.source_map.position(update) or f"pc {update}"
                return f"its items run in order: the result of an update is used at {position}"
    return ""


@memoised
def launch_numbers(verified: Verified) -> Mapping[int, int]:
    """The launches whose items may run out of order: their numbers by the pc of `launch.test`."""
    program = verified.program
    heads = [
        pc
        for pc, opcode in enumerate(program.code.opcodes)
        if opcode == _TEST and verified.is_reachable(pc) and is_launch_head(program, pc)
    ]
    free = [pc for pc in heads if not why_in_order(verified, pc)]
    return {pc: number for number, pc in enumerate(free)}


@memoised
def out_of_order(verified: Verified) -> frozenset[int]:
    """The functions that items of such launches call, directly or not."""
    from ferryvm.region.call import call_graph

    numbers = verified.program.code.immediates
    called = {numbers[pc + CALL_DISTANCE] for pc in launch_numbers(verified)}
    return frozenset(call_graph(verified).reached(called))


def _may_be_caught(verified: Verified, call: int) -> bool:
    """True if an exception of the items that the instruction at `call` calls may be caught outside
    of them."""
    program = verified.program
    if not program.clauses:
        return False
    from ferryvm.region.call import call_graph
    from ferryvm.region.escape import escaping

    if verified.clauses.covering(call):
        return True  # native code leaves behind a throw that is caught there, not in front of it
    item = program.code.immediates[call]
    functions = {*call_graph(verified).reached([item])}
    outside = [one for one in program.clauses if verified.owner(one.start) not in functions]
    if outside and escaping(verified, [item]):
        return True
    return any(map(_catches_host, outside, repeat(program))) and any(
        opcode == _HOST and verified.owner(pc) in functions and verified.is_reachable(pc)
        for pc, opcode in enumerate(program.code.opcodes)
    )


def _catches_host(clause: Clause, program: Program) -> bool:
    """True if a clause catches exceptions that host functions raise."""
    return clause.tag is None or program.tags[clause.tag].name.startswith(HOST_TAG)
