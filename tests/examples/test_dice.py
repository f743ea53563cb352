# SPDX-License-Identifier: Apache-2.0
"""The example of host functions in Python, run, compared and recorded as its first lines say."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..command import ferry

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "dice"
PROGRAM = EXAMPLE / "dice.skiff"
HOSTS = ("--hosts", f"{EXAMPLE / 'dice.py'}:hosts")
OUTPUT = "103\n201\n295\n406\n483\n589\n518\n395\n314\n206\n90\n"


def test_program_prints_how_often_each_sum_came() -> None:
    assert ferry("run", PROGRAM, *HOSTS, "--backend", "switch") == (0, OUTPUT, "")
    assert sum(map(int, OUTPUT.split())) == 3600


def test_rolls_are_replayed_to_backends_that_are_compared() -> None:
    code, out, err = ferry("diff", PROGRAM, *HOSTS, "--backends", "switch,threaded")
    assert (code, out.count("agree"), err) == (0, 2, "")


def test_recorded_rolls_stand_for_the_functions(tmp_path: Path) -> None:
    log = tmp_path / "rolls.log"
    options = ("--backend", "threaded")
    assert ferry("run", PROGRAM, *HOSTS, *options, "--record", log) == (0, OUTPUT, "")
    assert ferry("run", PROGRAM, *options, "--replay", log) == (0, OUTPUT, "")


@pytest.mark.parametrize("command", ["run", "explain"])
def test_program_without_its_functions_is_told_where_it_needs_them(command: str) -> None:
    code, out, err = ferry(command, PROGRAM)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"ferry: {PROGRAM}:13:1: no host function 'seed-dice' (known: ")
