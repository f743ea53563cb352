# SPDX-License-Identifier: Apache-2.0
"""The threaded interpreter where the cache has none: handlers of a program's own instructions."""

from __future__ import annotations

from pathlib import Path

import pytest

import ferryvm
from ferryvm.policy.model import build_ours
from ferryvm.program import Program
from ferryvm_backends.threaded import BACKEND, interpreter

SUM = (
    "(define (sum n) (define s 0) (define i 0) (while (< i n) (set! s (+ s i)) (set! i (+ i 1))) s)"
)

INTERPRETED = build_ours({"profile": {"enabled": False}})


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> interpreter.Interpreters:
    """Interpreters of a process with an empty cache, in which none is built later."""
    monkeypatch.setattr(interpreter, "start", lambda run: None)
    found = interpreter.Interpreters()
    monkeypatch.setattr(BACKEND, "_interpreters", found)
    return found


def _sum_to(n: int) -> Program:
    return ferryvm.compile(f"{SUM} (sum {n})")


def test_a_program_runs_without_the_whole_interpreter_and_counts(
    parts: interpreter.Interpreters, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = _sum_to(1000)
    engine = ferryvm.Engine(policy=INTERPRETED)
    assert engine.start(program).run().value == 499500
    assert engine.start(program).run(fuel=100_000).value == 499500
    assert "whole" not in vars(parts)
    monkeypatch.setattr(interpreter, "_part", None)  # the part serves this program, too
    assert engine.start(_sum_to(10)).run().value == 45


def test_what_an_earlier_process_built_is_preferred(parts: interpreter.Interpreters) -> None:
    vars(parts)["whole"] = "all handlers"
    assert parts.soonest(frozenset(), False) == "all handlers"


def test_later_parts_of_a_process_have_all_handlers(
    parts: interpreter.Interpreters, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[frozenset[int]] = []

    class Part:
        def __init__(self, opcodes: frozenset[int], counting: bool) -> None:
            asked.append(opcodes)
            self.opcodes, self.counts = opcodes, (counting,)

    monkeypatch.setattr(interpreter, "_part", Part)
    for opcode in range(interpreter.FEW + 3):
        parts.soonest(frozenset([opcode]), False)
    assert [len(opcodes) for opcodes in asked[:-1]] == [1] * interpreter.FEW
    assert len(asked) == interpreter.FEW + 1
    assert len(asked[-1]) > 300
