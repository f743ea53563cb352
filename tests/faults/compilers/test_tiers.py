# SPDX-License-Identifier: Apache-2.0
"""A fault counts as found by a tier if a test fails with it, not if something else does."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from . import plugin, tiers
from .table import by_name

(FAULT,) = by_name(["comparison-holds-for-nan"])


def ended(output: str, code: int) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], code, output, "")


def test_a_failed_test_finds_a_fault() -> None:
    output = "ERROR tests/a.py::x\nFAILED tests/b.py::y[1 2] - no\n1 failed, 1 error in 3 s\n"
    assert tiers.judge(FAULT.name, ended(output, 1)) == "tests/b.py::y[1 2]"


def test_the_end_of_the_process_finds_a_fault() -> None:
    assert tiers.judge(FAULT.name, ended("", -11)) == "exit code -11"


@pytest.mark.parametrize(
    ("output", "code"),
    [("3 passed in 2 s\n", 0), ("ERROR tests/a.py::x\n3 passed, 1 error in 2 s\n", 1)],
)
def test_neither_success_nor_an_error_in_a_fixture_finds_a_fault(output: str, code: int) -> None:
    assert tiers.judge(FAULT.name, ended(output, code)) is None


@pytest.mark.parametrize("output", ["ERROR tests/a.py\n1 error in 0.1 s\n", "no tests ran\n"])
def test_a_run_without_tests_is_an_error_of_the_campaign(output: str) -> None:
    with pytest.raises(AssertionError, match="comparison-holds-for-nan"):
        tiers.judge(FAULT.name, ended(output, 2))


def test_a_test_that_fails_without_a_fault_is_named_and_finds_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = ["tests/a.py::x", "tests/a.py::y[1 2]"]

    def run(words: list[str], backend: str, folder: Path) -> subprocess.CompletedProcess[str]:
        left_out = []
        if "--plant" in words:
            file = Path(words[words.index("--leave-out") + 1])
            left_out = file.read_text(encoding="utf-8").splitlines()
        lines = [f"FAILED {name} - assert 1 == 2\n" for name in failing if name not in left_out]
        return ended("".join(lines) + "7 passed in 1 s\n", 1 if lines else 0)

    monkeypatch.setattr(tiers, "_run", run)
    cache = tmp_path / "cache"
    cache.mkdir()
    control = tiers.Control(cache, 1, {})
    for fault in by_name(["comparison-holds-for-nan", "exit-at-the-next-instruction"]):
        assert tiers.look(fault, cache, ["default"], control).tier is None
    assert control.failed == {"llvm default": failing}
    said = capsys.readouterr().out
    assert said.count("\n") == 1  # the tests ran once without a fault
    assert "fail without a fault" in said
    assert all(name in said for name in failing)


def test_tests_that_die_without_a_fault_end_the_campaign(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tiers, "_run", lambda *_: ended("", -11))
    with pytest.raises(AssertionError, match="llvm default without a fault"):
        tiers.Control(tmp_path, 1, {}).of("llvm", "default")


def test_named_tests_are_left_out_and_those_whose_names_begin_alike_run(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text("a.py::x\na.py::y[1 2]\n", encoding="utf-8")
    names = ["a.py::x", "a.py::x_too", "a.py::y[1 2]", "a.py::y[1]"]
    items = [SimpleNamespace(nodeid=name) for name in names]
    config = SimpleNamespace(getoption={"--leave-out": file}.get)
    plugin.pytest_collection_modifyitems(config, items)  # type: ignore[arg-type] # doubles
    assert [item.nodeid for item in items] == ["a.py::x_too", "a.py::y[1]"]


@pytest.mark.nightly  # it builds the interpreters anew
def test_a_fault_that_breaks_every_program_is_found_by_a_test(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The fixture that runs all backends has such a program, too."""
    (fault,) = by_name(["exit-at-the-next-instruction"])
    file = "tests/backends/llvm/test_folding.py"
    monkeypatch.setitem(tiers.TESTS, "llvm", (file,))
    cache = tmp_path / "cache"
    cache.mkdir()
    found = tiers.look(fault, cache, ["default"], tiers.Control(cache, 1, {"llvm default": []}))
    assert found.tier == "default"
    assert found.test.startswith(file)
