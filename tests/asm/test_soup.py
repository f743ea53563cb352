# SPDX-License-Identifier: Apache-2.0
"""Any text either assembles or is refused with faults that have places; nothing else happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferryvm import asm
from ferryvm.asm.classic import MNEMONICS
from ferryvm.errors import SourceError
from ferryvm.image import to_bytes
from ferryvm.isa import INSTRUCTIONS

from ..tier import examples

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.fasm"))
WORDS = st.sampled_from(
    [
        *(row.mnemonic for row in INSTRUCTIONS if row.immediate.value != "none"),
        *MNEMONICS,
        ".function",
        ".local",
        ".static",
        ".host",
        ".table",
        ".data",
        ".bytes",
        ".signature",
        ".file",
        ".loc",
        ".classic",
        ".statics",
        "(",
        ")",
        "->",
        "=",
        ",",
        ";",
        ":a",
        ":b",
        "a",
        "b",
        "f",
        "i64",
        "f64",
        "0",
        "1",
        "-1",
        "1.5",
        "nan",
        "self",
        "none",
        '"x"',
        '"\\q"',
        '"',
        "\n",
        "\n",
        "\n",
    ]
)
CLASSIC_WORDS = st.sampled_from(sorted(MNEMONICS)) | st.sampled_from(
    ["a", "b", ":a", ":b", "0", "1", "2"]
)


def check(text: str) -> None:
    try:
        program = asm.assemble(text, "soup", optimize=True)
    except SourceError as error:
        places = [fault.position.line for fault in error.diagnostics]
    else:
        assert to_bytes(asm.assemble(asm.disassemble(program))) == to_bytes(program)
        return
    assert places
    assert all(1 <= line <= text.count("\n") + 1 for line in places)


@examples(30)
@given(st.lists(WORDS, max_size=40))
def test_words_in_any_order(words: list[str]) -> None:
    check(" ".join(words))
    check(".function main\n" + " ".join(words))


@examples(25)
@given(st.lists(CLASSIC_WORDS, max_size=30))
def test_classic_words_in_any_order(words: list[str]) -> None:
    check(".classic " + " ".join(words))


@examples(20)
@given(st.text(max_size=60))
def test_any_characters(text: str) -> None:
    check(text)
    check(".function main\n" + text)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@examples(8)
@given(data=st.data())
def test_examples_with_a_piece_cut_out_or_put_in(path: Path, data: st.DataObject) -> None:
    text = path.read_text(encoding="utf-8")
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    check(text[:start] + data.draw(st.text(max_size=5)) + text[end:])
