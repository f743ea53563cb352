# SPDX-License-Identifier: Apache-2.0
"""SIGINT stops the run under way, only that one, and whoever else waits for signals still hears."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import ferryvm
from ferryvm.engine import interrupt
from ferryvm.engine.mixed import MixedArtifact
from ferryvm.isa import I64
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.host import HostFunction
from ferryvm.program import Program, Signature

NOTHING = Signature()


LOOP = "static.get n\ni64.const 1\ni64.add\nstatic.set n\njump again\n"
ENDLESS = ferryvm.assemble(f".static n i64\n.function main () -> ()\n:again\n{LOOP}")


def endless_after(host: str) -> Program:
    """A program that calls a host function, then counts for ever."""
    return ferryvm.assemble(
        f".host {host} () -> ()\n.static n i64\n.function main () -> ()\nhost {host}\n:again\n{LOOP}"
    )


def progress(execution: ferryvm.Execution) -> int:
    """How far it is: its counter, or how often compiled code was entered, which keeps the counter
    to itself while it runs."""
    artifacts = [artifact for _, artifact in list(execution._prepared.values())]
    placements = [
        p for a in artifacts if isinstance(a, MixedArtifact) for p in a.journal.placements
    ]
    entries = sum(done.entries for placement in placements for _, done in placement.activity())
    return execution.machine.memory.statics[0] + entries


def interrupt_once_it_runs(execution: ferryvm.Execution) -> None:
    """Have this process interrupted when the execution has got further than it is now."""
    beyond = progress(execution)

    def kill() -> None:
        while progress(execution) == beyond:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=kill, daemon=True).start()


def test_signal_stops_a_run_again_and_again(backend: str) -> None:
    execution = ferryvm.Engine(backend).start(ENDLESS)
    seen = [0]
    for _ in range(5):
        interrupt_once_it_runs(execution)
        with pytest.raises(ferryvm.ProgramInterrupted):
            execution.run()
        seen.append(execution.machine.memory.statics[0])
    assert seen == sorted(set(seen))


def test_python_has_its_own_handler_back_after_a_run(backend: str) -> None:
    before = signal.getsignal(signal.SIGINT)
    descriptor = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(descriptor)
    ferryvm.run(ferryvm.compile("(define x 1)"), backend)
    assert signal.getsignal(signal.SIGINT) is before
    after = signal.set_wakeup_fd(descriptor)
    assert after == descriptor


def test_signal_during_a_nested_run_stops_it_and_through_it_the_outer_one(backend: str) -> None:
    nested = ferryvm.Engine(backend).start(ENDLESS)

    def act() -> None:
        interrupt_once_it_runs(nested)
        nested.run()

    outer = ferryvm.Engine(backend, hosts={"nest": HostFunction("nest", NOTHING, act)})
    execution = outer.start(endless_after("nest"))
    with pytest.raises(ferryvm.ProgramInterrupted):
        execution.run()
    assert nested.machine.memory.statics[0] > 0
    assert execution.machine.memory.statics[0] == 0
    assert execution.machine.control.pc == 0


def test_outer_run_is_stopped_after_a_nested_run_has_ended(backend: str) -> None:
    finished = ferryvm.Engine(backend).start(ferryvm.compile("(define x 1)"))

    def act() -> None:
        finished.run()
        interrupt_once_it_runs(execution)

    engine = ferryvm.Engine(backend, hosts={"nest": HostFunction("nest", NOTHING, act)})
    execution = engine.start(endless_after("nest"))
    with pytest.raises(ferryvm.ProgramInterrupted):
        execution.run()
    assert execution.machine.memory.statics[0] > 0


def test_signal_that_comes_as_a_run_ends_is_raised_then_and_does_not_stop_the_next() -> None:
    def act(bits: int) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return bits

    late = HostFunction("late", Signature((I64,), (I64,)), act)
    text = ".host late (i64) -> (i64)\n.function main () -> ()\ni64.const 7\nhost late\nhalt\n"
    engine = ferryvm.Engine("switch", hosts={"late": late})
    execution = engine.start(ferryvm.assemble(text))
    with pytest.raises(KeyboardInterrupt) as caught:  # without a jump nothing polls
        execution.run()
    assert not isinstance(caught.value, ferryvm.ProgramInterrupted)
    assert execution.run().value == 7
    count = "(define n 0) (while (< n 100000) (set! n (+ n 1))) n"
    for _ in range(20):
        assert ferryvm.run(ferryvm.compile(count), "switch").value == 100000


def test_signal_that_comes_as_fuel_runs_out_is_not_lost(backend: str) -> None:
    """Else Ctrl-C would be for nothing where a program is run a few instructions at a time."""

    def act() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    late = HostFunction("late", NOTHING, act)
    text = ".host late () -> ()\n.function main () -> ()\nhost late\nnop\nnop\nhalt\n"
    execution = ferryvm.Engine(backend, hosts={"late": late}).start(ferryvm.assemble(text))
    with pytest.raises(ferryvm.ProgramInterrupted):
        execution.run(fuel=2)
    assert execution.machine.control.pc == 2
    assert execution.instructions == 2
    assert execution.run(fuel=1).status is Status.FUEL
    assert execution.run().status is Status.HALT


@pytest.mark.nightly
def test_signal_is_seen_where_many_files_are_open() -> None:
    """`select` would take no descriptor past 1023."""
    program = (
        "import os, resource, signal, threading, ferryvm\n"
        "most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 1200), most))\n"
        "held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1050)]\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "execution = ferryvm.Engine('switch').start(ferryvm.compile('(while #t 0)'))\n"
        "kill = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Timer(0.5, kill).start()\n"
        "try:\n"
        "    execution.run()\n"
        "except ferryvm.ProgramInterrupted:\n"
        "    print('interrupted')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # threads and fork: the point
def test_forked_child_is_stopped_by_its_own_signals() -> None:
    ferryvm.run(ferryvm.compile("(define x 1)"), "switch")  # starts the parent's watcher
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        outcome = b"failed"
        try:
            execution = ferryvm.Engine("switch").start(ENDLESS)
            interrupt_once_it_runs(execution)
            execution.run()
        except ferryvm.ProgramInterrupted:
            outcome = b"interrupted"
        finally:
            os.write(writer, outcome)
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert pipe.read() == b"interrupted"
    assert os.waitpid(child, 0)[1] == 0
    assert ferryvm.run(ferryvm.compile("(+ 1 2)"), "switch").value == 3


def test_signal_of_the_past_does_not_stop_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watcher may read it late: here it does not read at all."""
    monkeypatch.setattr(interrupt, "start", lambda _watch: None)
    watcher = interrupt._Watcher()
    monkeypatch.setattr(interrupt, "_watcher", watcher)
    control = ControlBlock()
    watcher._resident[0] = control
    os.write(watcher.writer, bytes([signal.SIGINT]))
    interrupt.settle(control)
    watcher._read()
    assert control.interrupt == 0
    os.close(watcher.reader)
    os.close(watcher.writer)


