# SPDX-License-Identifier: Apache-2.0
"""Programs come back from their images as they went, whatever they hold."""

from __future__ import annotations

import dataclasses
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferryvm.image import from_bytes, to_bytes
from ferryvm.isa import F32, F64, I32, I64, Type
from ferryvm.program import (
    Clause,
    Code,
    Data,
    Export,
    Function,
    HostImport,
    Program,
    Signature,
    SourceMap,
    Static,
    Tag,
)

from ..tier import examples

WORDS = st.integers(0, (1 << 64) - 1)
HALF_WORDS = st.integers(0, (1 << 32) - 1)
NAMES = st.text(max_size=12)
TYPES = st.lists(st.sampled_from(Type), max_size=5).map(tuple)
SIGNATURES = st.builds(Signature, TYPES, TYPES)


def tuples(items: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(items, max_size=4).map(tuple)


@st.composite
def codes(draw: st.DrawFn) -> Code:
    records = draw(st.lists(st.tuples(st.integers(0, 65535), st.binary(min_size=6, max_size=6),
                                      WORDS), max_size=6))  # fmt: skip
    return Code(b"".join(struct.pack("<H6sQ", *record) for record in records))


@st.composite
def source_maps(draw: st.DrawFn) -> SourceMap:
    files = draw(st.lists(NAMES, max_size=3).map(tuple))
    pcs = sorted(draw(st.sets(HALF_WORDS, max_size=5)))
    rows = []
    for pc in pcs:
        # Line 0 says that there is no position, so that its file may be any number.
        line = draw(st.integers(1, (1 << 32) - 1)) if files else 0
        file = draw(st.integers(0, len(files) - 1)) if files else draw(HALF_WORDS)
        rows.append((pc, file, line, draw(HALF_WORDS)))
    return SourceMap(files, tuple(rows))


PROGRAMS = st.builds(
    Program,
    code=codes(),
    functions=tuples(st.builds(Function, NAMES, WORDS, WORDS, TYPES)),
    signatures=tuples(SIGNATURES),
    statics=tuples(st.builds(Static, NAMES, st.sampled_from(Type), WORDS)),
    data=tuples(st.builds(Data, WORDS, st.binary(max_size=20))),
    table=tuples(WORDS),
    hosts=tuples(st.builds(HostImport, NAMES, SIGNATURES)),
    exports=tuples(st.builds(Export, NAMES, WORDS)),
    tags=tuples(st.builds(Tag, NAMES, TYPES)),
    clauses=tuples(
        st.builds(
            Clause, WORDS, WORDS, WORDS, WORDS, st.none() | st.integers(0, 2**64 - 2), st.booleans()
        )
    ),
    source_map=source_maps(),
)


def parts(program: Program) -> dict[str, object]:
    """Everything in a program, comparable."""
    found = {field.name: getattr(program, field.name) for field in dataclasses.fields(program)}
    return {**found, "code": program.code.tobytes()}


@examples(35)
@given(PROGRAMS)
def test_any_program_comes_back_and_gives_the_same_image(program: Program) -> None:
    image = to_bytes(program)
    read = from_bytes(image)
    assert parts(read) == parts(program)
    assert to_bytes(read) == image
    assert len(image) % 8 == 0


def test_empty_program_has_an_image() -> None:
    assert parts(from_bytes(to_bytes(Program()))) == parts(Program())


@pytest.mark.parametrize(
    "name", ["", "a\nb", "\0", "\U0001f40d", "e\u0301", "\ufeff", "\x1b[31m", "x" * 70_000]
)
def test_odd_names_come_back(name: str) -> None:
    program = Program(
        functions=(Function(name, 0, 0),),
        statics=(Static(name, F32, 1),),
        hosts=(HostImport(name, Signature((I32, F64), (I64,))),),
        source_map=SourceMap((name,), ((0, 0, 1, 1),)),
    )
    assert parts(from_bytes(to_bytes(program))) == parts(program)


def test_name_that_has_no_utf_8_is_written_as_its_escape() -> None:
    # What os.fsdecode makes of a file name that is not UTF-8.
    program = Program(functions=(Function("caf\udce9.skiff", 0, 0),))
    assert from_bytes(to_bytes(program)).functions[0].name == "caf\\udce9.skiff"


def test_code_that_is_read_cannot_be_written_to() -> None:
    program = from_bytes(to_bytes(Program(code=Code.of([0] * 3, [0] * 3))))
    with pytest.raises(TypeError, match="read-only"):
        program.code.opcodes[0] = 1
