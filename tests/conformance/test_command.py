# SPDX-License-Identifier: Apache-2.0
"""`ferry conformance`: the suite on the command line."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from ferryvm.cli.command import ferry
from ferryvm.errors import FerryError, UnknownNameError

from ..double.distribution import plant_backend


def run(*arguments: str) -> Result:
    return CliRunner().invoke(ferry, ["conformance", *arguments], standalone_mode=False)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which `wrong` is installed, a backend that pops too much at a trap."""
    folder = tmp_path / "site"
    plant_backend(folder, "wrong", 'Wrong(WRONG["pops at a trap"][0])')
    monkeypatch.syspath_prepend(folder)
    return folder


def test_table_by_group_and_the_sum() -> None:
    result = run("--backend", "switch", "--case", "*/straight/*")
    assert result.return_value == 0
    lines = [line.split() for line in result.output.splitlines()]
    assert lines[0] == ["group", "passed", "failed", "skipped", "refused", "xfailed"]
    assert lines[1] == ["fuel", "4", "0", "0", "0", "0"]
    assert lines[2] == ["all", "4", "0", "0", "0", "0"]
    assert result.output.splitlines()[3].startswith("switch: 4 of 4 passed in ")


@pytest.mark.usefixtures("site")
def test_failure_is_a_block_that_says_how_to_run_just_that() -> None:
    result = run("--backend", "wrong", "--case", "trap/in-a-callee-load")
    assert result.return_value == 1
    assert result.output.startswith(
        """failed trap/in-a-callee-load/plain: In a called function: its frame and its callers' stay
trap/in-a-callee-load, step 1:
  sp
    expected: 14
    found:    13
only this: ferry conformance --backend wrong --case trap/in-a-callee-load/plain

"""
    )


@pytest.mark.nightly
def test_skips_are_reported_with_their_reasons(site: Path) -> None:
    plant_backend(site, "lazy", "Wrong(capabilities=Capabilities(fuel=False))")
    result = run("--backend", "lazy", "--case", "fuel/calls")
    assert result.exception is not None
    assert isinstance(result.exception, FerryError)
    assert str(result.exception).startswith("backend 'lazy' ran none of 4 cases")
    result = run("--backend", "lazy", "--case", "jump/nested-loops")
    assert result.return_value == 0
    assert "skipped 4: it does not count instructions" in result.output
    assert "lazy: 2 of 6 passed in " in result.output


@pytest.mark.nightly
@pytest.mark.usefixtures("site")
def test_expected_failures_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    known = ("--backend", "wrong", "--xfail", str(file), "--case")
    file.write_text('[xfail]\n"trap/in-main-divide/plain" = "pops"\n')
    result = run(*known, "trap/in-main-divide/plain")
    assert result.return_value == 0
    assert "xfailed 1: pops" in result.output
    file.write_text('[xfail]\n"jump/table-first/plain" = "pops"\n')
    result = run(*known, "jump/table-first/plain")
    assert result.return_value == 1
    assert "passes, but is expected to fail (pops): take it out of the table" in result.output


@pytest.mark.nightly
@pytest.mark.usefixtures("site")
def test_expected_failures_may_be_named_by_a_pattern(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    known = ("--backend", "wrong", "--xfail", str(file), "--case")
    file.write_text('[xfail]\n"trap/in-main-d*" = "pops"\n"jump/table-first" = "so it is said"\n')
    result = run(*known, "trap/in-main-d*")
    assert result.return_value == 0
    assert "xfailed 3: pops" in result.output
    result = run(*known, "jump/table-first")
    assert result.return_value == 1
    count = len(run("--list", "--case", "jump/table-first").output.splitlines())
    assert f"\nnone of the {count} items of 'jump/table-first' fails, but" in result.output
    assert result.output.count("failed jump/") == 1
    assert run(*known, "jump/table-first/plain").return_value == 0  # the others did not run


def test_list_names_each_case_and_what_it_is_about() -> None:
    result = run("--list", "--case", "jump/nested-loops")
    assert result.output.splitlines()[3].split(maxsplit=1) == [
        "jump/nested-loops/cuts",
        "Loops in loops, left from the inside",
    ]


def test_export_writes_a_file_an_item(tmp_path: Path) -> None:
    assert run("--export", str(tmp_path), "--case", "*/straight/*").return_value == 0
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.jsonl"))
    assert names == [
        f"fuel/straight/{m}.jsonl" for m in ("boundaries", "counting", "cuts", "moved")
    ]


def test_unusable_arguments_are_one_line() -> None:
    result = run("--backend", "switch", "--case", "fuel/lop/cuts")
    assert isinstance(result.exception, UnknownNameError)
    assert "did you mean 'fuel/loop/cuts'" in str(result.exception)
    assert "name a backend with --backend" in str(run().exception)
    assert str(run("--patience", "3").exception).endswith("name it with --backend")
    result = run("--backend", "swich")
    assert "no backend 'swich'; did you mean 'switch'" in str(result.exception)


@pytest.mark.parametrize(
    "pair", [("--list", "--export", "x"), ("--export", "x", "--backend", "switch")]
)
def test_options_of_which_one_would_be_ignored_are_refused(pair: tuple[str, ...]) -> None:
    result = run(*pair)
    assert isinstance(result.exception, click.UsageError)
    assert result.exception.message.endswith(" do not go together")