FORKING = """
import os, signal, sys
import ferryvm
from ferryvm.engine import interrupt
reader, writer = os.pipe()
os.set_blocking(writer, False)
signal.set_wakeup_fd(writer)
instance = ferryvm.Engine("threaded").instantiate(ferryvm.assemble(
    ".export f\\n.function begin\\nhalt\\n.function f () -> (i64)\\ni64.const 7\\nreturn"))
assert instance.f() == 7
os.close(writer)
child = os.fork()
if child == 0:
    os._exit(0 if interrupt._watcher is None and instance.f() == 7 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

FREED = """
import gc, os, signal, sys
import ferryvm
instance = ferryvm.Engine("threaded").instantiate(ferryvm.assemble(
    ".export f\\n.function begin\\nhalt\\n.function f () -> (i64)\\ni64.const 7\\nreturn"))
assert instance.f() == 7
del instance
gc.collect()
child = os.fork()
if child == 0:
    opened = [os.open(os.devnull, os.O_WRONLY) for _ in range(4)]
    os._exit(0 if signal.set_wakeup_fd(-1) not in opened else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("text", [FORKING, FREED], ids=["earlier-closed", "all-freed"])
def test_fork_keeps_no_closed_wakeup_descriptor(text: str) -> None:
    done = subprocess.run(
        # From Python 3.12 on a fork of a process with threads, such as the watcher, warns.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", text],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
