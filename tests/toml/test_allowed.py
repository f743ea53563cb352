# SPDX-License-Identifier: Apache-2.0
"""What may stand at a place: words for every type that keys are declared with."""

from __future__ import annotations

import pytest

from ferryvm.toml.allowed import allowed, headed, names_at
from ferryvm.toml.fault import Path

from .sample import SampleKeys

WORDS = {
    "any_whole": "a whole number",
    "size": "a whole number from 1 to 64",
    "least": "a whole number from 0",
    "most": "a whole number up to 1e12",
    "share": "a number above 0, below 1",
    "rate": "a number above 0, up to 1234567",
    "text": "a text",
    "name": "small letters",
    "choice": '"one" or "two"',
    "colour": '"red" or "dark_red"',
    "texts": "a list of texts",
    "names": "a list of small words",
    "sizes": "a list of whole numbers from 1 to 64",
    "flags": "a list of true and false",
    "choices": 'a list of "one" and "two"',
    "rows": "a list of lists",
    "free": "a table",
    "steps": "a table",
    "inner": "a table",
    "part": "a list of tables, each headed [[part]]",
}


@pytest.mark.parametrize("name", SampleKeys.model_fields)
def test_every_type_has_words(name: str) -> None:
    assert allowed(SampleKeys, (name,)) == WORDS[name]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (("texts", 2), "a text"),
        (("sizes", 0), "a whole number from 1 to 64"),
        (("rows", 0), "a list of whole numbers"),
        (("rows", 0, 1), "a whole number"),
        (("free", "x"), "a whole number"),
        (("steps", "red"), "a size, or a table with a size"),
        (("steps", "red", "size"), "a whole number from 1 to 64"),
        (("part", 1), "a table"),
        (("part", 1, "flag"), "true or false"),
        (("part", "flag"), "true or false"),
        (("part", 1, "deep"), "a list of tables, each headed [[part.deep]]"),
        (("part", "deep", "weight"), "a number"),
    ],
)
def test_what_is_inside_has_words(path: Path, words: str) -> None:
    assert allowed(SampleKeys, path) == words


@pytest.mark.parametrize("path", [("none",), ("text", "x"), ("text", 0), ("part", 0, "x", "y")])
def test_there_are_no_words_where_nothing_is_declared(path: Path) -> None:
    assert allowed(SampleKeys, path) == ""


def test_only_tables_under_headers_are_headed() -> None:
    assert headed(SampleKeys, ("part",)) == WORDS["part"]
    for path in (("inner",), ("texts",), ("steps",), ("none",)):
        assert headed(SampleKeys, path) == ""


def test_the_keys_of_a_table_are_known_where_they_are_declared() -> None:
    assert list(names_at(SampleKeys, ("part", 0))) == ["deep", "flag"]
    assert list(names_at(SampleKeys, ("steps",))) == ["red", "dark_red"]
    assert list(names_at(SampleKeys, ("free",))) == []
    assert list(names_at(SampleKeys, ("text",))) == []
