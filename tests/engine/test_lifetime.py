# SPDX-License-Identifier: Apache-2.0
"""Code goes with what can enter it, compilations with the process, which ends as it would
without."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import textwrap
import weakref
from pathlib import Path

import pytest

import ferryvm
from ferryvm.backend import Code
from ferryvm.backend import Options as CompileOptions
from ferryvm.engine.journal import Event
from ferryvm.region.region import Region

from ..double.compiler import Gate, compile_by_llvm, with_compiler
from .mixing import (
    noticed,
    placements,
    policy,
    start,
)

LOOP = ferryvm.compile("(define i 0) (while (< i 3000) (set! i (+ i 1))) i")


def test_code_goes_with_the_last_execution_that_can_enter_it() -> None:
    codes: list[weakref.ref[Code]] = []

    def compile_(region: Region, options: CompileOptions) -> Code:
        code = compile_by_llvm(region, options)
        codes.append(weakref.ref(code))
        return code

    execution = start(LOOP, policy("mine"), with_compiler(compile_))
    execution.run()
    again = execution.again()
    del execution
    gc.collect()
    assert codes[0]() is not None
    again.run()
    del again
    gc.collect()
    assert codes[0]() is None


def _mapped() -> int:
    """Bytes of address space of this process that may be executed."""
    total = 0
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        span, access, *_ = line.split()
        if "x" in access:
            first, _, last = span.partition("-")
            total += int(last, 16) - int(first, 16)
    return total


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="tells of mapped memory")
def test_engines_that_are_gone_have_left_no_code_behind() -> None:
    def once() -> None:
        execution = start(LOOP, policy())
        assert execution.run().value == 3000
        assert placements(execution)[0].state == "installed"

    for _ in range(3):
        once()
    growth = []
    while len(growth) < 3 and (not growth or growth[-1] > 0):
        # What an earlier test has begun in the background may be loaded meanwhile, but not each
        # time.
        gc.collect()
        before = _mapped()
        for _ in range(50):
            once()
        gc.collect()
        growth.append(_mapped() - before)
    assert min(growth) <= 0


def test_a_program_that_is_gone_is_not_compiled_any_more() -> None:
    gate = Gate()
    found = with_compiler(gate.compile)
    first = start(LOOP, policy("mine", background=True), found)
    first.run()
    assert gate.began.wait(60)
    second = start(LOOP, policy("mine", background=True), found)
    second.run()  # its job waits behind the first one
    del second
    gc.collect()
    third = start(LOOP, policy("mine", background=True), found)
    installed = noticed(third, Event.INSTALLED)
    third.run()
    gate.may.set()
    assert installed.wait(60)
    assert gate.regions == ["main/loop.1"] * 2


ENDING = """
    import sys, threading
    import ferryvm
    from ferryvm.backend import Compiler
    from ferryvm.engine import Engine
    from ferryvm.hooks import BackendEntry, hookimpl
    from ferryvm.policy import Choice, Policy, Profile, Rule
    from ferryvm.registry import Registry

    began = threading.Event()
    llvm = Registry().get("llvm")

    class Slow(Compiler):
        name, version = "slow", "1"
        def compile(self, region, options):
            began.set()
            for _ in range(3):
                code = llvm.compile(region, options)
            print("compiled", flush=True)
            return code

    class Plugin:
        ferryvm_backends = staticmethod(hookimpl(lambda: [BackendEntry("slow", Slow)]))

    registry = Registry()
    registry.register(Plugin, "slow")
    chosen = Policy(profile=Profile(True, 10, 10, 1), rules=(Rule(backends=(Choice("slow"),)),))
    text = "(define i 0) (while (< i 100) (set! i (+ i 1))) (define (f n) (if (< n 1) 0 (f (- n 1))))"
    execution = Engine(policy=chosen, registry=registry).start(ferryvm.compile(text + "(f 90)"))
    execution.run()
    began.wait()
    {ending}
"""


@pytest.mark.rotate("code", most=1)
@pytest.mark.parametrize(
    ("ending", "code", "error"),
    [
        ("", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("raise ValueError('its own')", 1, "ValueError: its own"),
    ],
)
def test_a_process_ends_as_it_would_while_code_is_being_compiled(
    ending: str, code: int, error: str
) -> None:
    script = textwrap.dedent(ENDING).format(ending=ending)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code
    assert done.stdout == "compiled\n"
    assert done.stderr.strip().endswith(error)
    assert bool(done.stderr) == bool(error)


INTERRUPTED = ENDING.format(
    ending="""
    import os, signal, time
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print("ended")
    me = threading.main_thread()
    def kill():
        while me.is_alive():
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=kill, daemon=True).start()
"""
).replace("for _ in range(3):", "while True:")


def test_ctrl_c_ends_a_process_that_waits_for_a_compiler_at_its_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "ended\n", "")


LATE = """
    import atexit
    import ferryvm
    from ferryvm.engine import Engine
    from ferryvm.policy import Choice, Options, Policy, Profile, Rule

    choice = Choice("llvm", Options(background=False))
    chosen = Policy(profile=Profile(True, 10, 10, 1), rules=(Rule(backends=(choice,)),))
    program = ferryvm.compile("(define i 0) (while (< i 100) (set! i (+ i 1))) i")

    def run():
        print(Engine(policy=chosen).start(program).run().value, flush=True)

    atexit.register(run)
    {first}
    atexit.register(run)
"""


@pytest.mark.nightly
def test_programs_run_at_the_end_of_the_process_too() -> None:
    for first in ("", "run()"):
        script = textwrap.dedent(LATE).format(first=first)
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == "100\n" * (3 if first else 2)
