# SPDX-License-Identifier: Apache-2.0
"""The common form of `ferry run`, which is parsed without click."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferryvm.cli import command, direct, program_run


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.skiff").write_text("(print! 42)\n")


@pytest.mark.parametrize(
    "words",
    [
        "run p.skiff",
        "run ./p.skiff --",
        "run p.skiff --backend switch",
        "run --backend switch p.skiff",
        "run p.skiff -- a --backend b -- -c",
        "run --backend nosuch p.skiff -- run",
        "run ./p.skiff -- --help",
    ],
)
def test_the_common_form_is_parsed_as_by_click(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*arguments: object) -> None:
        called.append(arguments)

    called: list[tuple[object, ...]] = []
    call = direct.parsed(words.split())
    monkeypatch.setattr(program_run, "run", run)
    command.invoke(words.split())
    assert call is not None
    assert called == [(call.file, call.options, None, None)]


@pytest.mark.parametrize(
    "words",
    [
        "",
        "run",
        "run --help",
        "run nosuch.skiff",
        "run p.skiff p.skiff",
        "run p.skiff --backend",
        "run p.skiff --backend --count",
        "run p.skiff --backend=switch",
        "run p.skiff --backend switch --backend llvm",
        "run p.skiff --count",
        "run --backend p.skiff",
        "run -- p.skiff",
        "run /",
        "run .",
        "dis p.skiff",
        "--version",
    ],
)
def test_every_other_form_is_left_to_click(words: str) -> None:
    assert direct.parsed(words.split()) is None


def test_an_empty_word_is_left_to_click() -> None:
    assert direct.parsed(["run", ""]) is None
    assert direct.parsed(["run", "p.skiff", "--backend", ""]) is None
