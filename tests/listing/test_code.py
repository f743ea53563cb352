# SPDX-License-Identifier: Apache-2.0
"""Code as arrays and code as items are the same code."""

import dataclasses
from pathlib import Path

import pytest

from ferryvm.asm import parse
from ferryvm.errors import Position
from ferryvm.isa import BY_MNEMONIC
from ferryvm.listing import FunctionCode, FunctionListing, Label, Line, Listing
from ferryvm.listing.code import Positions
from ferryvm.listing.encode import EncodeError, encode
from ferryvm.program import Signature

TEXTS = [path.read_text() for path in sorted(Path("examples").glob("*.fasm"))]
HALT = BY_MNEMONIC["halt"].opcode


@pytest.mark.parametrize("text", TEXTS)
def test_items_of_arrays_encode_to_the_same_program(text: str) -> None:
    whole = parse(text)
    straight = encode(whole)
    assert all(isinstance(function.items, list) for function in whole.functions)
    through_items = encode(whole)
    assert straight.code.tobytes() == through_items.code.tobytes()
    assert straight.source_map == through_items.source_map


def test_items_that_were_asked_for_are_the_code_from_then_on() -> None:
    listing = parse(".function main\n nop\n halt\n")
    (function,) = listing.functions
    assert function.code is not None
    del function.items[0]
    assert function.code is None
    assert list(encode(listing).code.opcodes) == [HALT]


def test_a_listing_of_arrays_is_equal_to_one_of_items_and_can_be_replaced() -> None:
    function = FunctionListing.of("main", Signature(), (), FunctionCode([HALT], [0]))
    again = FunctionListing("main", items=[Line(BY_MNEMONIC["halt"])])
    assert function == again
    assert dataclasses.replace(again, name="other").items == again.items


def test_other_attributes_are_not_there() -> None:
    with pytest.raises(AttributeError, match="'other'"):
        _ = FunctionListing("main").other


def test_positions_stop_at_the_end_of_their_function() -> None:
    first = FunctionCode(
        [HALT, HALT], [0, 0], positions=Positions([1, 2], ["a", "a"], [3, 9], [1, 9])
    )
    second = FunctionCode([HALT], [0])
    listing = Listing(
        [
            FunctionListing.of(name, Signature(), (), code)
            for name, code in (("one", first), ("two", second))
        ]
    )
    assert encode(listing).source_map.rows == ((1, 0, 3, 1), (2, 0, 0, 0))


@pytest.mark.parametrize("position", [("a.toy", 1 << 32, 1), ("a.toy", 1, -1)])
def test_a_position_of_more_than_32_bits_is_refused(position: tuple[str, int, int]) -> None:
    line = Line(BY_MNEMONIC["halt"], None, Position(*position))
    with pytest.raises(EncodeError, match=r"a.toy:.*: lines and columns are from 0 to 4294967295"):
        encode(Listing([FunctionListing("f", items=[line])]))


def test_a_label_twice_in_items_is_refused() -> None:
    listing = Listing([FunctionListing("f", items=[Label("x"), Label("x")])])
    with pytest.raises(EncodeError, match="label x twice"):
        encode(listing)


def test_a_position_set_anew_replaces_the_one_that_no_instruction_has() -> None:
    text = """.file 1 "a.toy"
.function main
.loc 1 3 4
.loc self
    nop
.loc none
.loc 1 5
    nop
.loc 1 5
    halt
"""
    assert encode(parse(text, "x")).source_map.rows == ((0, 0, 5, 5), (1, 1, 5, 1))
