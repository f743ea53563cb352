# SPDX-License-Identifier: Apache-2.0
"""Exceptions as a caller of the engine sees them: uncaught ones, and those of host functions."""

from __future__ import annotations

import gc
import re
import types
from pathlib import Path
from typing import ClassVar

import pytest

import ferryvm
from ferryvm.backend import Artifact, Interpreter
from ferryvm.engine.execution import Execution
from ferryvm.engine.saved import pack_state, unpack_state
from ferryvm.hooks import BackendEntry, hookimpl
from ferryvm.isa import I64, INSTRUCTIONS, Flow, Trap
from ferryvm.isa.type import signed
from ferryvm.machine.control import Status
from ferryvm.machine.host import HostFunction
from ferryvm.machine.memory import Limits
from ferryvm.machine.raised import MOST_RAISED
from ferryvm.machine.state import Machine
from ferryvm.program import Signature
from ferryvm.registry import Registry
from ferryvm.verify import Verified
from ferryvm.wrapper import ArtifactWrapper, InterpreterWrapper

from ..tier import nightly

BACKENDS = ["reference", "switch", "threaded"]

UNCAUGHT = """
.tag error i64 f64
.function main
    call inner
    halt
.function inner
    i64.const -5
    f64.const 2.5
    throw error
"""

HOSTS = """
.host fail (i64) -> i64
.host print_i64 (i64)
.tag python.ArithmeticError i64
.tag python.KeyError i64
.function main
    i64.const 77
:outer
:try
    i64.const {which}
    call inner
    halt
:end
:arithmetic
    host print_i64
    halt
.catch python.ArithmeticError from try to end using arithmetic
:outer_end
{more}
.function inner (which i64) -> i64
    local.get which
    host fail
    return
"""

RECORD = """
:caught
    throw_record
.catch_record from outer to outer_end using caught
"""

ERRORS = {0: ZeroDivisionError("by zero"), 1: KeyError("key"), 2: ferryvm.FerryError("ours")}


def fail(which: int) -> int:
    if which == 3:
        raise KeyboardInterrupt
    raise type(ERRORS[which])(*ERRORS[which].args)


def engine(backend: str) -> ferryvm.Engine:
    function = HostFunction("fail", Signature((I64,), (I64,)), fail)
    return ferryvm.Engine(backend, hosts={"fail": function})


def program(which: int, more: str = "") -> ferryvm.Program:
    return ferryvm.assemble(HOSTS.format(which=which, more=more), "h.fasm")


