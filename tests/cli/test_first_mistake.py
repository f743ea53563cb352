# SPDX-License-Identifier: Apache-2.0
"""Mistakes of new users: names of files that are none, files of other commands, input that is no
text. Each is one line that says what to do; the exit code is 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from ferryvm.cli.command import ferry as command

from ..command import ferry
from ..tier import nightly

EMPTY = "it is empty; a file is expected"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ok.skiff").write_text("(print! 1)", encoding="utf-8")
    Path("s.ferry").write_bytes(b"")
    Path("d.disagreement").write_bytes(b"")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", ""), f"Invalid value for 'FILE': {EMPTY}"),
        (("compile", "."), "Invalid value for 'FILE': '.' is a folder; a file is expected"),
        (("diff", "ok.skiff", ""), f"Invalid value for 'FILES...': {EMPTY}"),
        (("run", "ok.skiff", "--save", ""), f"Invalid value for '--save': {EMPTY}"),
        (
            ("reduce", "ok.skiff", "--bad", "switch", "-o", ""),
            f"Invalid value for '-o' / '--output': {EMPTY}",
        ),
        nightly((("policy", "show", ""), f"Invalid value for '[FILE]': {EMPTY}")),
        (
            ("run", "s.ferry"),
            "s.ferry: is a saved state, no program; `ferry resume` goes on with it",
        ),
        (
            ("diff", "d.disagreement"),
            "d.disagreement: is a saved disagreement, no program; `ferry replay` shows it again",
        ),
        (("resume", "ok.skiff"), "ok.skiff: is a program, no saved state; `ferry run` starts it"),
        (("resume", "no.skiff"), "no.skiff: cannot be read: No such file or directory"),
        (
            ("run", "ok.skiff", "--heap-limit", "99999999999G"),
            (
                "ok.skiff: cannot reserve 102399999999040 MiB of address space (more than there are "
                "addresses); lower the heap or stack limit (--heap-limit, --stack-limit; Limits)"
            ),
        ),
    ],
)
def test_file_that_is_none_is_told_in_one_line(words: tuple[str, ...], message: str) -> None:
    assert ferry(*words) == (2, "", f"ferry: {message}\n")


def test_input_of_a_session_that_is_no_text_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    given = b"(print! 1)\r\n(print! 2) \xff\n"
    result = CliRunner().invoke(command, ["repl", "--backend", "reference"], input=given)
    assert str(result.exception) == "standard input: line 2 is not UTF-8 text (byte 11)"
    assert capfd.readouterr().out == "1\n"
