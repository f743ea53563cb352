# SPDX-License-Identifier: Apache-2.0
"""Signals and closed descriptors at any moment: one line, the right exit, nothing lost or left."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

TAKING_SIGNALS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.{hangup})
from ferryvm.cli import main
main()
"""
"""A command that inherits no ignored signal, as from a shell's background."""

AT_AN_IMPORT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from ferryvm.cli import main, termination
wanted, seen = int(sys.argv.pop(1)), 0
def hook(event, given):
    global seen
    if event == "import":
        seen += 1
        if seen == wanted and signal.getsignal(signal.SIGINT) is termination._on_signal:
            os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(hook)
main()
"""
"""A command that gets SIGINT at its n-th import."""

IMPORTS = 500
"""About as many as `ferry run` makes."""

SPIN = "(define n 0)\n(print! 1)\n(while #t (set! n (+ n 1)))\n"


@pytest.fixture
def spin(tmp_path: Path) -> Path:
    path = tmp_path / "spin.skiff"
    path.write_text(SPIN)
    return path


def started(*arguments: object, hangup: str = "SIG_DFL") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", TAKING_SIGNALS.format(hangup=hangup)]
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def running(spin: Path) -> Iterator[subprocess.Popen[str]]:
    """An endless program that has printed something."""
    process = started("run", spin)
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.rotate("moment", most=1)
@pytest.mark.parametrize("moment", random.Random(5).sample(range(1, IMPORTS), 4))
def test_ctrl_c_at_any_import_is_one_line(moment: int, tmp_path: Path) -> None:
    path = tmp_path / "p.skiff"
    path.write_text("(print! 7)")
    done = subprocess.run(
        [sys.executable, "-c", AT_AN_IMPORT, str(moment), "run", str(path)],
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    if done.returncode == 0:  # it makes fewer imports
        assert (done.stdout, done.stderr) == ("7\n", "")
    else:
        assert done.returncode == 130
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("ferry: interrupted")


def test_what_is_imported_before_signals_are_taken_is_next_to_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); import ferryvm.cli; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == [
        "__future__",
        "ferryvm",
        "ferryvm.cli",
        "ferryvm.cli.termination",
    ]


@pytest.mark.rotate("name", most=1)
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_writes_state_and_trace_and_ends_the_process_as_itself(
    spin: Path, tmp_path: Path, name: str
) -> None:
    state, trace = tmp_path / "s.ferry", tmp_path / "t.json"
    process = started("run", spin, "--save", state, "--trace", trace)
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    number = signal.Signals[name]
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == -number
    assert err.startswith(f"ferry: state saved in {state}\n")
    assert "Traceback" not in err
    assert trace.read_text().endswith("]\n")
    resumed = subprocess.run(
        [sys.executable, "-m", "ferryvm.cli", "resume", str(state), "--fuel", "100"],
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert resumed.returncode == 0
    assert "out of fuel" in resumed.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.ferry", "spin.skiff", "t.json"]


def test_sigterm_without_anything_to_write_is_one_line(running: subprocess.Popen[str]) -> None:
    running.send_signal(signal.SIGTERM)
    _, err = running.communicate(timeout=120)
    assert (running.returncode, err) == (-signal.SIGTERM, "ferry: ended by SIGTERM\n")


def test_sighup_that_was_ignored_stays_ignored(spin: Path) -> None:
    process = started("run", spin, hangup="SIG_IGN")
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (-signal.SIGTERM, "ferry: ended by SIGTERM\n")


def test_a_second_signal_ends_a_host_call_that_does_not_return(tmp_path: Path) -> None:
    path = tmp_path / "flood.skiff"
    path.write_text("(while #t (print! 1))")
    reader, writer = os.pipe()
    command = [sys.executable, "-c", TAKING_SIGNALS.format(hangup="SIG_DFL")]
    process = subprocess.Popen(
        [*command, "run", str(path)], stdout=writer, stderr=subprocess.PIPE, text=True
    )
    try:
        os.close(writer)
        assert os.read(reader, 1) == b"1"  # it runs, and soon the pipe is full: nobody reads on
        process.send_signal(signal.SIGINT)
        while process.poll() is None:  # the next one comes before, or after, the first was seen
            process.send_signal(signal.SIGINT)
            try:
                process.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
        _, err = process.communicate()
        assert process.returncode == 130
        assert "Traceback" not in err
    finally:
        process.kill()
        process.wait()
        os.close(reader)


@pytest.mark.rotate("name", most=1)
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_one_signal_saves_a_program_whose_output_nobody_reads(tmp_path: Path, name: str) -> None:
    """It stands at the call that prints: resumed it prints what follows, nothing twice."""
    path, state, number = tmp_path / "flood.skiff", tmp_path / "s.ferry", signal.Signals[name]
    path.write_text("(define n 0) (while #t (set! n (+ n 1)) (print! n))")
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    code = TAKING_SIGNALS.format(hangup="SIG_DFL")
    command = [sys.executable, "-c", code, "run", str(path), "--save", str(state)]
    with open(reader, "rb") as output:
        with subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE, text=True) as process:
            os.close(writer)
            output.peek()  # it runs
            _wait_until_asleep(process.pid)
            process.send_signal(number)
            _, err = process.communicate(timeout=120)
        printed = [*map(int, output.read().split())]
    assert process.returncode == (130 if name == "SIGINT" else -number)
    assert err.startswith(f"ferry: state saved in {state}\n")
    assert "flood.skiff:1:" in err
    resumed = subprocess.run(
        [sys.executable, "-m", "ferryvm.cli", "resume", str(state), "--fuel", "1000"],
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    printed += map(int, resumed.stdout.split())
    assert printed == [*range(1, len(printed) + 1)]
    assert resumed.stdout


def _wait_until_asleep(pid: int) -> None:
    """Return when a process has waited for a tenth of a second."""
    asleep = 0
    while asleep < 10:
        time.sleep(0.01)
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if status == "S" else 0


def test_a_stopped_run_goes_on(running: subprocess.Popen[str]) -> None:
    running.send_signal(signal.SIGSTOP)
    _, status = os.waitpid(running.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    running.send_signal(signal.SIGCONT)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=120)
    assert running.returncode == 130
    assert "interrupted" in err


def test_who_reads_no_more_ends_the_command_by_sigpipe() -> None:
    with started("isa") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(120) == -signal.SIGPIPE
        assert process.stderr is not None
        assert process.stderr.read() == ""


PROGRAM = "(write-byte! 2) (define i 0) (while (< i 10) (begin (set! i (+ i 1)) (print! i)))"


@pytest.mark.nightly
def test_closed_descriptors_are_opened_before_any_other_file(tmp_path: Path) -> None:
    """Else the program's output would go into the pipe that signals wake a thread by."""
    path = tmp_path / "p.skiff"
    path.write_text(PROGRAM)
    shell = f"{sys.executable} -m ferryvm.cli run {path}"
    for closed in ("<&- >&- 2>&-", "<&- >&-", ">&-"):
        done = subprocess.run(
            f"{shell} {closed}",
            check=False,
            shell=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 2
        expected = "ferry: output cannot be written: Bad file descriptor\n"
        assert done.stderr == ("" if "2>&-" in closed else expected)
    done = subprocess.run(
        f"{shell} <&- 2>&-", check=False, shell=True, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0
    assert done.stdout == "\2" + "".join(f"{i}\n" for i in range(1, 11))


def test_a_program_that_prints_nothing_needs_no_output(tmp_path: Path) -> None:
    path = tmp_path / "p.skiff"
    path.write_text("(+ 1 2)")
    shell = f"{sys.executable} -m ferryvm.cli run {path} <&- >&-"
    done = subprocess.run(shell, check=False, shell=True, capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_state_is_saved_where_output_can_not_be_written(tmp_path: Path) -> None:
    path, state = tmp_path / "p.skiff", tmp_path / "s.ferry"
    path.write_text("(print! 1) (print! 2)")
    shell = f"{sys.executable} -m ferryvm.cli"
    done = subprocess.run(
        f"{shell} run {path} --save {state} > /dev/full; {shell} resume {state}",
        check=False, shell=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout == "1\n2\n"
    assert done.stderr.splitlines() == [
        f"ferry: state saved in {state}",
        "ferry: output cannot be written: No space left on device",
    ]


@pytest.mark.rotate("option", most=1)
@pytest.mark.parametrize("option", ["--save", "--trace", "--stats"])
def test_a_full_disk_is_one_line_and_loses_no_state(tmp_path: Path, option: str) -> None:
    """A device that is full stands in for the disk; another folder is free."""
    path = tmp_path / "p.skiff"
    path.write_text("(print! 1) (print! 2)")
    ferry = [sys.executable, "-m", "ferryvm.cli"]
    done = subprocess.run(
        [*ferry, "run", str(path), "--fuel", "3", option, "/dev/full"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]
    assert line.startswith("ferry: /dev/full: cannot be written: No space left on device")
    assert len(done.stderr.splitlines()) == 2
    if option == "--save":
        other = line.partition("the state is saved in ")[2].removesuffix(" instead")
        resumed = subprocess.run(
            [*ferry, "resume", other], check=False, capture_output=True, text=True, timeout=120
        )
        assert done.stdout + resumed.stdout == "1\n2\n"


def _children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(number) for number in text.split()]


def _has_ended(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state in "ZX"


@pytest.mark.rotate("name", most=1)
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="it reads Linux's /proc")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_a_process_that_compiles_ends_with_its_parent(
    spin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("FERRYVM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    with started("run", spin, "--backend", "switch") as process:
        assert process.stderr is not None
        assert "building native code" in process.stderr.readline()
        children: list[int] = []
        while not children:
            children = _children(process.pid)
        process.send_signal(signal.Signals[name])
        process.wait(60)
        for child in children:
            while not _has_ended(child):
                time.sleep(0.01)
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".skiff"]
    assert not [path for path in left if path.suffix == ".part"]
    assert list((tmp_path / "tmp").iterdir()) == []
