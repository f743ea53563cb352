# SPDX-License-Identifier: Apache-2.0
"""Decoding undoes encoding, and refuses programs that encoding would not have written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from ferryvm.asm import assemble
from ferryvm.errors import FerryError
from ferryvm.isa import BY_MNEMONIC, I32, I64
from ferryvm.listing import Label, Line
from ferryvm.listing.decode import DecodeError, decode
from ferryvm.program import Clause, Code, Export, Program, Signature, SourceMap, Static, Tag

TEXT = """
.host print_i64 (i64)
.static s i64
.table f
.function main
    i32.const 1
    jump_table far near far
:near
    i64.const 1
    i32.const 0
    call_indirect (i64) -> (i64)
    host print_i64
:far
    halt
.function f (i64) -> (i64)
    jump end
:end
    local.get 0
    return
"""


def patched(pc: int, mnemonic: str | None = None, immediate: int | None = None) -> Program:
    """The program with another instruction at a pc."""
    program = assemble(TEXT)
    code = program.code.records.copy()
    if mnemonic is not None:
        code["opcode"][pc] = BY_MNEMONIC[mnemonic].opcode
    if immediate is not None:
        code["immediate"][pc] = immediate
    return dataclasses.replace(program, code=Code(code.tobytes()))


def test_labels_are_numbered_by_place_in_each_function() -> None:
    listing = decode(assemble(TEXT))
    labels = [[i.name for i in f.items if isinstance(i, Label)] for f in listing.functions]
    assert labels == [["L0", "L1"], ["L0"]]
    jumps = [
        i.operand
        for f in listing.functions
        for i in f.items
        if isinstance(i, Line) and i.row.mnemonic.startswith("jump")
    ]
    assert jumps == [("L1", "L0", "L1"), "L0"]


def test_signatures_keep_their_numbers() -> None:
    program = assemble(".signature (i32)\n.signature (f64) -> i32" + TEXT)
    assert program.signatures[:2] == (Signature((I32,)), program.signatures[1])
    assert decode(program).extra_signatures == program.signatures


def test_signatures_in_natural_order_are_not_stated() -> None:
    assert decode(assemble(TEXT)).extra_signatures == ()


def swap_entries(program: Program) -> Program:
    main, f = program.functions
    functions = (dataclasses.replace(f, entry=0), dataclasses.replace(main, entry=f.entry))
    return dataclasses.replace(program, functions=functions[::-1])


def replace(**parts: object) -> Callable[[Program], Program]:
    return lambda program: dataclasses.replace(program, **parts)  # type: ignore[arg-type] - tests


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (swap_entries, "no listing at pc 0: code stands before the first function"),
        (replace(functions=()), "code stands before the first function"),
        (replace(signatures=()), "function 'main' has signature 0, of 0"),
        (replace(table=(9,)), "no function has number 9"),
        (replace(statics=(Static("s", I32, 1 << 32),)), "'s' starts with more bits than i32"),
        (
            replace(signatures=(Signature(), Signature((I64,), (I64,)), Signature())),
            "encoding would write its signatures otherwise",
        ),
        (replace(exports=(Export("f", 9),)), "no function has number 9"),
        (replace(exports=(Export("f", 0),) * 2), "two exports are named 'f'"),
        (replace(tags=(Tag("e"),) * 2), "two tags are named 'e'"),
        (replace(clauses=(Clause(0, 1, 0, tag=0),)), "no tag has number 0"),
        (replace(clauses=(Clause(99, 1, 0),)), "at pc 99: a clause starts past the end"),
        (
            replace(clauses=(Clause(0, 1, 11),)),
            "at pc 11: a clause of another function refers to it",
        ),
        (
            replace(clauses=(Clause(0, 1, 0, tag=0, record=True),), tags=(Tag("e"),)),
            "at pc 0: a clause of one tag pushes a record",
        ),
        (
            replace(source_map=SourceMap(("a",), ((0, 0, 1, 1), (1, 0, 1, 1)))),
            "encoding would write its source map otherwise",
        ),
    ],
)
def test_program_of_another_layout_is_refused(
    alter: Callable[[Program], Program], message: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(alter(assemble(TEXT)))
    assert message in str(caught.value)
    assert isinstance(caught.value, FerryError)


@pytest.mark.parametrize(
    ("pc", "mnemonic", "immediate", "message"),
    [
        (1, None, 3, "at pc 1: not every entry of a jump table is a jump"),
        (1, None, 1 << 60, "at pc 1: not every entry of a jump table is a jump"),
        (11, "jump", 3, "at pc 3: a jump goes to it from another function"),
        (2, "jump", 3, "at pc 3: a jump goes into a jump table"),
        (5, "call", 2, "at pc 5: no function has number 2"),
        (5, "host", 1, "at pc 5: no host import has number 1"),
        (5, "call_indirect", 7, "at pc 5: no signature has number 7"),
        (5, "i32.const", 1 << 32, "at pc 5: the literal has more bits than i32"),
        (5, "nop", 1, "at pc 5: unused bits of the instruction are set"),
    ],
)
def test_instruction_that_no_listing_holds_is_refused(
    pc: int, mnemonic: str | None, immediate: int, message: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(patched(pc, mnemonic, immediate))
    assert message in str(caught.value)


def test_unknown_opcode_and_reserved_bytes_are_refused() -> None:
    program = assemble(TEXT)
    code = program.code.records.copy()
    code["opcode"][0] = 60_000
    with pytest.raises(DecodeError, match="at pc 0: no instruction has opcode 60000"):
        decode(dataclasses.replace(program, code=Code(code.tobytes())))
    code = program.code.records.copy()
    code["zero"][4] = np.void(b"\0\1\0\0\0\0")
    with pytest.raises(DecodeError, match="at pc 4: unused bits"):
        decode(dataclasses.replace(program, code=Code(code.tobytes())))


def test_two_functions_of_one_name_are_refused() -> None:
    program = assemble(TEXT)
    functions = tuple(dataclasses.replace(f, name="same") for f in program.functions)
    with pytest.raises(DecodeError, match="two functions are named 'same'"):
        decode(dataclasses.replace(program, functions=functions))
