# SPDX-License-Identifier: Apache-2.0
"""Exported cases are enough to test a backend with, by a runner that has nothing else."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ferryvm.errors import FerryError
from ferryvm.registry import Registry
from ferryvm.testing.conformance.export import export, lines
from ferryvm.testing.conformance.manner import MANNERS
from ferryvm.testing.conformance.suite import Item, items

from ..double.conformance import WRONG
from ..double.interpreter import Wrong
from ..tier import nightly, sample
from .runner import Runner

GROUPS = ("heap", "host", "interrupt", "object", "saved", "value")
LABELS = [item.label for item in items() if item.group in GROUPS]
LABELS += [item.label for item in items() if item.name in ("everything", "in-a-callee-index")]
LABELS += [
    f"instruction/{mnemonic}/{manner}"
    for mnemonic in ("i32.shl", "f32.min", "i64.div_s", "call", "jump_table", "host", "f64.store")
    for manner in ("plain", "counting")
]


def _item(label: str) -> Item:
    return next(item for item in items() if item.label == label)


def _lines(label: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(_item(label), Registry().get("reference"))]


SMALL = [item for item in items() if item.label in LABELS and item.manner != "cuts"]
PARTS = 18


def test_what_is_exported_has_every_manner_but_cuts() -> None:
    assert {item.manner for item in SMALL} == set(MANNERS) - {"cuts"}
    assert len(SMALL) > 100


@pytest.mark.parametrize("part", sample(range(PARTS), 1))
def test_runner_that_has_only_the_files_passes_on_switch(tmp_path: Path, part: int) -> None:
    reference, switch = Registry().get("reference"), Registry().get("switch")
    export(SMALL[part::PARTS], tmp_path / "new", reference)
    files = sorted((tmp_path / "new").rglob("*.jsonl"))
    assert files
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            assert Runner(case, switch).run() is None, (file, case["about"])


def _flips(case: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The case with one bit of one expectation flipped, for each field of each of its steps."""
    for number, step in enumerate(case["steps"]):
        for field in step.get("expected", ()):
            wrong = copy.deepcopy(case)
            state = wrong["steps"][number]["expected"]
            if isinstance(state[field], int):
                state[field] ^= 1
            elif state[field] and isinstance(state[field][0], str):
                digits = state[field][0]
                state[field][0] = f"{int(digits[0], 16) ^ 1:x}{digits[1:]}"
            elif state[field]:
                state[field][0] += 1
            else:
                state[field] = [8]
            yield f"step {number}: {field}", wrong


@pytest.mark.parametrize(
    "label",
    [
        "fuel/hosts/counting",
        nightly("heap/exhaustion/counting"),
        nightly("trap/in-a-callee-store/exits"),
        "value/high-halves/plain",
    ],
)
def test_runner_fails_when_a_bit_of_an_expectation_is_flipped(label: str) -> None:
    switch = Registry().get("switch")
    count = 0
    for case in _lines(label):
        for where, wrong in _flips(case):
            found = Runner(wrong, switch).run()
            assert found is not None, where
            assert found.partition(":")[0] == where.partition(":")[0]
            count += 1
    assert count > 10


def test_runner_fails_when_the_trail_is_another_one() -> None:
    (case,) = _lines("interrupt/calls/stopped")
    for state in case["trail"]["states"]:
        state["pc"] += 1
    found = Runner(case, Registry().get("switch")).run()
    assert found == "step 1: pc"


@pytest.mark.parametrize(
    "name", ["fuel off by one", "pops at a trap", "high half", "words above sp"]
)
def test_runner_finds_what_is_wrong_with_a_backend(name: str) -> None:
    enter, label, _ = WRONG[name]
    assert any(Runner(case, Wrong(enter)).run() for case in _lines(label))


def test_line_has_what_a_runner_without_a_verifier_needs() -> None:
    (case,) = _lines("call/indirect/plain")
    program = Runner(case, Registry().get("switch")).program
    assert [words[3] for words in case["functions"]] == list(program.frame_words)
    assert case["table"] == [1, 2, 3, 1]
    assert len(case["operands"]) == len(program.program.code)
    assert case["operands"][:2] == [[], ["f64"]]
    assert case["needs"] == {"fuel": False, "heap": 65536, "objects": False}
    assert base64.b64decode(case["image"])[:4] == b"\x89FVM"


@pytest.mark.nightly
def test_numbers_fit_into_63_bits() -> None:
    def numbers(value: object) -> Iterator[int]:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            for one in value:
                yield from numbers(one)
        elif isinstance(value, int):
            yield value

    for label in ("entry/everything/exits", "heap/exhaustion/counting", "call/overflow/counting"):
        assert all(0 <= number < 1 << 63 for case in _lines(label) for number in numbers(case))


def test_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    reference = Registry().get("reference")
    item = _item("fuel/straight/cuts")
    with pytest.raises(FerryError, match=r"file/cases: cannot be written: "):
        export([item], tmp_path / "file" / "cases", reference)
    for taken in (tmp_path, tmp_path / "file"):
        with pytest.raises(FerryError, match=r"is there already; name a folder that is new or emp"):
            export([item], taken, reference)


@pytest.mark.parametrize("is_there", [False, True])
def test_export_that_is_interrupted_leaves_nothing(tmp_path: Path, is_there: bool) -> None:
    folder = tmp_path / "cases"
    if is_there:
        folder.mkdir()

    def interrupt() -> None:
        assert not list(folder.rglob("*.jsonl"))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export([_item("fuel/straight/cuts")], folder, Registry().get("reference"), interrupt)
    assert list(tmp_path.rglob("*")) == ([folder] if is_there else [])


@pytest.mark.parametrize("name", ["clears the flag", "never looks at calls"])
def test_runner_finds_a_backend_that_is_wrong_with_the_flag(name: str) -> None:
    enter, label, _ = WRONG[name]
    assert any(Runner(case, Wrong(enter)).run() for case in _lines(label))
