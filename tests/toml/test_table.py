# SPDX-License-Identifier: Apache-2.0
"""What declared keys do not allow: one line for each fault, about what the file says."""

from __future__ import annotations

import pytest
import tomli

from ferryvm.toml.fault import TomlFault
from ferryvm.toml.table import key_faults, sound

from .sample import SampleKeys, said


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("size = 0", "1:1: size: found 0 (allowed: a whole number from 1 to 64)"),
        ("size = true", "1:1: size: found true (allowed: a whole number from 1 to 64)"),
        ("share = nan", "1:1: share: found nan (allowed: a number above 0, below 1)"),
        ("rate = inf", "1:1: rate: found inf (allowed: a number above 0, up to 1234567)"),
        ("name = 'A'", '1:1: name: found "A" (allowed: small letters)'),
        (
            "colour = 'darkred'",
            '1:1: colour: found "darkred"; did you mean \'dark_red\'? (allowed: "red" or "dark_red")',
        ),
        ("sizes = [1, 65]", "1:13: sizes[2]: found 65 (allowed: a whole number from 1 to 64)"),
        ("part = 3", "1:1: part: found 3 (allowed: a list of tables, each headed [[part]])"),
        ("[inner]", "1:1: inner.flag: is missing (allowed: true or false)"),
        ("[inner]\nflag = true\nx = 1", "3:1: inner.x: unknown key (allowed: deep, flag)"),
        ("[free]\nx = 'a'", '2:1: free.x: found "a" (allowed: a whole number)'),
        (
            "steps = { rde = 3 }",
            "1:11: steps.rde: unknown key; did you mean 'red'? (allowed: dark_red, red)",
        ),
        (
            "steps.red.siz = 3\nsteps.red.size = 1",
            "1:1: steps.red.siz: unknown key; did you mean 'size'? (allowed: size, weight)",
        ),
    ],
)
def test_a_fault_says_what_was_found_and_what_is_allowed(text: str, line: str) -> None:
    assert said(text) == [f"s.toml:{line}"]


def test_nothing_is_said_about_the_value_of_an_unknown_key() -> None:
    for value in ("'x'", "{ size = 0 }", "{ x = 1 }"):
        (line,) = said(f"[steps]\nblue = {value}")
        assert line == "s.toml:2:1: steps.blue: unknown key (allowed: dark_red, red)"


def test_what_a_validator_makes_of_a_value_is_told_as_the_value() -> None:
    wanted = "(allowed: a size, or a table with a size)"
    assert said("[steps]\nred = 65\ndark_red = 'x'") == [
        f"s.toml:2:1: steps.red: found 65 {wanted}",
        f's.toml:3:1: steps.dark_red: found "x" {wanted}',
    ]


def test_a_key_that_is_called_as_pydantic_calls_keys_is_unknown() -> None:
    assert said("part = [{ flag = true, '[key]' = 1 }]") == [
        "s.toml:1:24: part[1].[key]: unknown key (allowed: deep, flag)"
    ]


def test_a_key_of_any_kind_without_faults_is_good() -> None:
    text = "share = 0.25\ncolour = 'red'\nsteps = { red = 3, dark_red = { size = 4, weight = 2 } }"
    assert said(text) == []


def test_what_is_sound_is_left_of_a_document() -> None:
    text = "size = 0\ntexts = ['a', 2]\nsteps = { red = 3, x = 4 }\n[[part]]\nflag = 1\n[[part]]\n"
    document = tomli.loads(text)
    faults = list(key_faults(SampleKeys, document))
    assert sound(document, faults) == {
        "texts": ["a", None],
        "steps": {"red": 3},
        "part": [{}, {}],
    }
    assert sound(document, [TomlFault(("part", 0), "")])["part"] == [None, {}]
