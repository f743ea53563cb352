# SPDX-License-Identifier: Apache-2.0
"""The floating-point environment is ours while we compute, and the caller's before, after, and
where others' code is called."""

from __future__ import annotations

import functools
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.engine import Engine, Execution
from ferryvm.float_environment import callers, ours
from ferryvm.hooks import PlacementEvent, hookimpl
from ferryvm.isa.type import F32, F64, format_value, to_python
from ferryvm.machine.host import HostFunction
from ferryvm.plugin import Plugin
from ferryvm.program import Program, Signature
from ferryvm.registry import Registry
from ferryvm.testing.environment import (
    ENVIRONMENTS,
    TRAPPED,
    control_word,
    environment,
    set_control_word,
)

from ..tier import nightly

FLAGS = ENVIRONMENTS["flags"] & ~ENVIRONMENTS["usual"]
BACKENDS = ("reference", "switch", "threaded", "llvm", "vliw", "opencl")
ODD = {**ENVIRONMENTS, "trapped": TRAPPED}
TURNS = [
    (name, word, BACKENDS[(number + turn) % len(BACKENDS)])
    for number, (name, word) in enumerate(ODD.items())
    for turn in (0, 3)
]
"""Each environment on two backends, each backend in two environments or more."""

PROGRAM = """
.host print_f64 (f64)
.host print_f32 (f32)
.function main
.local i i64
.local halved f64
.local sum f64
.local small f32
  f64.const bits:0x0010000000000002
  local.set halved
  f32.const bits:0x00800002
  local.set small
:next
  local.get halved            ; subnormal from the first one on, and read as such by the next
  f64.const 0.5
  f64.mul
  local.set halved
  local.get halved
  host print_f64
  local.get small
  f32.const 0.5
  f32.mul
  local.set small
  local.get small
  host print_f32
  local.get small
  f64.promote_f32
  host print_f64
  local.get sum
  f64.const 0.1
  f64.add
  local.set sum
  local.get sum
  host print_f64
  local.get sum
  f64.const -7.3
  f64.div
  host print_f64
  local.get sum
  f64.sqrt
  host print_f64
  local.get sum
  f32.demote_f64
  f32.const 3.0
  f32.div
  host print_f32
  local.get i
  i64.const 0x7fffffffffffff3f
  i64.xor
  f32.convert_i64_s
  host print_f32
  local.get i
  i64.const 1
  i64.add
  local.set i
  local.get i
  i64.const 6
  i64.lt_s
  jump_if next
  local.get sum
  halt
"""
SPIN = ".function main\n:again\n  jump again\n"
TRAP = ".function main\n  trap\n"


def here() -> int:
    """The control word without sticky flags: Python's own arithmetic outside of a run sets them."""
    return control_word() & ~FLAGS


@functools.cache
def program(text: str = PROGRAM) -> Program:
    return ferryvm.assemble(text)


@functools.cache
def expected() -> tuple[str, int | None]:
    result = ferryvm.run(program(), "reference")
    return result.output, result.bits


@functools.cache
def engine(backend: str) -> Engine:
    return Engine(backend)


@pytest.mark.parametrize(("name", "word", "backend"), TURNS)
def test_results_are_the_same_in_every_environment(name: str, word: int, backend: str) -> None:
    execution, usual = engine(backend).start(program()), expected()
    with environment(word):
        result = execution.run()
        after = here()
    assert (result.output, result.bits) == usual
    assert after == word & ~FLAGS, "the caller's environment changed"


# Loading others' plugins, which an engine does, is their own code in the caller's environment: it
# sets flags, and would end the process where exceptions are trapped.
@pytest.mark.parametrize("word", ENVIRONMENTS.values(), ids=ENVIRONMENTS.keys())
def test_everything_from_text_to_result_may_be_done_in_an_odd_environment(word: int) -> None:
    usual = expected()
    with environment(word):
        result = ferryvm.run(ferryvm.assemble(PROGRAM), "llvm")
        after = here()
    assert (result.output, result.bits, after) == (*usual, word & ~FLAGS)


@pytest.mark.parametrize("backend", BACKENDS)
def test_thread_started_in_an_odd_environment_computes_in_ours(backend: str) -> None:
    found: list[object] = []

    def work() -> None:
        found.append(here())
        result = engine(backend).start(program()).run()
        found.extend([(result.output, result.bits), here()])

    thread = threading.Thread(target=work)
    word = ENVIRONMENTS["flush-up"]
    with environment(word):
        thread.start()
        thread.join()
    assert found[1] == expected()
    assert found[0] == found[2] == word, "a thread inherits the environment of its creator"


