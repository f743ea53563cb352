# SPDX-License-Identifier: Apache-2.0
"""Lines that a table or one regular expression recognises are read as those taken token by
token."""

import weakref
from pathlib import Path

import pytest

from ferryvm.asm import assemble, parse, recognition
from ferryvm.errors import SourceError
from ferryvm.garbage import collector_suspended
from ferryvm.listing.encode import encode

EXAMPLES = sorted(Path("examples").glob("*.fasm"))

EVERY_KIND = """\
.host print_i64 (i64)
.static seen i64
.static twice i64
.static twice i64
.table work
.function main
    i64.const 3
    i64.const -1
    call work
    host print_i64
    f64.const 0x1.8p+1
    drop
    i64.const 0
    i64.load
    drop
    i64.const 0
    i64.load 8
    drop
    static.get 0
    static.set seen
    i64.const 1
    i64.const 1
    i32.const 0
    call_indirect (i64 i64) -> i64
    drop
    halt
.function work (a i64 b i64) -> i64
.local sum i64
:again
    local.get a
    local.get 1
    i64.add
    local.set sum
    local.get late
    drop
    i32.const 1
    jump_table end again end
:end
    local.get sum
    return
.local late f32
.function main2 (a f32 b i64) -> f32
    local.get a
    return 1
    jump none
:none
    jump none
"""


def commented(text: str) -> str:
    """The text with a comment on each line, so that no line is recognised."""
    return "\n".join(f"{line} ; a comment" for line in text.splitlines())


@pytest.mark.parametrize("text", [EVERY_KIND, *[path.read_text() for path in EXAMPLES]])
def test_recognised_lines_mean_what_their_tokens_do(text: str) -> None:
    fast, slow = encode(parse(text)), encode(parse(commented(text)))
    assert fast.code.tobytes() == slow.code.tobytes()
    assert fast.source_map == slow.source_map
    assert parse(text) == parse(commented(text))


def test_a_full_cache_of_lines_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = assemble(EVERY_KIND)
    monkeypatch.setattr(recognition, "_MOST_KNOWN", 2)
    found = assemble(EVERY_KIND)
    assert found.code.tobytes() == expected.code.tobytes()
    assert found.source_map == expected.source_map


@pytest.mark.parametrize(
    "line",
    [
        "i64.const 1.5",
        "i64.const",
        "local.get b",
        "local.get 4294967296",
        "jump 5",
        "jump nowhere",
        "call i64.add",
        "static.get twice",
        "nop 3",
        "i64.load -1",
        "i64.addd",
        "host h 2",
    ],
)
def test_a_fault_is_told_the_same_whether_its_line_is_simple_or_not(line: str) -> None:
    head = ".static twice i64\n.static twice i64\n.function main (a i64)\n"
    messages = []
    for ending in ("", " ;"):
        with pytest.raises(SourceError) as caught:
            encode(parse(f"{head}    {line}{ending}\n"))
        messages.append([diagnostic[:2] for diagnostic in caught.value.diagnostics])
    assert messages[0] == messages[1]


def test_a_text_that_depends_on_its_function_is_read_anew_in_the_next_one() -> None:
    text = """\
.function main
    halt
.function one (a i64) -> i64
    local.get a
    return
.function two (b f64 a i64) -> (f64 i64)
    local.get b
    local.get a
    return
"""
    code = encode(parse(text)).code
    assert list(code.immediates) == [0, 2**64 - 1, 1 << 32 | 1, 2**64 - 2, 2**64 - 1, 2 << 32 | 2]


def test_a_parsed_text_leaves_nothing_to_the_garbage_collector() -> None:
    with collector_suspended():
        listing = weakref.ref(parse(EVERY_KIND))
        assert listing() is None
