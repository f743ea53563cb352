# SPDX-License-Identifier: Apache-2.0
"""`ferry vliw` as a user meets it: tables, plots, and one line for what is wrong."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import ferryvm_backends.vliw.command as vliw_command
import ferryvm_backends.vliw.sweep.measure as measuring
from ferryvm.cli.command import ferry
from ferryvm.errors import FerryError
from ferryvm_backends.vliw.machine.read import find, path_of, shipped

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "(define (f d) (* d d))\n(define i 0)\n(while (< i 9) (set! i (+ i 1)))\n(print! (f i))\n"
INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from ferryvm.cli import main
from ferryvm_backends.vliw.sweep import measure

run, times = measure._run, []

def once(program, machine, arguments):
    if times:
        os.kill(os.getpid(), signal.SIGINT)
    times.append(1)
    return run(program, machine, arguments)

measure._run = once
main()
"""
"""A command to which Ctrl-C comes while the second variant runs."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "f.skiff"
    path.write_text(PROGRAM)
    return path


def vliw(*arguments: object) -> Result:
    return CliRunner().invoke(ferry, ["vliw", *map(str, arguments)])


def table(*arguments: object) -> list[list[str]]:
    result = vliw(*arguments)
    assert result.exit_code == 0, result.exception or result.output
    return [line.split() for line in result.stdout.splitlines()]


def refused(*arguments: object) -> str:
    result = vliw(*arguments)
    if isinstance(result.exception, FerryError):
        assert not result.output
        return str(result.exception)
    assert result.exit_code == 2
    return result.output.splitlines()[-1]


def test_machines_are_listed_with_cost_and_file() -> None:
    head, *rows = table("machines")
    assert head == ["name", "cost", "slots", "units", "files", "registers", "MHz", "file"]
    assert [row[0] for row in rows] == list(shipped())
    for name, cost, slots, units, *_, clock, path in rows:
        machine = find(name)
        assert (float(cost), int(slots)) == (pytest.approx(machine.cost), machine.slots)
        assert (int(units), float(clock)) == (len(machine.units), machine.clock)
        assert Path(path) == path_of(name)


def test_sweep_prints_a_row_a_variant_and_not_what_the_program_prints(file: Path) -> None:
    head, *rows = table("sweep", file, "--vary", "alu=1..2", "--vary", "int.registers=8,16")
    assert head == ["alu", "int.registers", "cost", "cycles", "transfers", "ms", "of", "first"]
    assert [row[:2] for row in rows] == [["1", "8"], ["1", "16"], ["2", "8"], ["2", "16"]]
    assert [row[2] for row in rows] == ["51.05", "51.05", "52.05", "52.05"]
    first = int(rows[0][3])
    for row in rows:
        cycles, milliseconds = int(row[3]), float(row[5])
        assert 0 < int(row[4]) < cycles
        assert milliseconds == pytest.approx(cycles / 100_000, rel=1e-3)
        assert float(row[6]) == pytest.approx(cycles / first, abs=1e-3)
    best = min((float(row[2]), int(row[3])) for row in rows)
    marked = [(float(row[2]), int(row[3])) for row in rows if row[7:] == ["Pareto"]]
    assert best in marked
    assert len(set(marked)) < len(rows)


def test_refused_variants_are_rows_with_their_reasons(file: Path) -> None:
    _, bad, *good = table("sweep", file, "--vary", "slots=0..2")
    assert " ".join(bad) == "0 slots: found 0 (allowed: a whole number from 1 to 1024)"
    assert [row[0] for row in good] == ["1", "2"]
    assert "Pareto" in good[-1]  # as cheap, and no slower


def test_no_variant_that_can_run_it_is_an_error_after_the_table(file: Path) -> None:
    result = vliw("sweep", file, "--vary", "machine.instructions=1..2")
    assert str(result.exception) == f"{file}: no variant could run it"
    assert len(result.output.splitlines()) == 3


def test_the_machine_is_the_one_that_is_named_or_in_a_file(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.toml"
    own.write_text(path_of("single").read_text().replace('name = "single"', 'name = "own"'))
    rows = [
        table("sweep", file, "--vary", "delay_slots=1", *option)[1]
        for option in (["--machine", "single"], ["--machine", own])
    ]
    monkeypatch.setenv("FERRYVM_VLIW_MACHINE", "single")
    rows.append(table("sweep", file, "--vary", "delay_slots=1")[1])
    assert rows[0] == rows[1] == rows[2]
    assert rows[0][1] == f"{find('single').cost:g}"


@pytest.mark.nightly
def test_a_plot_is_written(file: Path, tmp_path: Path) -> None:
    for name, begin in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml")):
        plot = tmp_path / name
        table("sweep", file, "--vary", "alu=1..2", "--plot", plot)
        assert plot.read_bytes().startswith(begin)
    assert b"f.skiff on variants of multi16" in plot.read_bytes()


FAULTS = {
    ("--vary", "alo=1"): "--vary alo: machine 'multi16' has no group or key 'alo'; did you mean",
    ("--vary", "alu=1", "--machine", "singel"): "no machine 'singel'; did you mean 'single'?",
    ("--vary", "alu=1", "--machine", "no.toml"): "no.toml: cannot be read: No such file",
    ("--vary", "alu=1", "--plot", "a.pdf"): "a.pdf: a plot has the suffix .png or .svg",
    ("--vary", "alu=1", "--plot", "no/a.png"): "no/a.png: cannot be written: No such file",
    ("--vary", "alu=1", "--plot", "."): "'.' is a directory",
    (): "Missing option '--vary'",
}


@pytest.mark.parametrize("arguments", FAULTS)
def test_a_wrong_request_is_one_line_before_anything_runs(
    file: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(file.parent)
    monkeypatch.setattr(measuring, "_run", pytest.fail)
    assert FAULTS[arguments] in refused("sweep", file, *arguments)


def test_a_program_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "nothing.skiff: cannot be read" in refused(
        "sweep", tmp_path / "nothing.skiff", "--vary", "alu=1"
    )


def command(source: list[str], *arguments: object) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, *source, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.nightly
def test_a_trap_ends_it_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "trap.skiff"
    file.write_text("(define x 0)\n(/ 5 x)\n")
    arguments = ("vliw", "sweep", file, "--vary", "alu=1..2")
    code, out, err = command(["-m", "ferryvm.cli"], *arguments)
    assert (code, out) == (1, "")
    assert err.startswith(f"ferry: {file}:2:1: trap: integer division by zero\n    (/ 5 x)\n")


@pytest.mark.nightly
def test_ctrl_c_prints_and_draws_what_there_is(file: Path, tmp_path: Path) -> None:
    plot = tmp_path / "a.svg"
    arguments = ("vliw", "sweep", file, "--vary", "alu=1..4", "--plot", plot)
    code, out, err = command(["-c", INTERRUPTED], *arguments)
    assert (code, err) == (130, "ferry: interrupted\n")
    head, row = out.splitlines()
    assert head.split()[0] == "alu"
    assert row.split()[0] == "1"
    assert plot.read_bytes().startswith(b"<?xml")


def test_the_command_takes_nothing_of_core_that_is_not_public() -> None:
    public = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    tree = ast.parse(Path(vliw_command.__file__).read_text(encoding="utf-8"))
    found = {
        (node.module or "", alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    core = {(module, name) for module, name in found if module.split(".")[0] == "ferryvm"}
    assert ("ferryvm.command", "print_table") in core
    for module, name in core:
        (row,) = (line for line in public.splitlines() if line.startswith(f"| `{module}` |"))
        assert f"`{name}`" in row, f"{module}.{name} is not public"
