# SPDX-License-Identifier: Apache-2.0
"""Random launches in Skiff: all forms occur, and their items are independent."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from ferryvm import skiff
from ferryvm.testing import Differ, Verdict
from ferryvm.testing.generate import LIMITS, MOST_INSTRUCTIONS, Weights, skiff_source
from ferryvm.testing.schedule import Schedule
from ferryvm.verify import verify

from ...tier import sample

COUNT = 60
WEIGHTS = Path(__file__).parent.parent.parent / "fuzz" / "launches.toml"


@functools.cache
def texts() -> tuple[str, ...]:
    weights = Weights.load(WEIGHTS)
    return tuple(skiff_source(8, number, weights) for number in range(COUNT))


def items(text: str) -> list[str]:
    """The definitions of functions that are launched, mapped or reduced."""
    return re.findall(r"^\(define \((?:pure|item)\d+ .*(?:\n  .*)+", text, re.MULTILINE)


def test_all_forms_of_launches_occur() -> None:
    text = "".join(texts())
    for form in (
        r"\(for-each-item \d+i64 \(item",
        r"\(for-each-item \(\d+i64 \d+i64\) \(item",
        r"\(for-each-item \(\d+i64 \d+i64 \d+i64\) \(item",
        r"\(for-each-item -",
        r"\(map [-+*] ",
        r"\(map pure\d+ ",
        r"\(map \(pure\d+ ",
        r"\(map! y\d+ ",
        r"\(reduce (\+|\*|min|max|\^) ",
        r"\(reduce pure\d+ ",
        r"\(scan (\+|\*|min|max|\^) ",
        r"\(scan pure\d+ ",
        r"\(atomic-(add|min|max|and|or)! ",
        r"\(atomic-exchange! ",
        r"\(atomic-fetch-add! ",
    ):
        assert re.search(form, text), form


def test_items_do_in_their_turn_what_a_kernel_cannot() -> None:
    every = "".join(definition for text in texts() for definition in items(text))
    for form in ("(print! ", "(throw ", "(array-copy ", "(map ", "(reduce ", "(/ x", "(try "):
        assert form in every, form


def test_items_set_only_what_is_theirs() -> None:
    for text in texts():
        for definition in items(text):
            written = re.findall(r"(?:set!|array-set!|atomic-[-a-z]*!) ([a-z]+)\d", definition)
            assert set(written) <= {"x", "p", "to", "all", "turn"}, definition
            assert not re.search(r"\.store|heap\.alloc|set-record", definition)


@pytest.mark.parametrize("number", sample([*range(COUNT)], default=1))
def test_items_are_independent_and_are_the_same_anywhere_in_their_middle(number: int) -> None:
    differ = Differ(["switch"], limits=LIMITS, most=MOST_INSTRUCTIONS)
    program = verify(skiff.compile(texts()[number]))
    for schedule in (Schedule.INDEPENDENCE, Schedule.SUSPEND):
        (found,) = differ.compare(program, schedule, number)
        assert found.verdict is Verdict.AGREE, found
