# SPDX-License-Identifier: Apache-2.0
"""The programs of the benchmark of references run, agree with their peers, and meet their goals."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks import references
from benchmarks.__main__ import main
from benchmarks.benchmark import BenchmarkError
from benchmarks.peers.peer import MissingError
from benchmarks.references import collecting, contender, goal, memory, speed
from benchmarks.references.program import TWINS, Twin
from click.testing import CliRunner

import ferryvm


def _ignore(_line: str) -> None:
    """Progress that nobody reads."""


@pytest.mark.rotate("twin", most=2)
@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_all_twins_of_a_program_give_the_same_result(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_tasks = contender.tasks

    def cheap(*arguments: object) -> dict[str, Callable[[], contender.Task]]:
        found = all_tasks(*arguments)  # type: ignore[arg-type]  # passed on as they come
        return {name: make for name, make in found.items() if name[:4] not in ("llvm", "swit")}

    monkeypatch.setattr(speed, "tasks", cheap)
    (row,) = speed.measure([twin], 1, True, _ignore)
    ran = {*row.seconds, *row.missing}
    assert {"gcc", "threaded", "threaded (Skiff)"} <= ran
    assert ("lua" in ran, "cpython" in row.seconds) == (twin.has_structs, twin.has_structs)
    assert "threaded" in row.seconds


def test_results_that_differ_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: dict[str, Callable[[], contender.Task]] = {
        "threaded": lambda: lambda: (1.0, 7),
        "lua": lambda: lambda: (1.0, 8),
    }
    monkeypatch.setattr(speed, "tasks", lambda *_: wrong)
    with pytest.raises(BenchmarkError, match="lua gave 8, another 7"):
        speed.measure([TWINS[-1]], 1, True, _ignore)


@pytest.mark.nightly
def test_llvm_is_measured_and_a_missing_peer_is_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(*_: object) -> contender.Task:
        raise MissingError("gcc is not installed")

    monkeypatch.setattr(contender, "_gcc", missing)
    (row,) = speed.measure([TWINS[-1]], 1, True, _ignore)
    assert len(row.seconds["llvm"]) == 1
    assert row.missing["gcc"] == "gcc is not installed"
    assert row.over_gcc("llvm") is None


def test_arrays_that_are_made_one_after_another_take_constant_memory() -> None:
    found = memory.measure("arrays", 0, "threaded")
    assert found["arrays"] >= 600
    assert found["most"] <= 1.1 * found["first"]


def test_a_collection_marks_all_nodes_of_a_tree() -> None:
    found = collecting.measure(2, 6)
    assert found["live_bytes"] == 127 * collecting.NODE_BYTES
    assert len(found["pauses"]) == 2
    assert found["bytes_per_second"] > 0


def test_each_goal_is_met_or_missed_or_not_known() -> None:
    rows = [speed.Row(twin) for twin in TWINS]
    rows[0].seconds = {"gcc": [1.0, 1.0], "llvm": [1.4, 1.2]}
    rows[1].seconds = {"gcc": [1.0], "llvm": [2.0]}
    rows[4].seconds = {"threaded": [1.0], "lua": [3.5], "cpython": [2.5]}
    collections = {"pause": 0.1, "bytes_per_second": 2e9}
    targets = goal.goals(rows, {"live": 10, "added": 31}, {}, collections, {"slowest": 1e-5})
    met = {target.name: target.is_met for target in targets}
    assert met["floyd: llvm over gcc"] is True
    assert met["lu: llvm over gcc"] is False
    assert met["jacobi: llvm over gcc"] is None
    assert met["trees: Lua 5.4 over threaded"] is True
    assert met["trees: CPython over threaded"] is False
    assert met["trees: memory over live data"] is False
    assert met["arrays: memory at the end over the first"] is None
    assert met["collections: marked a second"] is True
    assert met["collections: pause for 100 MB"] is True
    assert met["1 GiB NumPy array into a call and out"] is True


def test_tiny_sizes_are_held_to_no_goal() -> None:
    settings = references.Settings(1, 0.0, is_tiny=True)
    figures = references.Figures(settings, [], {}, {}, {}, {}, {"trees": "no such system"})
    assert figures.targets() == []
    assert figures.as_json()["missing"] == {"trees": "no such system"}


@pytest.mark.nightly
def test_the_command_writes_all_parts_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def nothing(*_: object) -> dict[str, object]:
        raise MissingError("no such system")

    monkeypatch.setattr(references, "TWINS", TWINS[-1:])
    monkeypatch.setattr(references.memory, "measure", nothing)
    file = tmp_path / "found.json"
    done = CliRunner().invoke(main, ["references", "--quick", "--rounds", "1", "--json", str(file)])
    assert done.exit_code == 0, done.output
    assert "arrays is missing: no such system" in done.output
    found = json.loads(file.read_text())
    assert found["peers"]["ferryvm"] == ferryvm.__version__
    assert found["programs"]["sort"]["over_gcc"].keys() >= {"llvm", "threaded"}
    assert found["collections"]["bytes_per_second"] > 0
    assert found["passing"]["slowest"] > 0
