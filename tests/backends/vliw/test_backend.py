# SPDX-License-Identifier: Apache-2.0
"""What machines cannot do is refused with the reason; which machine it is can be chosen."""

from __future__ import annotations

import ctypes
import dataclasses

import pytest

from ferryvm.backend import BackendError, Code, Options, RefusalError
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine as State
from ferryvm_backends.vliw import ENVIRONMENT, VliwBackend
from ferryvm_backends.vliw.machine.model import FileKind, Machine, Work
from ferryvm_backends.vliw.machine.read import find, shipped

from .program import SMALL, compiled, run, whole

DIVIDING = "(define (f d) (/ 100 d)) (f 3)"


def _chain(operator: str, names: list[str]) -> str:
    """All values, from the last to the first."""
    return f"({operator} {names[0]} {_chain(operator, names[1:])})" if names[1:] else names[0]


NAMES = [f"v{n}" for n in range(20)]
MANY = f"""
(define (f i)
  {" ".join(f"(define {name} (i64.xor i {n}))" for n, name in enumerate(NAMES))}
  (+ {_chain("+", NAMES)} {_chain("*", NAMES[::-1])}))
(f 3)
"""


def without(machine: Machine, work: Work) -> Machine:
    """A machine whose units cannot do something."""
    units = [
        dataclasses.replace(u, work={w: t for w, t in u.work.items() if w is not work})
        for u in machine.units
    ]
    return dataclasses.replace(machine, units=tuple(units))


def with_registers(machine: Machine, count: int) -> Machine:
    """A machine with so many registers in each integer file."""
    files = [
        dataclasses.replace(f, registers=count) if f.kind is FileKind.INTEGER else f
        for f in machine.files
    ]
    return dataclasses.replace(machine, files=tuple(files))


def entered(code: Code, state: State) -> Status:
    function = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)(code.address)
    return Status(function(state.address))


def test_an_operation_without_a_unit_is_refused_with_its_place() -> None:
    machine = without(find("multi16"), Work.DIVIDE)
    with pytest.raises(RefusalError, match=r"no unit for divide, which div_s at pc \d+ needs"):
        compiled(whole(DIVIDING), machine)


def test_a_program_that_does_not_fit_the_instruction_memory_is_refused() -> None:
    machine = dataclasses.replace(find("multi16"), instructions=10)
    with pytest.raises(RefusalError, match=r"takes \d+ bundles, .* holds 10"):
        compiled(whole(DIVIDING), machine)


def test_registers_that_there_are_too_few_of_are_in_memory() -> None:
    part = whole(MANY)
    roomy, tight = (with_registers(find("single"), count) for count in (64, 6))
    programs = [compiled(part, machine) for machine in (roomy, tight)]
    assert programs[0].spilled < programs[1].spilled
    ended = [run(program, part, is_native=True) for program in programs]
    assert ended[0].memory["statics"] == ended[1].memory["statics"]
    assert ended[0].registers == ended[1].registers
    assert ended[0].counts.cycles < ended[1].counts.cycles


@pytest.mark.parametrize("machine", sorted(shipped()))
def test_one_register_in_a_file_is_enough_where_results_are_taken_from_units(machine: str) -> None:
    part = whole(MANY)
    ended = [
        run(compiled(part, each), part, is_native=True)
        for each in (find(machine), with_registers(find(machine), 1))
    ]
    for each in ended:
        each.memory.update(spill=b"", calls=b"")
    assert ended[0].registers == ended[1].registers
    assert ended[0].memory == ended[1].memory


def test_too_few_registers_at_all_are_refused() -> None:
    machine = dataclasses.replace(with_registers(find("single"), 1), bypass=False)
    with pytest.raises(RefusalError, match="too few registers"):
        compiled(whole(MANY), machine)


def test_memory_that_the_machine_has_not_is_told_and_nothing_is_lost() -> None:
    part = whole("(define d 3) (+ 100 d)")
    machine = dataclasses.replace(find("multi16"), memory=100)
    code = VliwBackend(machine).compile(part, Options())
    state = State(part.verified, SMALL)
    before = state.snapshot()
    assert entered(code, state) is Status.LOST
    assert dataclasses.replace(state.snapshot(), status=before.status) == before
    assert "and the machine multi16 has 100" in code.lost


def test_options_choose_the_machine_before_the_variable_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    part, backend = whole("(define d 3) (+ 100 d)"), VliwBackend()
    monkeypatch.setenv(ENVIRONMENT, "wide16")
    for device, name in (("", "wide16"), ("single", "single")):
        code = backend.compile(part, Options(device=device))
        assert code.program.machine.name == name  # type: ignore[attr-defined]  # of this backend


def test_a_machine_that_is_not_there_is_told_with_those_that_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(BackendError, match=r"no machine 'singel'; did you mean 'single'\?"):
        VliwBackend().compile(whole("1"), Options(device="singel"))
    monkeypatch.setenv(ENVIRONMENT, "nowhere.toml")
    assert "cannot be read" in str(VliwBackend().probe())


def test_a_machine_with_a_smaller_heap_can_follow() -> None:
    part = whole("(define v (make-array i64 500)) (array-ref v 499)")
    code = VliwBackend(find("multi16")).compile(part, Options())
    for heap in (16 << 10, 8 << 10):
        state = State(part.verified, dataclasses.replace(SMALL, first_heap=heap))
        assert entered(code, state) is Status.HALT


def test_what_is_free_of_the_heap_is_zero_for_the_next_machine() -> None:
    part = whole("(define v (make-array i64 50)) (define s (array-ref v 49)) (array-set! v 49 7) s")
    code = VliwBackend(find("multi16")).compile(part, Options())
    for _ in range(2):
        state = State(part.verified, SMALL)
        assert entered(code, state) is Status.HALT
        assert state.result()[1] == 0  # type: ignore[index]  # it has one