@pytest.mark.parametrize("backend", BACKENDS)
def test_uncaught_exception_carries_tag_values_and_calls(backend: str) -> None:
    execution = ferryvm.Engine(backend).start(ferryvm.assemble(UNCAUGHT, "u.fasm"))
    with pytest.raises(ferryvm.UncaughtError) as caught:
        execution.run()
    error = caught.value
    assert (error.kind, error.tag, error.values) == (Trap.UNCAUGHT_EXCEPTION, "error", (-5, 2.5))
    assert [frame.function for frame in error.stack] == ["inner", "main"]
    assert str(error) == (
        "u.fasm:9:5: trap: uncaught exception error(-5, 2.5)\n"
        "    in inner at u.fasm:9:5\n    in main at u.fasm:4:5"
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_exception_of_a_host_function_is_caught_by_the_tag_of_a_base_class(backend: str) -> None:
    execution = engine(backend).start(program(0))
    result = execution.run(fuel=100)
    assert (result.status, result.output) == (Status.HALT, "0\n")  # its handle
    assert result.statistics.instructions == 7
    assert isinstance(execution.machine.raised.get(0), ZeroDivisionError)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("more", ["", RECORD], ids=["not caught", "thrown again"])
def test_exception_that_nothing_takes_arrives_as_itself_with_the_calls(
    backend: str, more: str
) -> None:
    execution = engine(backend).start(program(1, more))
    with pytest.raises(KeyError, match="key") as caught:
        execution.run()
    lines = HOSTS.format(which=1, more=more).splitlines()
    texts = ["throw_record"] if more else ["host fail", "call inner"]
    names = ["main"] if more else ["inner", "main"]
    notes = [
        f"    in {name} at h.fasm:{lines.index('    ' + text) + 1}:5"
        for name, text in zip(names, texts, strict=True)
    ]
    assert caught.value.__notes__ == notes
    assert execution.machine.status is (Status.TRAP if more else Status.HOST)


@pytest.mark.parametrize(("which", "kind"), [(2, ferryvm.FerryError), (3, KeyboardInterrupt)])
def test_errors_of_ferryvm_and_interrupts_are_not_caught(
    which: int, kind: type[BaseException]
) -> None:
    with pytest.raises(kind):
        engine("switch").start(program(which, RECORD)).run()


def test_record_of_a_host_exception_has_tag_minus_one_and_its_handle() -> None:
    keep = RECORD.replace("throw_record", "halt")
    execution = engine("switch").start(program(1, keep))
    execution.run()
    words = execution.machine.memory.stack[2:7].tolist()
    assert (signed(I64, words[0]), words[1:]) == (-1, [0, 0, 0, 0])


def test_handle_in_a_copy_is_the_same_exception_and_in_a_file_none(tmp_path: Path) -> None:
    execution = engine("switch").start(program(1, RECORD))
    assert execution.run(fuel=5).status is Status.FUEL
    with pytest.raises(KeyError):
        execution.fork().run()
    execution.save(tmp_path / "a.ferry")
    with pytest.raises(ferryvm.TrapError) as caught:
        engine("switch").resume(tmp_path / "a.ferry").run()
    assert caught.value.kind is Trap.INVALID_RECORD


CATCHING = """
.host fail () -> ()
.export catch
.export again
.tag python.Probe i64
.static first i64 = -1
.function main
    halt
.function catch (n i64) -> i64
:top
:try
    host fail
:end
    i64.const -2
    return
:handler
    static.get first
    i64.const -1
    i64.eq
    jump_if keep
    drop
:next
    local.get n
    i64.const 1
    i64.sub
    local.set n
    local.get n
    i64.const 0
    i64.gt_s
    jump_if top
    static.get first
    return
:keep
    static.set first
    jump next
.catch python.Probe from try to end using handler
.function again (handle i64)
    local.get handle
    throw python.Probe
"""


class Probe(Exception):  # noqa: N818 - one of a host function's, not an error of ours
    """Whose instances are counted while they live."""

    alive: ClassVar[int] = 0
    most: ClassVar[int] = 0

    def __init__(self) -> None:
        Probe.alive += 1
        Probe.most = max(Probe.most, Probe.alive)

    def __del__(self) -> None:
        Probe.alive -= 1


@ferryvm.host(name="fail")
def fail_with_probe() -> None:
    """Fail."""
    raise Probe


@pytest.mark.parametrize("times", [3 * MOST_RAISED, nightly(1_000_000)])
def test_loop_that_catches_keeps_the_most_recent_exceptions_alone(times: int) -> None:
    instance = ferryvm.Engine("threaded").instantiate(
        ferryvm.assemble(CATCHING), hosts=[fail_with_probe]
    )
    gc.collect()
    before = Probe.alive
    Probe.most = before
    assert instance.call("catch", times) == 0
    assert Probe.most - before <= MOST_RAISED + 2
    with pytest.raises(Probe):
        instance.call("again", times - 1)
    with pytest.raises(Probe):
        instance.call("again", times - MOST_RAISED)
    with pytest.raises(ferryvm.UncaughtError, match=r"python\.Probe"):
        instance.call("again", times - MOST_RAISED - 1)
    assert instance.call("catch", 1) == 0


class Leaving(ArtifactWrapper):
    """An artifact that leaves the handling of exceptions to the engine."""

    def enter(self, machine: Machine, counting: bool) -> Status:
        control = machine.control
        while True:
            opcode = machine.program.code.opcodes[control.pc]
            if INSTRUCTIONS[opcode].flow is Flow.THROW and not (counting and control.fuel <= 0):
                control.status = Status.THROW
                return Status.THROW
            given, control.fuel = control.fuel, 1
            status = self.inner.enter(machine, True)
            paid = 1 - control.fuel
            control.fuel = given - paid
            if status is not Status.FUEL or (counting and control.fuel <= 0):
                return status


class LeavingBackend(InterpreterWrapper):
    """A backend of such artifacts."""

    def __init__(self, inner: Interpreter) -> None:
        super().__init__(inner)
        self.name = "leaving"

    def wrapped(self, program: Verified, artifact: Artifact) -> Artifact:
        return Leaving(artifact)


CAUGHT_AND_NOT = """
.tag error i64
.host print_i64 (i64)
.function main
    i64.const 7
:try
    i64.const 3
    call f
:end
    halt
:handler
    host print_i64
    throw error
.catch error from try to end using handler depth 1
.function f (i64)
    local.get 0
    throw error
"""


@pytest.mark.parametrize("is_counting", [False, True])
def test_backend_may_leave_exceptions_to_the_engine(is_counting: bool) -> None:
    registry = Registry()
    reference = registry.get("reference")
    assert isinstance(reference, Interpreter)
    backend = LeavingBackend(reference)
    entry = BackendEntry("leaving", lambda: backend)
    registry.register(types.SimpleNamespace(ferryvm_backends=hookimpl(lambda: [entry])), "leaving")
    execution = ferryvm.Engine("leaving", registry=registry).start(ferryvm.assemble(CAUGHT_AND_NOT))
    with pytest.raises(ferryvm.UncaughtError) as caught:
        execution.run(fuel=100 if is_counting else None)
    assert caught.value.values == (7,)
    if is_counting:
        assert execution.instructions == 6


NESTED = """
.host back (i64) -> i64
.tag error i64
.export inner
.export outer
.function main
    halt
.function inner (x i64) -> i64
    local.get x
    throw error
.function outer (x i64) -> i64
    i64.const 100
:try
    local.get x
    host back
:end
    i64.add
    return
:handler
    i64.add
    return
.catch error from try to end using handler depth 1
"""


@ferryvm.host
def back(instance: ferryvm.Instance, x: ferryvm.i64) -> ferryvm.i64:
    """Call the program again."""
    found: int = instance.call("inner", x + 1)
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_exception_that_leaves_a_nested_call_is_thrown_at_the_host_call(backend: str) -> None:
    made = ferryvm.Engine(backend)
    instance = made.instantiate(ferryvm.assemble(NESTED), hosts=[back])
    assert instance.call("outer", 6) == 107
    with pytest.raises(ferryvm.UncaughtError) as caught:
        instance.call("inner", 3)
    assert (caught.value.tag, caught.value.values) == ("error", (3,))
    assert instance.call("outer", 7) == 108  # usable afterwards


BOTH = """
.host ask (i64) -> i64
.tag python.{tag} i64
.export inner
.export outer
.function begin
    halt
.function inner (x i64) -> i64
    local.get x
    call deeper
    return
.function deeper (x i64) -> i64
    local.get x
    host ask
    return
.function outer (x i64) -> i64
:try
    i64.const 1
    local.get x
    host ask
:end
    i64.add
    return
:handler
    drop
    i64.const -7
    return
.catch python.{tag} from try to end using handler
"""
FRAMES = [
    "    in deeper at both.fasm:14:5",
    "    in inner at both.fasm:10:5",
    "    in <call of inner> at pc {}",
    "    in outer at both.fasm:20:5",
    "    in <call of outer> at pc {}",
    "    in begin at both.fasm:7:5",
]


class NobodyAnswersError(LookupError):
    """What the inner host function raises."""


@ferryvm.host(name="ask")
def ask_back(instance: ferryvm.Instance, x: ferryvm.i64) -> ferryvm.i64:
    """Call the program again; in there, fail."""
    if x == 0:
        raise NobodyAnswersError("nobody")
    result: int = instance.call("inner", x - 1)
    return result


def both(tag: str, backend: str) -> ferryvm.Instance:
    made = ferryvm.Engine(backend)
    return made.instantiate(ferryvm.assemble(BOTH.format(tag=tag), "both.fasm"), hosts=[ask_back])


@pytest.mark.parametrize("tag", ["NobodyAnswersError", "LookupError", "Exception"])
@pytest.mark.parametrize("backend", [*BACKENDS, "llvm"])
def test_exception_of_the_inner_host_function_is_caught_by_the_outer_call(
    backend: str, tag: str
) -> None:
    instance = both(tag, backend)
    for _ in range(2):
        assert instance.call("outer", 1) == -7
        assert instance.call("outer", 3) == -7


def without_pcs(notes: list[str]) -> list[str]:
    return [re.sub(r"at pc \d+", "at pc {}", note) for note in notes]


@pytest.mark.parametrize("backend", [*BACKENDS, "llvm"])
def test_exception_of_the_inner_host_function_names_the_calls_of_both_activations(
    backend: str,
) -> None:
    instance = both("KeyError", backend)
    for _ in range(2):
        with pytest.raises(NobodyAnswersError, match=r"^nobody") as caught:
            instance.call("outer", 1)
        assert type(caught.value) is NobodyAnswersError
        assert without_pcs(caught.value.__notes__) == FRAMES


def test_two_instances_of_one_program_are_both_in_the_notes() -> None:
    @ferryvm.host(name="ask")
    def ask_other(x: ferryvm.i64) -> ferryvm.i64:
        found: int = other.call("outer", x)
        return found

    other = both("KeyError", "threaded")
    program = ferryvm.assemble(BOTH.format(tag="KeyError"), "both.fasm")
    instance = ferryvm.Engine("threaded").instantiate(program, hosts=[ask_other])
    with pytest.raises(NobodyAnswersError) as caught:
        instance.call("outer", 0)
    assert without_pcs(caught.value.__notes__) == FRAMES[3:] * 2


THROWN_AGAIN = """
.host fail ()
.function main
:try
    host fail
:end
    halt
:handler
    throw_record
.catch_record from try to end using handler
"""


def test_state_whose_exception_of_a_host_function_was_thrown_again_traps_when_loaded() -> None:
    @ferryvm.host
    def fail() -> None:
        raise OSError("disk")

    own = ferryvm.Engine("switch", hosts=[fail])
    execution = own.start(ferryvm.assemble(THROWN_AGAIN))
    with pytest.raises(OSError, match="disk"):
        execution.run()
    machine, _ = unpack_state(pack_state(execution.machine, None), Limits(), "saved")
    with pytest.raises(ferryvm.TrapError, match="trap: uncaught exception") as caught:
        Execution(own, machine, 0.0).run()
    assert caught.value.kind is Trap.UNCAUGHT_EXCEPTION
