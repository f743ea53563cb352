# SPDX-License-Identifier: Apache-2.0
"""Threads and processes with small stacks: compiled code stays within them, and says where it
cannot be entered."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.machine import host_stack

from ..tier import nightly

RECURSION = """
(define (f n) (if (= n 0) 0 (+ 1 (f (- n 1)))))
(define (g a b c d n)
  (if (= n 0) (+ a (* b (+ c d))) (+ (g b c d a (- n 1)) (* a (+ b (* c d))))))
(print! (f 50000) (g 1 2 3 4 20000))
"""
EXPECTED = "50000\n370015\n"

PROCESS = """
    import resource, sys, threading, ferryvm
    from ferryvm import Engine
    kib, backend, text = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    program = ferryvm.compile(text)
    def work():
        try:
            print(Engine(backend).start(program).run().output, end="")
        except ferryvm.FerryError as error:
            print(error)
    if kib:
        threading.stack_size(kib << 10)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    else:
        work()
"""


def run(kib: int, backend: str, limit: int | None = None, text: str = RECURSION) -> str:
    """What a program prints in a thread of so many KiB; 0: in the main thread. `limit`: of the
    process, in KiB."""
    command = [sys.executable, "-c", textwrap.dedent(PROCESS), str(kib), backend, text]
    if limit is not None:
        command = ["sh", "-c", f'ulimit -s {limit} && exec "$@"', "sh", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("kib", "backend"),
    [
        (64, "llvm"),
        nightly((128, "opencl")),
        nightly((256, "llvm")),
        nightly((64, "vliw")),
        (128, "threaded"),
    ],
)
def test_programs_run_in_threads_with_small_stacks(kib: int, backend: str) -> None:
    assert run(kib, backend) == EXPECTED


# With 64 KiB for its main thread Python itself does not start.
@pytest.mark.rotate("kib", most=1)
@pytest.mark.parametrize(("kib", "backend"), [(0, "llvm"), (128, "llvm")])
def test_programs_run_where_the_process_may_use_little_stack(kib: int, backend: str) -> None:
    assert run(kib, backend, limit=128) == EXPECTED


def test_thread_that_is_too_small_for_any_program_is_told_in_a_line() -> None:
    said = run(32, "llvm")
    assert said == (
        "this thread has a stack of 32 KiB; to run programs takes 64 KiB or more, "
        "see threading.stack_size\n"
    )


def test_code_whose_frames_have_no_room_leaves_at_once_and_the_interpreter_goes_on() -> None:
    engine = Engine("llvm")
    execution = engine.start(ferryvm.compile(RECURSION))
    found: list[str] = []

    def work() -> None:
        # As if the rest of the stack were in use.
        lowest, size = host_stack.limits()
        host_stack._thread.limits = lowest + size, size
        found.append(execution.run().output)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [EXPECTED]
    artifact = execution._last
    placements = artifact.journal.placements  # type: ignore[union-attr]  # a MixedArtifact
    done = [activity for placement in placements for _, activity in placement.activity()]
    assert all(activity.crowded == activity.entries and activity.stack for activity in done)
    assert sum(activity.crowded for activity in done) > 0


def test_room_that_frames_take_is_found_in_machine_code() -> None:
    # push rbp; sub rsp, 0x18; ...; ret; sub rsp, 0x2008
    code = b"\x55\x48\x83\xec\x18\xc3\x48\x81\xec\x08\x20\x00\x00\xc3"
    if not host_stack.IS_X86:
        code = b"\xff\x83\x00\xd1\xff\x0b\x40\xd1"  # sub sp, sp, #32; sub sp, sp, #2, lsl #12
    assert host_stack.frame_bytes(code, 0) == (0x2020 if host_stack.IS_X86 else 32 + 8192)


def test_more_values_that_live_across_calls_take_larger_frames() -> None:
    sizes = []
    for count in (2, 60):
        names = [f"v{number}" for number in range(count)]
        adds = " ".join(f"(define {name} (* (+ n {i}) n))" for i, name in enumerate(names))
        text = f"(define (f n) {adds} (if (= n 0) 0 (+ (f (- n 1)) {' '.join(names)}))) (f 300)"
        execution = Engine("llvm").start(ferryvm.compile(text))
        execution.run()
        placements = execution._last.journal.placements  # type: ignore[union-attr]  # as above
        sizes.append(max(activity.stack for p in placements for _, activity in p.activity()))
    assert sizes[1] > sizes[0]


def test_compilers_get_their_stack_whatever_the_user_has_set() -> None:
    found: list[int] = []
    usual = threading.stack_size(64 << 10)
    try:
        ready = threading.Event()

        def work() -> None:
            found.append(host_stack.limits()[1])
            ready.set()

        host_stack.start_with_headroom(work)
        assert ready.wait(10)
        assert threading.stack_size() == 64 << 10
    finally:
        threading.stack_size(usual)
    assert found[0] > host_stack.ROOMY - (64 << 10)


def test_a_handler_that_raises_ends_the_wait_for_a_thread_and_not_its_work() -> None:
    can_end, found, begun = threading.Event(), list[int](), threading.Event()

    def work() -> int:
        begun.set()
        assert can_end.wait(60)
        found.append(1)
        return 1

    def interrupt() -> None:
        assert begun.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        host_stack.in_thread(work)
    assert not found
    (left,) = host_stack._working
    can_end.set()
    left.wait()
    assert found == [1]
    assert left.result() == 1
    assert not host_stack._working


def test_exceptions_of_work_in_a_thread_are_raised_where_it_is_waited_for() -> None:
    with pytest.raises(ValueError, match="no"):
        host_stack.in_thread(lambda: int("no"))
