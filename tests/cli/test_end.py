# SPDX-License-Identifier: Apache-2.0
"""How the `ferry` command ends while something is still being compiled."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

import pytest

from ferryvm.cli import outcome

BESIDE_ENDLESS_COMPILING = """
import atexit, sys, threading, time
from ferryvm.cli import main
from ferryvm.engine.compilation import Job, submit

began = threading.Event()

def compile_for_ever():
    began.set()
    while True:
        time.sleep(1)

submit(Job(compile_for_ever))
began.wait()
atexit.register(print, "done at the end")
sys.argv = ["ferry", "run", sys.argv[1]]
main()
"""


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [("(print! 42)", 0, ""), ("(print! 42) (/ 1 0)", 1, "integer division by zero")],
    ids=["halt", "trap"],
)
def test_command_does_not_wait_for_code_that_nobody_will_enter(
    program: str, code: int, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "program.skiff"
    path.write_text(program)
    done = subprocess.run(
        [sys.executable, "-c", BESIDE_ENDLESS_COMPILING, str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (code, "42\ndone at the end\n")
    assert said in done.stderr
    assert bool(done.stderr) == bool(said)


@pytest.mark.parametrize("value", [None, MemoryError(), RuntimeError("can't allocate lock")])
def test_an_object_that_gets_no_memory_to_end_is_told_in_a_line(
    value: BaseException | None, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = type(value) if value else MemoryError
    outcome._unraisable(types.SimpleNamespace(exc_type=kind, exc_value=value))  # type: ignore[arg-type]  # what is read of it
    told = capsys.readouterr().err
    assert told == "ferry: out of memory while an object was removed; the command goes on\n"
