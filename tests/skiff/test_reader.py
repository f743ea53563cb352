# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from ferryvm.errors import SourceError
from ferryvm.skiff.fault import Faults
from ferryvm.skiff.reader import MAX_NESTING, Atom, Datum, Sequence, is_complete, read


def show(datum: Datum) -> str:
    if isinstance(datum, Atom):
        return datum.text
    return "(" + " ".join(show(item) for item in datum.items) + ")"


def read_all(text: str) -> list[str]:
    faults = Faults()
    datums = read(text, "test", faults)
    faults.check()
    return [show(datum) for datum in datums]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("a", ["a"]),
        ("(a(b)c)", ["(a (b) c)"]),
        ("() (())", ["()", "(())"]),
        ("1 ; two ) (\n3", ["1", "3"]),
        ("a #| b #| c |# ( |# d", ["a", "d"]),
        ("(| a b)", ["(| a b)"]),
        ("#t#f #f", ["#t#f", "#f"]),
        ("\ta\r\n\u00a0b", ["a", "b"]),
        ("a|#b", ["a|#b"]),
        ("été->λ!", ["été->λ!"]),
    ],
)
def test_text_is_read_as_datums(text: str, expected: list[str]) -> None:
    assert read_all(text) == expected


def test_places_count_lines_and_columns_from_one() -> None:
    datums = read("(a\n  (b))  c", "test", Faults())
    outer, last = datums
    assert isinstance(outer, Sequence)
    inner = outer.items[1]
    found = [
        (d.place.position.line, d.place.position.column, d.place.length)
        for d in (outer, inner, last)
    ]
    assert found == [(1, 1, 2), (2, 3, 3), (2, 9, 1)]


def test_the_deepest_allowed_nesting_is_read_and_one_more_is_refused() -> None:
    assert read_all("(" * MAX_NESTING + ")" * MAX_NESTING)
    faults = Faults()
    depth = MAX_NESTING + 1
    datums = read("(" * depth + ")" * depth + " a", "test", faults)
    assert [show(datum) for datum in datums] == ["a"]
    with pytest.raises(SourceError) as caught:
        faults.check()
    assert [d.position.column for d in caught.value.diagnostics] == [depth]


def test_one_unclosed_form_costs_one_form() -> None:
    faults = Faults()
    datums = read("(a)\n(b (c)\n(d)\n(e\n(f)", "test", faults)
    assert [show(datum) for datum in datums] == ["(a)", "(d)", "(f)"]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("(a)", True),
        ("(a", False),
        ("(a ; )", False),
        ("(a) #| b", False),
        ("#| #| |#", False),
        ("a)", True),
        ("(a))(", True),
        ('"(', True),
    ],
)
def test_a_text_is_complete_when_nothing_is_open(text: str, complete: bool) -> None:
    assert is_complete(text) is complete
