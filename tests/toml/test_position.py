# SPDX-License-Identifier: Apache-2.0
"""Where keys stand: every key that a reader of TOML finds has its place, and the right one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from ferryvm.toml.fault import Path
from ferryvm.toml.position import Place, last_key, places

from ..tier import examples

DOCUMENT = """\
# a comment = "not a key"
top = 1
"quoted.key" = 'a # b'
dotted . inner = true

[table]   # [no.header]
  indented = { x = 1, y.z = [ { w = "}" }, 2 ] }
text = \"\"\"
fake = 1
[fake]
quotes "" and \\\"\"\" \"\"\"\"\"
raw = '''
fake = '2' '''''
after = 1979-05-27 07:32:00Z

[[list]]
a = 1
[list.sub]
b = 2
[[list.deep]]
c = 3
[[list.deep]]
c = 4

[[list]]
a = [
    1,   # one
    [ 2, 3 ],
]
[other."odd key".x]
"""


def test_each_key_is_found_at_its_line_and_column() -> None:
    assert set(places(DOCUMENT)) == set(_paths(tomli.loads(DOCUMENT)))
    assert places(DOCUMENT) == {
        ("top",): (2, 1),
        ("quoted.key",): (3, 1),
        ("dotted",): (4, 1),
        ("dotted", "inner"): (4, 1),
        ("table",): (6, 1),
        ("table", "indented"): (7, 3),
        ("table", "indented", "x"): (7, 16),
        ("table", "indented", "y"): (7, 23),
        ("table", "indented", "y", "z"): (7, 23),
        ("table", "indented", "y", "z", 0): (7, 31),
        ("table", "indented", "y", "z", 0, "w"): (7, 33),
        ("table", "indented", "y", "z", 1): (7, 44),
        ("table", "text"): (8, 1),
        ("table", "raw"): (12, 1),
        ("table", "after"): (14, 1),
        ("list",): (16, 1),
        ("list", 0): (16, 1),
        ("list", 0, "a"): (17, 1),
        ("list", 0, "sub"): (18, 1),
        ("list", 0, "sub", "b"): (19, 1),
        ("list", 0, "deep"): (20, 1),
        ("list", 0, "deep", 0): (20, 1),
        ("list", 0, "deep", 0, "c"): (21, 1),
        ("list", 0, "deep", 1): (22, 1),
        ("list", 0, "deep", 1, "c"): (23, 1),
        ("list", 1): (25, 1),
        ("list", 1, "a"): (26, 1),
        ("list", 1, "a", 0): (27, 5),
        ("list", 1, "a", 1): (28, 5),
        ("list", 1, "a", 1, 0): (28, 7),
        ("list", 1, "a", 1, 1): (28, 10),
        ("other",): (30, 1),
        ("other", "odd key"): (30, 1),
        ("other", "odd key", "x"): (30, 1),
    }


def test_an_escaped_key_is_named_by_what_it_means() -> None:
    assert places('"\\u0061\\tb" = 1') == {("a\tb",): (1, 1)}


@pytest.mark.parametrize("text", ["", "\n", "# only a comment", "  \t\n\n# x\n"])
def test_a_document_without_keys_has_no_places(text: str) -> None:
    assert places(text) == {}


def test_the_last_line_needs_no_end() -> None:
    assert places("a = 1\nb = [2]") == {("a",): (1, 1), ("b",): (2, 1), ("b", 0): (2, 6)}


def test_lines_that_end_as_on_windows_count_once() -> None:
    assert places("a = 1\r\n\r\n[b]\r\nc = 2\r\n")["b", "c"] == (4, 1)


def test_a_key_of_very_many_parts_costs_little() -> None:
    found = places("a." * 100_000 + "a = 1\nb = 2\n")
    assert found["b",] == (2, 1)
    assert len(found) < 100


# --- any document ---------------------------------------------------------------------------

BARE = st.text("abc-_19", min_size=1, max_size=3)
QUOTED = st.text(st.sampled_from("ab .#[]{}=,\"'\\\t\u00e9"), max_size=4)
SCALARS = st.sampled_from(["1", "-2.5e3", "true", "1979-05-27 07:32:00", "inf"]) | st.sampled_from(
    [
        '"x"',
        "'#'",
        '""',
        "''",
        '"\\\\"',
        '"a\\"]"',
        '"""a\n"b" = 1"""',
        "'''\n[x]'''''",
        '"""\\\n  x"""""',
    ]
)


def _key(name: str, style: int) -> str:
    if style == 0 and name and all(character in "abc-_19" for character in name):
        return name
    if style == 1 and "'" not in name:
        return f"'{name}'"
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    return f'"{escaped}"'


KEYS = st.builds(_key, BARE | QUOTED, st.integers(0, 2))
GAPS = st.sampled_from(["", " ", "\n", " # [x] = {\n", "\t\n\n"])


@st.composite
def arrays(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    elements = draw(st.lists(values, max_size=3))
    gap = draw(GAPS)
    return "[" + gap + "".join(f"{element}{gap},{gap}" for element in elements) + "]"


@st.composite
def inline_tables(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    entries = draw(st.lists(st.tuples(KEYS, values), max_size=3))
    return "{" + ", ".join(f"{key} = {value}" for key, value in entries) + "}"


VALUES = st.recursive(SCALARS, lambda values: arrays(values) | inline_tables(values), max_leaves=6)


@st.composite
def documents(draw: st.DrawFn) -> str:
    lines = []
    for _ in range(draw(st.integers(0, 6))):
        dotted = " . ".join(draw(st.lists(KEYS, min_size=1, max_size=2)))
        form = draw(st.sampled_from(["{} = {}", "[{}]", "[[ {} ]] # x"]))
        lines.append(form.format(dotted, draw(VALUES)) if "=" in form else form.format(dotted))
    return draw(st.sampled_from(["\n", "\n\n  "])).join(lines)


def _paths(value: object, path: Path = ()) -> Iterator[Path]:
    inside: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value))
    for part, inner in inside:
        yield (*path, part)
        yield from _paths(inner, (*path, part))


@examples(100)
@given(documents())
def test_every_key_that_a_reader_finds_has_a_place_and_no_other(text: str) -> None:
    try:
        document = tomli.loads(text)
    except tomli.TOMLDecodeError:
        return  # a key given twice, for one
    found = places(text)
    assert set(found) == set(_paths(document))
    lines = text.split("\n")
    assert all(lines[line - 1][column - 1 :].strip() for line, column in found.values())


@pytest.mark.parametrize(
    ("text", "is_complete", "path", "place", "first"),
    [
        ("a = 1\nb.c = 2\nb.c = 3", True, ("b", "c"), (3, 1), (2, 1)),
        ("x = [{ y = 1, y = 2", True, ("x", 0, "y"), (1, 15), (1, 8)),
        ("[[l]]\n[[l]]\nk = 1\n[l", True, ("l",), (4, 1), (1, 1)),
        ("a = 1", True, ("a",), (1, 1), (1, 1)),
        ("a = 1\nb = [2, ", False, ("b",), (2, 1), (2, 1)),
    ],
)
def test_the_last_key_before_a_mistake_is_found(
    text: str, is_complete: bool, path: Path, place: Place, first: Place
) -> None:
    assert last_key(text, is_complete) == (path, place, first)


@pytest.mark.parametrize("text", ["", "# a", "a = '", "a = 1\n"])
def test_no_value_begins_where_a_text_ends_otherwise(text: str) -> None:
    assert last_key(text, is_complete=False) is None
