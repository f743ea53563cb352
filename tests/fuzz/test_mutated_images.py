# SPDX-License-Identifier: Apache-2.0
"""Altered files never crash or hang the process: a bounded run of `python -m tests.fuzz.mutate`."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

import ferryvm
from ferryvm.backend import Artifact
from ferryvm.image import ImageError, to_bytes
from ferryvm.verify import Verified, verify

from . import dying, mutate, trial
from .mutate import campaign, trial_file
from .seed import seeds
from .trial import Fault, Judge, Outcome

COUNT = 3000
RAN = (Outcome.HALTED, Outcome.TRAPPED, Outcome.STOPPED)


def test_mutated_files_are_refused_or_run_alike_on_every_backend(tmp_path: Path) -> None:
    seed = int(os.environ.get("FERRYVM_FUZZ_SEED", "20261121"))  # campaigns take others
    report = campaign(seed, COUNT, tmp_path / "faults")
    assert not report.faults, report
    assert sum(report.outcomes.values()) == report.trials == COUNT
    assert sum(report.outcomes[outcome] for outcome in RAN) > COUNT // 5, report


def test_seeds_themselves_run() -> None:
    judge = Judge()
    for seed in seeds():
        assert judge.judge(random.Random(1), seed.content) in RAN, seed.name


def test_trial_depends_on_seed_and_number_alone() -> None:
    first = [trial_file(7, number, seeds())[2] for number in range(10)]
    assert first == [trial_file(7, number, seeds())[2] for number in range(10)]
    assert first != [trial_file(8, number, seeds())[2] for number in range(10)]


def test_process_that_dies_is_noticed_and_its_file_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutate, "MODULE", dying.__name__)
    report = campaign(dying.SEED, 6, tmp_path)
    assert report.faults == [f"trial {dying.NUMBER}: the process ended with -11"]
    (kept,) = [path for path in tmp_path.iterdir() if path.suffix != ".txt"]
    assert kept.read_bytes() == trial_file(dying.SEED, dying.NUMBER, seeds())[2]
    assert (sum(report.outcomes.values()), report.trials) == (5, 6)


def test_backend_that_differs_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Judge()
    backend = judge.engines["threaded"].backend
    prepare = backend.prepare

    def prepare_another(verified: Verified) -> Artifact:
        another = ferryvm.assemble(".function main\ni64.const 5\nhalt")
        return prepare(verify(another))

    monkeypatch.setattr(backend, "prepare", prepare_another)
    image = to_bytes(ferryvm.assemble(".function main\ni64.const 4\nhalt"))
    with pytest.raises(Fault, match=r"^threaded and switch differ in stack "):
        judge.judge(random.Random(1), image)


def test_state_that_is_refused_where_it_could_be_reached_is_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise ImageError("no")

    monkeypatch.setattr(trial, "unpack_state", refuse)
    judge, start = Judge(), seeds()[0]
    with pytest.raises(Fault, match=r"^saved by switch after 10, then refused: no$"):
        judge._run_with_move(start.content, "switch", "threaded", 10, 1000)
