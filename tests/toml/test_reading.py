# SPDX-License-Identifier: Apache-2.0
"""Reading a file: text, document, faults in the order of the text, warnings to the log."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ferryvm.errors import FerryError
from ferryvm.toml.fault import DocumentError
from ferryvm.toml.reading import settle, text_of

from .sample import read, said


def test_faults_are_told_at_once_in_the_order_of_the_text() -> None:
    text = "[[part]]\nflag = 1\n[free]\nx = 'a'\n[inner]\nflg = true\n"
    assert [line.split(": ")[0] for line in said(text)] == [
        "s.toml:2:1",
        "s.toml:4:1",
        "s.toml:5:1",
        "s.toml:6:1",
    ]


def test_the_message_has_the_first_faults_and_the_error_has_all() -> None:
    value, faults = read("[[part]]\nflag = 1\n" * 100)
    with pytest.raises(DocumentError) as caught:
        settle(value, faults, DocumentError)
    assert len(caught.value.faults) == 100
    lines = str(caught.value).splitlines()
    assert lines[19:] == [str(faults[19]), "... and 80 more"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = ", "1:5: the file: not TOML: invalid value"),
        ("size = 1\nsize = 2", "2:1: size: found again; first in line 1 (allowed: once)"),
        (
            "[[part]]\n[part]",
            (
                "2:1: part: found again; first in line 1"
                " (allowed: a list of tables, each headed [[part]])"
            ),
        ),
        (f"a = {'[' * 3000}{']' * 3000}", "1:1: the file: nested too deeply"),
    ],
)
def test_what_is_no_toml_is_one_fault(text: str, line: str) -> None:
    assert said(text) == [f"s.toml:{line}"]


def test_an_error_has_every_fault_and_a_warning_goes_to_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(DocumentError) as raised:
        settle(*read("size = 0\nx = 1"), DocumentError)
    assert [placed.position.line for placed in raised.value.faults] == [1, 2]
    assert str(raised.value).count("\n") == 1
    with caplog.at_level(logging.WARNING, "ferryvm"):
        assert settle(*read("size = 1\nodd = true"), DocumentError) == {"size": 1}
    assert caplog.messages == ["s.toml:2:1: warning: odd: is odd"]


def test_a_file_is_text_whatever_its_editor(tmp_path: Path) -> None:
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\n")
    assert text_of(path).startswith("a = 1")
    path.write_bytes(b"a = '\xe9'")
    with pytest.raises(FerryError, match=r"windows\.toml: not UTF-8 text \(byte 5\)"):
        text_of(path)
    with pytest.raises(FerryError, match=r"none\.toml: cannot be read: No such file"):
        text_of(tmp_path / "none.toml")
