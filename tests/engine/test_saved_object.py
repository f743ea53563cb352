# SPDX-License-Identifier: Apache-2.0
"""Saved objects: they go on anywhere, and references that cannot be are refused in one line."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import pytest

from ferryvm import Engine, Execution
from ferryvm.engine.saved import STATE, pack_state, unpack_state
from ferryvm.image import ImageError
from ferryvm.image.container import pack, unpack
from ferryvm.machine.memory import Limits

from .object_program import MIXED, program

LIMITS = Limits(stack=1 << 14, heap=1 << 16, objects=1 << 20)
ENGINE = Engine("switch", limits=LIMITS)

AT = 400
"""Instructions at which states are saved: in the recursion, with both kinds of arrays."""


@pytest.fixture(scope="module")
def stopped() -> Execution:
    execution = ENGINE.start(program(MIXED))
    execution.run(fuel=AT)
    return execution


@pytest.fixture
def content(stopped: Execution) -> bytes:
    return pack_state(stopped.machine, AT)


@pytest.mark.parametrize("fuel", range(0, 1165, 97))
def test_a_saved_state_is_the_state_and_goes_on_to_the_same_end(fuel: int) -> None:
    execution = ENGINE.start(program(MIXED))
    execution.run(fuel=fuel)
    machine, _ = unpack_state(pack_state(execution.machine, fuel), LIMITS, "saved")
    assert machine.snapshot() == execution.machine.snapshot()
    other = Execution(ENGINE, machine, 0.0)
    other.run()
    execution.run()
    assert machine.snapshot() == execution.machine.snapshot()


def test_a_state_is_saved_as_the_same_bytes_before_and_after_a_collection(
    stopped: Execution, content: bytes
) -> None:
    machine, _ = unpack_state(content, LIMITS, "saved")
    assert machine.objects is not None
    machine.objects.collect()
    assert pack_state(machine, AT) == content


# --- lies -----------------------------------------------------------------------------------------


def changed(content: bytes, section: str, change: Callable[[bytearray], None]) -> bytes:
    sections = unpack(STATE, content, "saved")
    part = bytearray(sections[section])
    change(part)
    return pack(STATE, {**sections, section: bytes(part)})


def in_objects(content: bytes, change: Callable[[bytearray], None]) -> bytes:
    """With the objects unpacked for the change; the size of the space stays."""

    def repacked(part: bytearray) -> None:
        inner = bytearray(zlib.decompress(part[8:]))
        change(inner)
        part[8:] = zlib.compress(bytes(inner))

    return changed(content, "OBJS", repacked)


def word(at: int, value: int) -> Callable[[bytearray], None]:
    def change(part: bytearray) -> None:
        struct.pack_into("<Q", part, at, value)

    return change


def offsets(content: bytes) -> dict[str, int]:
    """The static references of a state."""
    words = struct.unpack("<3Q", unpack(STATE, content, "saved")["STAT"])
    return dict(zip(("kept", "table", "many"), words, strict=True))


def refused(content: bytes, match: str) -> None:
    with pytest.raises(ImageError, match=match) as caught:
        unpack_state(content, LIMITS, "x.ferry")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [4, 7, 1 << 40, (1 << 64) - 8, 16])
def test_a_static_that_is_no_object_of_its_type_is_refused(content: bytes, value: int) -> None:
    lie = changed(content, "STAT", word(0, value))
    refused(lie, "x.ferry: not a state of its program: static 'kept' is not a node")


def test_a_static_of_the_wrong_type_is_refused(content: bytes) -> None:
    lie = changed(content, "STAT", word(0, offsets(content)["many"]))
    refused(lie, "static 'kept' is not a node")


def test_a_word_of_the_stack_of_the_wrong_type_is_refused(
    stopped: Execution, content: bytes
) -> None:
    objects, stack = stopped.machine.objects, unpack(STATE, content, "saved")["STCK"]
    assert objects is not None
    at = stack.index(struct.pack("<Q", offsets(content)["table"]))
    lie = changed(content, "STCK", word(at, offsets(content)["many"]))
    refused(lie, rf"word {at // 8} of the stack is not a node\[\]")


def test_a_field_of_the_wrong_type_is_refused(content: bytes) -> None:
    at = offsets(content)["kept"]
    lie = in_objects(content, word(at + 24, offsets(content)["many"]))  # left
    refused(lie, "field 2 of a node is not a node")
    refused(in_objects(content, word(at + 8, 1 << 32)), "field 0 of a node is not an i32")


def test_an_element_of_the_wrong_type_is_refused(content: bytes) -> None:
    size = struct.unpack_from("<Q", unpack(STATE, content, "saved")["OBJS"])[0]
    lie = in_objects(content, word(size, offsets(content)["many"]))
    refused(lie, r"an element of a node\[\] is not a node")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (word(0, 1), "do not begin with a word that is 0"),
        (word(8, 2 * 99 + 1), "the object at 8 has the header 0xc7"),
        (word(8, 1), "the object at 8 has the header 0x1"),
        (lambda part: part.extend(bytes(8)), "more or fewer bytes"),
        (lambda part: part.__delitem__(slice(-8, None)), "more or fewer bytes|not a"),
    ],
)
def test_objects_that_are_none_are_refused(
    content: bytes, change: Callable[[bytearray], None], match: str
) -> None:
    refused(in_objects(content, change), match)


def test_sections_that_cannot_be_unpacked_are_refused(content: bytes) -> None:
    refused(changed(content, "OBJS", lambda part: part.clear()), "0 bytes in section OBJS")
    refused(changed(content, "OBJS", word(0, 12)), "12 bytes of objects, a multiple of 8")
    refused(changed(content, "OBJS", word(0, 1 << 50)), "needs more than 1048576 bytes of objects")
    refused(changed(content, "OBJS", word(16, 0)), "cannot be unpacked")


def test_objects_past_the_limit_are_refused(content: bytes) -> None:
    with pytest.raises(ImageError, match="needs more than 4096 bytes of objects; raise the limit"):
        unpack_state(content, Limits(stack=1 << 14, objects=1 << 12), "x.ferry")
