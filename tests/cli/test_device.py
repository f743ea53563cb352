# SPDX-License-Identifier: Apache-2.0
"""`--device`, or `--machine`: what the backend that is named compiles for."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from ferryvm.cli.command import ferry
from ferryvm.errors import FerryError

ROOT = Path(__file__).resolve().parents[2]
SINGLE = ROOT / "configs" / "vliw" / "single.toml"


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "p.skiff"
    path.write_text("(define d 5) (print! (+ d 37))\n")
    return path


def printed(*arguments: object) -> str:
    result = CliRunner().invoke(ferry, [str(each) for each in arguments])
    assert result.exit_code == 0, result.exception or result.output
    return result.output


def refused(*arguments: object) -> str:
    """The message of an error; nothing has been printed by the program."""
    result = CliRunner().invoke(ferry, [str(each) for each in arguments])
    assert result.exit_code
    if isinstance(result.exception, FerryError):
        assert not result.output
        return str(result.exception)
    return result.output.splitlines()[-1]


def emitted(*device: object) -> str:
    return printed("compile", "p.skiff", "--backend", "vliw", "--emit", "vliw", *device)


@pytest.mark.parametrize("option", ["--device", "--machine"])
@pytest.mark.parametrize("device", ["single", SINGLE])
def test_a_stage_is_shown_for_the_machine_that_is_named(option: str, device: object) -> None:
    heads = emitted(option, device).splitlines()
    assert heads[1].split() == ["core"]
    assert emitted(option, device) != emitted()


def test_a_machine_is_what_a_program_is_run_for(capfd: pytest.CaptureFixture[str]) -> None:
    small = SINGLE.read_text().replace("instructions = ", "instructions = 1 #")
    Path("small.toml").write_text(small)
    run = ("run", "p.skiff", "--backend", "vliw", "--machine")
    printed(*run, "single")
    assert capfd.readouterr().out == "42\n"
    assert "the instruction memory of the machine single holds 1" in refused(*run, "small.toml")


def test_explain_runs_for_the_machine_that_is_named() -> None:
    Path("small.toml").write_text(
        SINGLE.read_text().replace("instructions = ", "instructions = 1 #")
    )
    explain = ("explain", "p.skiff", "--backend", "vliw", "--machine")
    assert "compiled in" in printed(*explain, "single")
    result = CliRunner().invoke(ferry, [*explain, "small.toml"])
    assert "holds 1" in str(result.exception)


@pytest.mark.parametrize("command", ["run", "explain", "compile"])
def test_every_fault_of_a_machine_s_file_is_a_line(command: str) -> None:
    text = SINGLE.read_text().replace("clock = ", "clock = -").replace("slots = 1", "slots = 0")
    Path("faulty.toml").write_text(text.replace("memory = ", "memroy = "))
    stage = ("--emit", "vliw") if command == "compile" else ()
    lines = refused(
        command, "p.skiff", "--backend", "vliw", "--machine", "faulty.toml", *stage
    ).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["memory", "clock", "slots", "memroy"]
    assert all(line.startswith("faulty.toml:") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "p.skiff", "--machine", "single"), "add --backend NAME"),
        (("run", "p.skiff", "--policy", "x.toml", "--machine", "single"), "add --backend NAME"),
        (("explain", "p.skiff", "--machine", "single"), "add --backend NAME"),
        (("compile", "p.skiff", "--emit", "vliw", "--machine", "single"), "add --backend NAME"),
        (("compile", "p.skiff", "--machine", "single"), "--device says what --emit shows"),
        (
            ("run", "p.skiff", "--backend", "switch", "--machine", "single"),
            "backend 'switch' has no devices, and so no 'single'",
        ),
        (
            ("run", "p.skiff", "--backend", "llvm", "--device", "gpu"),
            "backend 'llvm' has no devices, and so no 'gpu'",
        ),
        (
            ("compile", "p.skiff", "--emit", "ir", "--backend", "llvm", "--device", "gpu"),
            "backend 'llvm' has no devices, and so no 'gpu'",
        ),
        (
            ("run", "p.skiff", "--backend", "vliw", "--machine", "singel"),
            "no machine 'singel'; did you mean 'single'? (known: dsp4, multi16, single, wide16)",
        ),
        (
            ("run", "p.skiff", "--backend", "vliw", "--machine", "none.toml"),
            "none.toml: cannot be read: No such file or directory",
        ),
        (("run", "p.skiff", "--backend", "vliw", "--machine", ""), "--device: found no name"),
        (
            ("run", "p.skiff", "--backend", "opencl", "--device", "no:such"),
            "is no device 'no:such'",
        ),
    ],
)
def test_a_device_that_cannot_be_is_one_clear_line(
    arguments: tuple[str, ...], message: str
) -> None:
    said = refused(*arguments)
    assert message in said
    assert "\n" not in said
