# SPDX-License-Identifier: Apache-2.0
"""`ferry run --record` and `--replay`: a log however the run ends, and the same run from it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from ferryvm import HostLog

from ..command import ferry
from .test_signal import SPIN, started

PRINTS = """
.host print_i64 (i64)
.function main
    i64.const {value}
    host print_i64
    i64.const 1
    i64.const {divisor}
    i64.div_s
    host print_i64
    halt
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "p.fasm"
    path.write_text(PRINTS.format(value=7, divisor=1))
    return path


def test_log_replays_with_the_same_output(program: Path) -> None:
    assert ferry("run", program, "--record", "log") == (0, "7\n1\n", "")
    assert [str(call) for call in HostLog.load("log")] == ["print_i64(7)", "print_i64(1)"]
    for backend in ("reference", "switch"):
        again = ferry("run", program, "--replay", "log", "--backend", backend)
        assert again == (0, "7\n1\n", "")


def test_log_is_written_after_a_trap(program: Path) -> None:
    program.write_text(PRINTS.format(value=7, divisor=0))
    assert ferry("run", program, "--record", "log").code == 1
    assert [str(call) for call in HostLog.load("log")] == ["print_i64(7)"]
    assert ferry("run", program, "--replay", "log").code == 1


@pytest.mark.rotate("number", most=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_log_is_written_after_a_signal(number: int, tmp_path: Path) -> None:
    spin, log = tmp_path / "spin.skiff", tmp_path / "log"
    spin.write_text(SPIN)
    with started("run", spin, "--record", log) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        process.send_signal(number)
        process.communicate()
    assert len(HostLog.load(log)) == 1


def test_another_call_is_one_line(program: Path) -> None:
    ferry("run", program, "--record", "log")
    program.write_text(PRINTS.format(value=8, divisor=1))
    code, out, err = ferry("run", "p.fasm", "--replay", "log")
    assert (code, out) == (2, "")
    assert err == ("ferry: p.fasm:5:5: host call 1 is print_i64(8), the log has print_i64(7)\n"), (
        err
    )


def test_calls_that_are_left_over_are_one_line(program: Path) -> None:
    ferry("run", program, "--record", "log")
    program.write_text(".function main\n    halt\n")
    assert ferry("run", program, "--replay", "log") == (
        2,
        "",
        "ferry: log: has 2 more host calls than the program made; the next is print_i64(7)\n",
    )


def test_a_resumed_run_has_the_calls_from_there_on(program: Path) -> None:
    ferry("run", program, "--fuel", "2", "--save", "s.ferry", "--record", "first")
    assert ferry("resume", "s.ferry", "--record", "log") == (0, "1\n", "")
    assert [len(HostLog.load(name)) for name in ("first", "log")] == [1, 1]
    assert ferry("resume", "s.ferry", "--replay", "log") == (0, "1\n", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--replay", "p.fasm"), "p.fasm: not a log of host calls"),
        (("--replay", "none"), "none: cannot be read: No such file or directory"),
        (("--record", "p.fasm"), "p.fasm: is the input; name another file to write"),
        (("--record", "no/log"), "no/log: cannot be written: No such file or directory"),
        (("--record", "a", "--replay", "a"), "--record and --replay: one of them is allowed"),
    ],
)
def test_unusable_logs_are_one_line(program: Path, options: tuple[str, ...], message: str) -> None:
    code, out, err = ferry("run", program, *options)
    assert (code, out, err) == (2, "", f"ferry: {message}\n")
