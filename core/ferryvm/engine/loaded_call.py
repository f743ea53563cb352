# SPDX-License-Identifier: Apache-2.0
"""The calls that were active when a machine was saved, found on its stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ferryvm.engine.active_call import Call
from ferryvm.engine.marshal import CallError
from ferryvm.isa import BY_MNEMONIC
from ferryvm.machine.control import CALL_FORMAT, CALL_REGISTERS, Status
from ferryvm.machine.python_call import ArmedWord

if TYPE_CHECKING:
    from ferryvm.engine.call import Calls
    from ferryvm.engine.target import Target

_HALT = BY_MNEMONIC["halt"].opcode


def take_up(calls: Calls, targets: Sequence[Target]) -> None:
    """Find the active calls on the stack of a machine that was loaded. Raises CallError."""
    machine, words = calls.machine, calls.machine.memory.stack
    control, owner = machine.control, machine.verified.owner
    of_stub = {owner(target.entry): target for target in targets}
    pc, fp, at, status = control.pc, control.fp, bytes(calls.block[CALL_REGISTERS]), Status.FUEL
    found: list[Call] = []
    function = -1  # of the frame that was seen last
    while distance := words[fp + 1]:  # the outermost frame has none
        function, above = owner(pc), fp
        pc, fp = words[fp] - 1, fp - distance
        target = of_stub.get(function)
        if target is not None:
            if not words[fp + 1]:
                status = Status.HALT
            sp = above - len(target.signature.parameters)
            before = CALL_FORMAT.pack(status, 0, 0, pc, sp, fp)
            found.append(Call(calls, target, before, at))
            at = before
    if function < 0:
        if control.status != Status.HALT:
            raise CallError("this state stands in the start function: go on with Engine.resume")
        return
    if function not in of_stub or machine.program.code.opcodes[pc] != _HALT:
        raise CallError("this state is no call of an instance: go on with Engine.resume")
    calls.idle = found[-1].before
    calls.armed[ArmedWord.THREAD] = 0
    calls.stopped = tuple(reversed(found))