@pytest.mark.nightly
def test_background_compilation_folds_constants_in_ours() -> None:
    """The compiling thread inherits the environment of the thread that has the first job for it."""
    code = """
        import ferryvm, sys
        from ferryvm.testing.environment import ENVIRONMENTS, set_control_word
        set_control_word(ENVIRONMENTS["flush-up"])
        text = '''
        (define total 0.0)
        (define (third x) (/ x 3.0))
        (define i 0)
        (while (< i 300000) (set! total (+ (third 0.1) (* 1e-310 0.5))) (set! i (+ i 1)))
        (print! total)
        '''
        print(ferryvm.run(ferryvm.compile(text)).output)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert float(found.stdout) == 0.1 / 3


@pytest.mark.nightly
@pytest.mark.parametrize("first", [nightly("ferryvm"), "the caller"])
def test_workers_of_a_device_compute_in_ours(first: str) -> None:
    """PoCL's device `pthread` runs kernels in threads that it starts when it is first used, by us
    or by whoever uses OpenCL before, and which inherit the environment of that moment."""
    pytest.importorskip("pyopencl")
    code = """
        import sys, pyopencl
        from ferryvm.testing.environment import ENVIRONMENTS, set_control_word
        text, first = sys.argv[1:]
        set_control_word(ENVIRONMENTS["flush-up"])
        if first != "ferryvm":
            found = [d for p in pyopencl.get_platforms() for d in p.get_devices()]
            queue = pyopencl.CommandQueue(pyopencl.Context(found[:1]))
        import ferryvm
        from ferryvm.backend import BackendError
        from ferryvm.engine import Engine
        from ferryvm_backends.opencl.device import find
        try:
            find(":pthread")
        except BackendError:
            sys.exit(77)
        print(Engine("opencl", device=":pthread").start(ferryvm.assemble(text)).run().output)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), PROGRAM, first]
    environment = {**os.environ, "POCL_DEVICES": "basic pthread"}
    found = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env=environment
    )
    if found.returncode == 77:
        pytest.skip("there is no device `pthread` of PoCL")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout == expected()[0] + "\n"


@pytest.mark.parametrize("word", ODD.values(), ids=ODD.keys())
def test_literals_are_read_and_values_written_in_ours(word: int) -> None:
    text = ".function main\n  f32.const 1.1754942e-38\n  f64.const 0.30000000000000004\n  halt\n"
    skiff = "(print! 5e-324 0.1 (f32 1e-45) (* 3.0 0.1))"
    usual = ferryvm.assemble(text).code.tobytes(), ferryvm.compile(skiff).code.tobytes()
    shown = ferryvm.disassemble(ferryvm.assemble(text))
    values = [(F32, 1), (F32, 0x3DCCCCCD), (F64, 1), (F64, 0x3FB999999999999A)]
    texts = [format_value(*value) for value in values]
    numbers = [to_python(*value).hex() for value in values]  # type: ignore[union-attr]  # floats
    with environment(word):
        read = ferryvm.assemble(text).code.tobytes(), ferryvm.compile(skiff).code.tobytes()
        again = ferryvm.disassemble(ferryvm.assemble(text))
        written = [format_value(*value) for value in values]
        met = [to_python(*value) for value in values]
    assert (read, again, written) == (usual, shown, texts)
    assert [float(one).hex() for one in met] == numbers


# --- others' code -------------------------------------------------------------------------------


def host_engine(action: Callable[..., int | None], backend: str) -> tuple[Engine, Program]:
    host = HostFunction("mine", Signature(), action)
    text = ".host mine ()\n" + PROGRAM.replace("  host print_f32", "  host mine\n  host print_f32")
    return Engine(backend, hosts={"mine": host}), ferryvm.assemble(text)


@pytest.mark.parametrize("backend", BACKENDS)
def test_host_functions_and_outputs_see_the_callers_environment(backend: str) -> None:
    seen: set[int] = set()
    made, text = host_engine(lambda: seen.add(here()), backend)
    execution, written = made.start(text), []

    def write(data: bytes) -> None:
        seen.add(here())
        written.append(data)

    execution.output = write
    with environment(ENVIRONMENTS["flush-up"]):
        execution.run()
    assert seen == {ENVIRONMENTS["flush-up"]}
    assert b"".join(written).decode() == expected()[0]


