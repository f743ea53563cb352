# SPDX-License-Identifier: Apache-2.0
"""Arguments of programs stand after `--`, on every command that runs programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..command import ferry

COUNT = """
.host argument_count () -> i64
.host print_i64 (i64)
.function main
    host argument_count
    host print_i64
    halt
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("count.fasm").write_text(COUNT, encoding="utf-8")


def test_all_after_the_first_separator_is_the_program_s() -> None:
    options = ("--backend", "switch")
    assert ferry("run", "count.fasm", *options, "--", "a", "--backend", "--", "") == (0, "4\n", "")
    assert ferry("run", *options, "count.fasm", "--") == (0, "0\n", "")


def test_saved_program_gets_the_arguments_of_the_command_that_continues_it() -> None:
    code, out, _ = ferry("run", "count.fasm", "--fuel", "0", "--save", "s.ferry", "--", "a", "b")
    assert (code, out) == (0, "")
    assert ferry("resume", "s.ferry", "--", "c") == (0, "1\n", "")


def test_explained_and_compared_programs_get_arguments() -> None:
    code, _, error = ferry("explain", "count.fasm", "--backend", "switch", "--", "a", "b")
    assert (code, error) == (0, "2\n")
    code, out, _ = ferry("diff", "count.fasm", "--backends", "switch", "--", "a")
    assert (code, "agree" in out) == (0, True)
    code, _, error = ferry("bisect", "count.fasm", "--bad", "switch", "--", "a")
    assert (code, "agree in all 3 instructions" in error) == (2, True)


@pytest.mark.parametrize(
    ("words", "correct"),
    [
        (("run", "p.skiff", "a", "b c"), "ferry run p.skiff -- a 'b c'"),
        (("run", "p.skiff", "a", "--", "b"), "ferry run p.skiff -- a b"),
        (("run", "--backend", "switch", "p.skiff", "a"), "ferry run p.skiff -- a"),
        (("resume", "s.ferry", "a"), "ferry resume s.ferry -- a"),
        (("explain", "p.skiff", "a"), "ferry explain p.skiff -- a"),
        (("bisect", "p.skiff", "a"), "ferry bisect p.skiff -- a"),
        (("reduce", "p.skiff", "a"), "ferry reduce p.skiff -- a"),
        (("repl", "a"), "ferry repl -- a"),
    ],
)
def test_argument_before_the_separator_is_an_error_with_the_correct_command(
    words: tuple[str, ...], correct: str
) -> None:
    text = f"ferry: unexpected argument 'a'; those of the program stand after `--`: {correct}\n"
    assert ferry(*words) == (2, "", text)


@pytest.mark.parametrize(
    ("command", "what"), [("run", "FILE"), ("resume", "STATE"), ("diff", "FILES...")]
)
def test_file_after_the_separator_is_told(command: str, what: str) -> None:
    code, _, error = ferry(command, "--", "count.fasm")
    assert (code, error.splitlines()) == (
        2,
        [f"ferry: {what} stands before `--`; what follows is the program's"],
    )


def test_help_shows_where_arguments_stand() -> None:
    assert "FILE [-- ARGUMENTS...]" in ferry("run", "--help").out


def test_command_of_a_plugin_gives_arguments_to_programs() -> None:
    sweep = ("vliw", "sweep", "count.fasm")
    code, _, error = ferry(*sweep, "a", "--vary", "alu=1")
    assert (code, error.endswith("ferry vliw sweep count.fasm -- a\n")) == (2, True)
    assert ferry(*sweep, "--vary", "alu=1", "--", "a").code == 0
