# SPDX-License-Identifier: Apache-2.0
"""The nightly run tells what became of each job, and goes on where it was cut off."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from . import __main__ as nightly
from .job import JobError, chosen, jobs
from .result import state

TABLE = """
[[job]]
name = "quick.good"
command = "python -c 'import os; print(os.environ[\\"COLOUR\\"]); open(\\"{folder}/count\\", \\"a\\").write(\\"x\\")'"
environment = {{ COLOUR = "blue" }}

[[job]]
name = "quick.bad"
command = "python -c 'print(1); print(); raise SystemExit({code})'"

[[job]]
name = "other.missing"
command = "python -c 1"
needs = "ferryvm_no_such_module"
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table with a job that passes, one that fails and one that cannot run."""
    monkeypatch.setattr(nightly, "state", lambda _root: "0123-abc")
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # it is the test process's
    return write(tmp_path, 3)


def write(folder: Path, code: int) -> Path:
    """The table, with an exit code for the second job."""
    file = folder / "jobs.toml"
    file.write_text(TABLE.format(folder=folder, code=code))
    return file


def run(table: Path, *words: str) -> int:
    """The exit code of a run."""
    return nightly.main(["--table", str(table), "--results", str(table.parent / "out"), *words])


@pytest.mark.nightly
def test_each_job_s_verdict_is_told_and_the_summary_starts_with_failures(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(table) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[1/3] quick.good ..."
    assert lines[1].startswith("[1/3] quick.good passed, ")
    assert lines[1].endswith(" s: blue")
    assert lines[3].startswith("[2/3] quick.bad failed, ")
    assert lines[3].endswith(" s: 1")
    assert lines[5] == "[3/3] other.missing skipped, 0 s: ferryvm_no_such_module is not installed"
    page = (table.parent / "out" / "0123-abc" / "README.md").read_text()
    assert page.startswith("# Nightly run of 0123-abc\n\n1 passed, 1 failed, 1 skipped; ")
    rows = [line.split(" | ")[:2] for line in page.splitlines() if line.startswith("| ")][1:]
    assert rows == [
        ["| quick.bad", "failed"],
        ["| other.missing", "skipped"],
        ["| quick.good", "passed"],
    ]


def test_what_has_ended_is_not_run_again_unless_it_failed_and_that_is_wanted(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(table, "quick")
    capsys.readouterr()
    assert run(table) == 1
    told = capsys.readouterr().out
    assert "quick.good passed (before)" in told
    assert "quick.bad failed (before)" in told
    assert (table.parent / "count").read_text() == "x"
    run(table, "--again")
    told = capsys.readouterr().out
    assert "quick.good passed (before)" in told
    assert "quick.bad ...\n" in told


def test_a_job_whose_command_has_changed_is_run(table: Path) -> None:
    assert run(table, "quick.bad") == 1
    assert run(write(table.parent, 0), "quick.bad") == 0


def test_a_result_that_is_not_whole_counts_for_nothing(table: Path) -> None:
    run(table, "quick.good")
    file = table.parent / "out" / "0123-abc" / "quick.good.json"
    file.write_text(file.read_text()[:20])
    assert run(table, "quick.good") == 0
    assert (table.parent / "count").read_text() == "xx"
    assert json.loads(file.read_text())["code"] == 0


def test_a_command_that_is_not_there_is_a_failure(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table.write_text('[[job]]\nname = "a.b"\ncommand = "no-such-command 1"\n')
    assert run(table) == 1
    assert "a.b failed, 0 s: there is no command 'no-such-command'" in capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_job_and_it_is_run_again(number: signal.Signals, tmp_path: Path) -> None:
    file = tmp_path / "jobs.toml"
    said = tmp_path / "said"
    sleep = f"import os, time; open('{said}', 'w').write(str(os.getpid())); time.sleep(60)"
    file.write_text(f'[[job]]\nname = "a.long"\ncommand = """python -c "{sleep}" """\n')
    command = ["-m", "tests.nightly", "--table", str(file), "--results", str(tmp_path / "out")]
    process = subprocess.Popen(
        [sys.executable, *command], cwd=nightly.ROOT, stdout=subprocess.PIPE, text=True
    )
    while not said.exists() or not said.read_text():
        time.sleep(0.01)
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "nightly: interrupted in a.long; the same command goes on with it" in out
    with pytest.raises(ProcessLookupError):
        os.kill(int(said.read_text()), 0)
    assert not list((tmp_path / "out").rglob("*.json"))
    assert "1 not run" in next((tmp_path / "out").rglob("README.md")).read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[job]]\nname = "a"\ncommand = "x"', "job 0: name: found 'a' (allowed: GROUP.NAME)"),
        ('[[job]]\nname = "a.b"', "a.b: command: found None (allowed: a text)"),
        ('[[job]]\nname = "a.b"\ncommand = "x"\nwhen = 1', "a.b: unknown: when"),
        ('[[job]]\nname = "a.b"\ncommand = "x"\n' * 2, "jobs.toml: two jobs are named a.b"),
        (
            "[[job",
            "jobs.toml: Expected ']]' at the end of an array declaration (at end of document)",
        ),
    ],
)
def test_a_table_with_a_fault_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.toml"
    file.write_text(text)
    with pytest.raises(JobError) as caught:
        jobs(file)
    assert str(caught.value) == message


def test_a_pattern_that_names_nothing_is_told_with_the_groups() -> None:
    with pytest.raises(JobError, match=r"no job is named 'lvm' \(groups: tests, conformance, "):
        chosen(jobs(), ["lvm"])


def test_every_job_s_command_is_there() -> None:
    for job in jobs():
        words = job.words
        assert words[0] in ("python", "ferry"), job.name
        if words[0] == "python":
            assert words[1] == "-m", job.name
            assert importlib.util.find_spec(words[2]) is not None, job.name
        for word in words:
            if word.startswith("tests/"):
                assert (nightly.ROOT / word).exists(), (job.name, word)


def test_the_state_is_the_commit_and_what_differs_from_it(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        names = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *names, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-qm", "one")
    clean = state(tmp_path)
    (tmp_path / "a").write_text("2")
    changed = state(tmp_path)
    (tmp_path / "b").write_text("new")
    added = state(tmp_path)
    assert changed.startswith(f"{clean}-")
    assert len({clean, changed, added}) == 3
