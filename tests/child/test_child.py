# SPDX-License-Identifier: Apache-2.0
"""Child processes: what they answer, and how each way in which they end is told."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferryvm.child import Child, ending, environment, run
from ferryvm.deadline import Deadline
from ferryvm.service import ClosedError, EndedError, Service

ECHO = "from ferryvm.child import serve; serve(lambda message: message[::-1])"
ODD = """
import os, sys, time
from ferryvm.child import serve
def answer(message):
    print("no answer")
    if message == b"die":
        sys.stderr.write("so long")
        sys.stderr.flush()
        os._exit(3)
    if message == b"hang":
        time.sleep(1000)
    return str(os.getpid()).encode()
serve(answer)
"""

FORKING = f"""
import os, sys
from ferryvm.child import Child, environment
from ferryvm.service import Service
service = Service(lambda: Child([sys.executable, "-c", {ODD!r}], environment()))
first = service.request(b"", 60)
forked = os.fork()
if not forked:
    os._exit(0 if service.child is None else 1)
assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
assert service.request(b"", 60) == first
service.close()
"""
"""A process of its own: what tests have mapped can be more than a fork may have."""


def python(text: str) -> Child:
    return Child([sys.executable, "-c", text], environment())


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service(lambda: python(ODD))
    yield made
    made.close()


@pytest.mark.parametrize(
    ("code", "text"), [(0, "exit code 0"), (3, "exit code 3"), (-9, "SIGKILL"), (-77, "signal 77")]
)
def test_an_ending_is_told_by_exit_code_or_signal(code: int, text: str) -> None:
    assert ending(code) == text


def test_a_command_is_run_to_its_end() -> None:
    done = run(["sh", "-c", "echo out; echo err >&2; exit 4"])
    assert (done.code, done.output, done.errors) == (4, b"out\n", "err\n")


def test_a_command_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    with pytest.raises(TimeoutError):
        run(["sh", "-c", f"sleep 1000 & echo $! > {file}; wait"], 0.5)
    pid = int(file.read_text())
    for _ in range(500):
        if not is_running(pid) or "Z" in Path(f"/proc/{pid}/stat").read_text():
            return
        time.sleep(0.01)
    pytest.fail("it is still there")


def test_a_command_that_is_not_there_is_an_error_of_the_system() -> None:
    with pytest.raises(FileNotFoundError):
        run(["/nonexistent/command"])


@pytest.mark.parametrize("size", [0, 1, 70_000, 3_000_000])
def test_messages_of_any_size_are_answered(size: int) -> None:
    child, message = python(ECHO), bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    for _ in range(2):
        assert child.request(message, Deadline(60)) == message[::-1]
    child.close_input()
    assert child.finish(60) == 0
    child.close()


def test_lines_are_whole_and_what_is_not_finished_waits() -> None:
    child = python("print('a'); print('b', end='', flush=True); input(); print('c')")
    lines: list[bytes] = []
    while not lines:
        assert child.wait_for_output(Deadline(60))
        lines += child.lines()
    assert lines == [b"a"]
    child.send(b"\n")
    while not child.has_closed:
        assert child.wait_for_output(Deadline(60))
        lines += child.lines()
    assert lines == [b"a", b"bc"]
    assert child.finish(60) == 0
    child.close()


def test_a_child_has_ended_though_what_it_started_keeps_its_output_open() -> None:
    child = python("import subprocess; print(subprocess.Popen(['sleep', '1000']).pid, flush=True)")
    lines: list[bytes] = []
    while not child.has_closed:
        assert child.wait_for_output(Deadline(60))
        lines += child.lines()
    assert child.finish(60) == 0
    os.kill(int(lines[0]), signal.SIGKILL)
    child.close()


def test_a_child_whose_time_is_over_gives_no_answer() -> None:
    child = python("import time; time.sleep(1000)")
    with pytest.raises(TimeoutError):
        child.request(b"", Deadline(0.3))
    child.kill()
    child.close()


def test_what_it_inherits_is_there_and_it_is_cleaned_up(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        text = f"import os; os.write({file.fileno()}, b'seen')"
        done: list[int] = []
        command = [sys.executable, "-c", text]
        child = Child(command, descriptors=[file.fileno()], clean_up=lambda: done.append(1))
        assert child.finish(60) == 0
    assert (tmp_path / "file").read_bytes() == b"seen"
    child.close()
    assert done == [1]


def test_one_child_answers_until_it_has_answered_enough(service: Service) -> None:
    pids = [service.request(b"", 60, most=2) for _ in range(5)]
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]
    assert not is_running(int(pids[0]))


def test_a_child_that_ends_is_told_and_followed_by_another(service: Service) -> None:
    first = service.request(b"", 60)
    with pytest.raises(EndedError, match=r"^exit code 3$") as caught:
        service.request(b"die", 60)
    assert caught.value.code == 3
    assert caught.value.said.endswith("so long")
    assert service.request(b"", 60) != first


def test_a_child_that_hangs_is_ended_and_followed_by_another(service: Service) -> None:
    first = service.request(b"", 60)
    with pytest.raises(TimeoutError):
        service.request(b"hang", 0.3)
    assert not is_running(int(first))
    assert service.request(b"", 60) != first


def test_who_waits_for_an_answer_is_told_when_a_service_is_closed(service: Service) -> None:
    service.request(b"", 60)
    threading.Timer(0.3, service.close).start()
    with pytest.raises(ClosedError):
        service.request(b"hang", 60)
    with pytest.raises(ClosedError):
        service.request(b"", 60)


def test_a_forked_process_has_no_child_of_its_parent() -> None:
    done = run([sys.executable, "-c", FORKING], 60)
    assert done.code == 0, done.errors


def test_a_service_whose_child_cannot_be_started_says_so() -> None:
    service = Service(lambda: Child(["/nonexistent/command"]))
    with pytest.raises(FileNotFoundError):
        service.request(b"")
