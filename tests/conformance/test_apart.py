# SPDX-License-Identifier: Apache-2.0
"""What a backend does to its process fails one case, and the others are run all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ferryvm.cli.command import ferry
from ferryvm.errors import FerryError

from ..double.distribution import plant_backend, state_of_its_own
from ..tier import nightly

HARM = """
def harm(real, machine, counting):
    status = real.enter(machine, counting)
    if status is Status.TRAP:
        {}
    return status
Wrong(harm)
"""
CASES = "trap/in-main-divide"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(ferry, ["conformance", *arguments], standalone_mode=False)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    # A process that ends while it loads leaves a note there, which the next command reports.
    monkeypatch.setenv("XDG_STATE_HOME", state_of_its_own(tmp_path / "state"))
    return folder


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        nightly(("os._exit(0)", "the process ended with exit code 0\n")),
        nightly(("os._exit(3)", "the process ended with exit code 3\n")),
        nightly(("os.kill(os.getpid(), signal.SIGKILL)", "the process ended with SIGKILL\n")),
        (
            "os.kill(os.getpid(), signal.SIGSEGV)",
            "the process ended with SIGSEGV\n  at {site}/harmful_plugin.py:7, harm\n",
        ),
        nightly(("raise SystemExit(0)", "raises SystemExit: 0\n")),
        nightly(("raise KeyboardInterrupt", "raises KeyboardInterrupt\n")),
        nightly(("raise GeneratorExit", "raises GeneratorExit\n")),
    ],
)
def test_backend_that_ends_its_process_fails_the_case(site: Path, harm: str, told: str) -> None:
    plant_backend(site, "harmful", HARM.format(harm))
    result = run("--backend", "harmful", "--case", "trap/in-main-d*/plain")
    assert result.return_value == 1, result.output
    failed = [line for line in result.output.splitlines() if line.startswith("failed ")]
    assert "failed trap/in-main-divide/plain: In main, above an operand that stays" in failed
    assert result.output.count(told.format(site=site)) == len(failed) == 1
    assert result.output.splitlines()[-1].startswith(f"harmful: 0 of {len(failed)} passed")


@pytest.mark.nightly
def test_only_the_case_that_ends_the_process_fails(site: Path) -> None:
    plant_backend(site, "harmful", HARM.format("os._exit(0)"))
    result = run("--backend", "harmful", "--case", "[tv]*/*s/plain")
    lines = {line.split()[0]: line.split()[1:] for line in result.output.splitlines() if line}
    assert result.return_value == 1
    assert lines["trap"] == ["0", "1", "0", "0", "0"]
    assert lines["value"] == ["3", "0", "0", "0", "0"]


def test_backend_that_does_not_come_back_is_stopped_and_told_where_it_was(site: Path) -> None:
    plant_backend(site, "stuck", HARM.format("time.sleep(1000)"))
    result = run("--backend", "stuck", "--case", f"{CASES}/plain", "--patience", "0.5")
    assert result.return_value == 1
    told = f"did not come back within 0.5 s\n  at {site}/stuck_plugin.py:7, harm\n"
    assert told in result.output


def test_loop_that_never_looks_at_the_flag_is_left_with_its_process(site: Path) -> None:
    lines = """
    def harm(real, machine, counting):
        while counting:
            pass
        return real.enter(machine, counting)
    Wrong(harm)
    """
    plant_backend(site, "deaf", lines)
    result = run("--backend", "deaf", "--case", "interrupt/jump/stopped", "--patience", "0.5")
    assert result.return_value == 1
    assert f"did not come back within 0.5 s\n  at {site}/deaf_plugin.py:" in result.output


def test_what_it_raises_is_told_whole_with_its_place(site: Path) -> None:
    plant_backend(site, "broken", HARM.format("raise ValueError('first line\\nsecond line')"))
    result = run("--backend", "broken", "--case", f"{CASES}/plain")
    assert (
        f"""
  end
    expected: a status
    found:    raises ValueError: first line
              second line
              at {site}/broken_plugin.py:7, harm
              at {site}/double/interpreter.py:"""
        in result.output
    )


@pytest.mark.nightly
def test_what_it_prints_is_no_answer_and_gets_to_standard_error(site: Path) -> None:
    plant_backend(site, "loud", HARM.format('print(\'{"verdict": "passed"}\', sys.stdin.read())'))
    environment = os.environ | {"PYTHONPATH": str(site)}
    command = [sys.executable, "-m", "ferryvm.cli", "conformance", "--backend", "loud"]
    done = subprocess.run(
        [*command, "--case", f"{CASES}/plain"],
        env=environment,
        input="not for it",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, '{"verdict": "passed"} \n')
    assert "loud: 1 of 1 passed" in done.stdout


@pytest.mark.parametrize(
    ("load", "told"),
    [
        ("os._exit(0)", "backend 'odd' does not load: the process ended with exit code 0"),
        nightly(("sys.exit(4)", "backend 'odd' of odd:odd does not load: SystemExit: 4")),
        nightly(("1 / 0", "does not load: ZeroDivisionError: division by zero")),
    ],
)
def test_backend_that_cannot_be_loaded_is_an_error(site: Path, load: str, told: str) -> None:
    plant_backend(site, "odd", load)
    result = run("--backend", "odd", "--case", CASES)
    assert isinstance(result.exception, FerryError)
    assert told in str(result.exception)


@pytest.mark.nightly
def test_interrupted_run_shows_what_it_has(site: Path, tmp_path: Path) -> None:
    mark = tmp_path / "reached"
    harm = f"""machine.control.sp -= 1
        if machine.control.trap == 1:  # UNREACHABLE
            open({str(mark)!r}, "w").close()
            time.sleep(1000)"""
    plant_backend(site, "slow", HARM.format(harm))
    listed = run("--list", "--case", "trap/*/plain").output.splitlines()
    command = [sys.executable, "-m", "ferryvm.cli", "conformance", "--backend", "slow"]
    process = subprocess.Popen(
        [*command, "--case", "trap/*/plain"],
        env=os.environ | {"PYTHONPATH": str(site)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not mark.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert (process.returncode, errors.strip()) == (130, "ferry: interrupted")
    failed = output.count("failed trap/")
    assert 0 < failed < len(listed)
    assert f" all    0       {failed} " in output
    assert output.endswith(f"slow: 0 of {failed} passed, {len(listed) - failed} did not run\n")