def test_environment_that_a_host_function_sets_stays_the_callers() -> None:
    words = itertools.cycle(list(ENVIRONMENTS.values())[1:4])
    last: list[int] = []

    def change() -> None:
        assert not last or here() == last[-1]
        last.append(next(words))
        set_control_word(last[-1])

    made, text = host_engine(change, "threaded")
    execution = made.start(text)
    with environment(ENVIRONMENTS["usual"]):
        result = execution.run()
        after = here()
    assert result.output == expected()[0]
    assert len(last) == 18
    assert after == last[-1]


def test_host_function_that_runs_a_program_has_its_own_callers_environment() -> None:
    seen: list[object] = []

    def nested() -> None:
        seen.append(engine("switch").start(program()).run().output)
        seen.append(here())

    made, text = host_engine(nested, "reference")
    execution = made.start(text)
    with environment(ENVIRONMENTS["zero"]):
        assert execution.run().output == expected()[0]
    assert set(seen) == {expected()[0], ENVIRONMENTS["zero"]}


def _trap(backend: str) -> None:
    with pytest.raises(ferryvm.TrapError):
        engine(backend).start(program(TRAP)).run()


def _fuel(backend: str) -> None:
    engine(backend).start(program(SPIN)).run(fuel=1000)


def _interrupt(backend: str) -> None:
    execution = engine(backend).start(program(SPIN))
    threading.Timer(0.05, setattr, (execution.machine.control, "interrupt", 1)).start()
    with pytest.raises(ferryvm.ProgramInterrupted):
        execution.run()


def _ctrl_c(backend: str) -> None:
    execution = engine(backend).start(program(SPIN))
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(ferryvm.ProgramInterrupted):
        execution.run()


def _exception(backend: str) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    made, text = host_engine(fail, backend)
    with pytest.raises(ZeroDivisionError):
        made.start(text).run()


def _refusal(backend: str) -> None:
    with pytest.raises(ferryvm.FerryError):
        engine(backend).start(program()).run(fuel=-1)


ENDS = (_trap, _fuel, _interrupt, _ctrl_c, _exception, _refusal)


@pytest.mark.parametrize(
    ("end", "backend"),
    [(e, BACKENDS[(n + turn) % 6]) for n, e in enumerate(ENDS) for turn in (0, 3)],
)
def test_environment_is_the_callers_after_every_kind_of_end(
    end: Callable[[str], None], backend: str
) -> None:
    # Not with exceptions trapped: pytest computes floats, too.
    word = ENVIRONMENTS["flush-up"]
    with environment(word):
        end(backend)
        after = here()
    assert after == word


def test_sticky_flags_of_a_run_do_not_reach_the_caller() -> None:
    execution = engine("threaded").start(program())
    with environment(ENVIRONMENTS["usual"]):
        execution.run()
        after = control_word()
    assert after == ENVIRONMENTS["usual"], "no flag is set, though results were rounded"


class _Listening:
    def __init__(self) -> None:
        self.seen: set[int] = set()

    @hookimpl
    def ferryvm_placement(self, event: PlacementEvent) -> None:
        self.seen.add(here())


def test_hooks_see_the_callers_environment() -> None:
    listening, registry = _Listening(), Registry()
    registry.plugins.register(listening, Plugin("listening"))
    text = "(define i 0)\n(while (< i 100000) (set! i (+ i 1)))"
    with environment(ENVIRONMENTS["up"]):
        Engine("llvm", registry=registry).start(ferryvm.compile(text)).run()
    # In the compiling thread it is the one that this thread was started with.
    assert listening.seen <= {*ENVIRONMENTS.values()}
    assert listening.seen


def test_blocks_may_be_nested_either_way() -> None:
    up, usual = ENVIRONMENTS["up"], ENVIRONMENTS["usual"]
    with environment(up):
        with ours(), ours():
            with callers():
                with callers():
                    inner = here()
                with ours():
                    own = here()
                again = here()
            back = here()
        after = here()
    assert (inner, own, again, back, after) == (up, usual, up, usual, up)


def test_execution_that_is_copied_runs_in_ours_as_well() -> None:
    execution: Execution = engine("switch").start(program())
    execution.run(fuel=40)
    with environment(ENVIRONMENTS["down"]):
        result = execution.fork().run()
    assert result.output == expected()[0]
