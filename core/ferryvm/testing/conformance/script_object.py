# SPDX-License-Identifier: Apache-2.0
"""Objects in scripts: where they are follows from the program alone, since no collection happens.

    ALLOCATE ──> `object_end` is set so that the object fits, and some bytes more; the elements of a
                 large array are prepared ──> enter again

So a runner needs no collector, and the offsets of objects are the same on every backend. The place
of elements outside of the object space is an address: it counts as 0 in a state, which has these
elements by themselves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ferryvm.isa.object import FIRST_OFFSET, PLACE_OFFSET, padded
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine import object_walk
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.object_shape import Shapes
from ferryvm.machine.state import Machine

_MORE = 64
"""Bytes that are usable besides what an allocation wants: some of the next objects fit at once."""


@dataclasses.dataclass(frozen=True)
class ScriptObjects:
    """The objects of a stopped machine."""

    space: bytes
    """The object space up to `object_top`; places of elements outside are 0."""
    elements: tuple[tuple[int, bytes], ...]
    """The offset of each array with elements outside, and these, padded to words."""


def begin(machine: Machine) -> None:
    """Leave no bytes for objects: the first one to be made leaves with ALLOCATE."""
    machine.control.object_end = machine.control.object_top


def observe_objects(machine: Machine) -> ScriptObjects | None:
    """The objects of a machine; None if its program has none. Raises ValueError if they are no
    objects of it."""
    objects = machine.objects
    if objects is None:
        return None
    top = machine.control.object_top
    if not FIRST_OFFSET <= top <= len(objects.space.bytes) or top % WORD_BYTES:
        raise ValueError(f"object_top is {top}")
    content = bytearray(objects.space.bytes[:top])
    words = memoryview(content).cast("Q")
    elements = []
    for offset, size in _outside(objects.shapes, words):
        at = (offset + PLACE_OFFSET) // WORD_BYTES
        elements.append((offset, bytes(objects.space.block(words[at])[:size]) if size else b""))
        words[at] = 0
    return ScriptObjects(bytes(content), tuple(elements))


def _outside(shapes: Shapes, words: memoryview) -> Iterator[tuple[int, int]]:
    """The arrays with elements outside, and the bytes of these."""
    try:
        for one in object_walk.objects(words, shapes, is_image=False):
            if one.is_outside:
                yield one.offset, padded(one.length * one.element_bytes)
    except object_walk.ImageFault as fault:
        raise ValueError(str(fault)) from None


def write_objects(machine: Machine, wanted: ScriptObjects | None) -> None:
    """Put objects into a machine, with no bytes left for others."""
    objects = machine.objects
    if objects is None or wanted is None:
        return
    large = [offset for offset, _ in wanted.elements]
    objects.restore(wanted.space, large, [content for _, content in wanted.elements])
    begin(machine)


def provision(machine: Machine) -> tuple[int, int] | None:
    """The provision of an engine for the allocation that left: `object_end`, and bytes of elements
    to prepare; None if the limit forbids it."""
    objects, control = machine.objects, machine.control
    assert objects is not None
    elements = objects.outside_of_wanted()
    end = control.object_top + control.wanted - elements
    if end + elements + objects.space.outside_bytes > machine.memory.limits.objects:
        return None
    return end + _MORE, elements


def provide(objects: ObjectMemory, machine: Machine, object_end: int, elements: int) -> None:
    """Provide that."""
    control = machine.control
    if elements:
        place = objects.space.make_block(elements)
        if place is None:
            raise MemoryError(f"no memory for {elements} bytes of elements")
        control.prepared, control.prepared_bytes = place, elements
    control.object_end = object_end
