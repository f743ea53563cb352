# SPDX-License-Identifier: Apache-2.0
"""Differences of objects: found in each part of an object, and named; any NaN equals any NaN."""

from __future__ import annotations

import dataclasses
import struct

import pytest

from ferryvm import Engine, asm
from ferryvm.machine.object_difference import object_difference
from ferryvm.machine.object_memory import ObjectImage
from ferryvm.machine.sparse import Sparse
from ferryvm.verify import verify

PROGRAM = verify(
    asm.assemble(
        """
        .struct pair x f64 n i32 f f32
        .static a pair
        .static b f32[]
        .static c f64[]
        .function main
            struct.new_default pair
            static.set a
            i64.const 3
            array.new_default_f32
            static.set b
            i64.const 5000
            array.new_default_f64
            static.set c
            halt
        """,
        "<test>",
    )
)


@pytest.fixture(scope="module")
def image() -> ObjectImage:
    execution = Engine("switch").start(PROGRAM)
    execution.run()
    found = execution.machine.snapshot().objects
    assert found is not None
    return found


def with_bytes(image: ObjectImage, at: int, content: bytes) -> ObjectImage:
    """In the space, or past it in the elements outside."""
    space = bytearray(image.space.cut(0, len(image.space)))
    (elements,) = (bytearray(one.cut(0, len(one))) for one in image.elements)
    if at < len(space):
        space[at : at + len(content)] = content
    else:
        elements[at - len(space) : at - len(space) + len(content)] = content
    return ObjectImage(Sparse.of(bytes(space)), (Sparse.of(bytes(elements)),))


# Offsets: a at 8 (header, x, n, f), b at 40 (header, length, place, 3 elements), c at 80.
@pytest.mark.parametrize(
    ("at", "field"),
    [
        (8, "header of object 0 (pair)"),
        (16, "field x of object 0 (pair)"),
        (24, "field n of object 0 (pair)"),
        (40, "header of object 1 (f32[])"),
        (48, "length of object 1 (f32[])"),
        (56, "place of object 1 (f32[])"),
        (68, "element 1 of object 1 (f32[])"),
        (76, "padding of object 1 (f32[])"),
        (104 + 8 * 4999, "element 4999 of object 2 (f64[])"),
    ],
)
def test_a_difference_is_named(image: ObjectImage, at: int, field: str) -> None:
    found = object_difference(PROGRAM.program, image, with_bytes(image, at, b"\x01"))
    assert found is not None
    assert found.field == field


@pytest.mark.parametrize(("at", "form"), [(16, "<Q"), (32, "<I"), (68, "<I"), (104 + 80, "<Q")])
def test_any_nan_of_an_object_equals_any_nan(image: ObjectImage, at: int, form: str) -> None:
    nans = (0x7FF8 << 48, 0xFFF0_0000_0000_0001) if form == "<Q" else (0x7FC0_0000, 0xFF80_0001)
    left, right = (with_bytes(image, at, struct.pack(form, nan)) for nan in nans)
    assert left != right
    assert object_difference(PROGRAM.program, left, right) is None
    number = with_bytes(image, at, struct.pack(form, 1))
    assert object_difference(PROGRAM.program, left, number) is not None


def test_images_of_other_sizes_differ(image: ObjectImage) -> None:
    shorter = dataclasses.replace(image, space=Sparse.of(image.space.cut(0, 80)))
    found = object_difference(PROGRAM.program, image, shorter)
    assert found is not None
    assert found.field == "bytes of objects"
