# SPDX-License-Identifier: Apache-2.0
"""What a backend left is checked before the engine believes it: one line, and the program is
over."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.backend import Artifact, BackendError
from ferryvm.isa import Trap
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.state import Machine

from ..double.interpreter import Wrong
from ..double.registry import registry

Left = Callable[[ControlBlock, Status], object]


def execution(leave: Left) -> ferryvm.Execution:
    def enter(real: Artifact, machine: Machine, counting: bool) -> Status:
        status = real.enter(machine, counting)
        found = leave(machine.control, status)
        return status if found is None else found  # type: ignore[return-value]  # what is tested

    program = ferryvm.compile("(define (f x) (print! x) x) (print! (f 3)) (f 4)")
    return ferryvm.Engine("wrong", registry=registry(Wrong(enter))).start(program)


def having(status: Status | None = None, **fields: int) -> Left:
    def leave(control: ControlBlock, _status: Status) -> Status | None:
        for name, value in fields.items():
            setattr(control, name, value)
        if status is not None:
            control.status = status
        return status

    return leave


def _raise(error: BaseException) -> Left:
    def leave(_control: ControlBlock, _status: Status) -> None:
        raise error

    return leave


WRONG: dict[str, tuple[Left, str]] = {
    "pc": (having(pc=2**40), "left at pc 1099511627776, which control never gets to"),
    "negative pc": (having(pc=-1), "left at pc 18446744073709551615, which control never gets to"),
    "sp": (having(sp=2**63), "with sp 9223372036854775808 and fp"),
    "fp": (having(fp=2**63), "and fp 9223372036854775808"),
    "sp and fp": (having(sp=2**63 + 4, fp=2**63), "with sp 9223372036854775812"),
    "host": (having(Status.HOST, exit_id=99), "left for host call 99 at pc "),
    "host elsewhere": (
        having(Status.HOST, pc=0, sp=2, fp=0), "left "
    ),
    "hp": (having(hp=2**40), "with hp 1099511627776"),
    "odd hp": (having(hp=9), "with hp 9"),
    "no trap": (having(Status.TRAP, trap=Trap.NONE), "with the trap 0, which there is not"),
    "unknown trap": (having(Status.TRAP, trap=77), "with the trap 77"),
    "no halt": (having(Status.HALT), "with HALT at pc "),
    "no growth": (having(Status.GROW, wanted=8), "for a heap of 8 bytes"),
    "no objects": (having(Status.ALLOCATE, wanted=8), "with ALLOCATE at pc "),
    "fuel": (having(Status.FUEL), "for want of fuel, which nobody counts"),
    "another status": (lambda control, _: setattr(control, "status", 77), "and 77 in its control"),
    "a status of compiled code": (having(Status.HOT), "left with HOT at pc "),
    "a number": (lambda *_: 3, "returned 3, not a Status"),
    "nothing": (lambda *_: "halt", "returned 'halt', not a Status"),
    "raises": (_raise(ZeroDivisionError("no")), "raised ZeroDivisionError: no (test_exit_check.py:"),
    "exits": (_raise(SystemExit(0)), "raised SystemExit: 0 (test_exit_check.py:"),
}  # fmt: skip


@pytest.mark.parametrize(("leave", "what"), WRONG.values(), ids=WRONG)
def test_a_state_that_cannot_be_is_one_line(leave: Left, what: str) -> None:
    run = execution(leave)
    with pytest.raises(BackendError) as caught:
        run.run()
    message = str(caught.value)
    assert message.startswith("backend 'wrong' ")
    assert what in message
    assert "\n" not in message
    if "which a program run by one backend alone" not in message:
        with pytest.raises(BackendError, match="this execution cannot go on"):
            run.save("never")


def test_a_right_state_goes_through() -> None:
    assert execution(lambda *_: None).run().output == "3\n3\n4\n"
