# SPDX-License-Identifier: Apache-2.0
"""An object that a trial holds as Python does, while the program may drop it.

A program has no handles, so a collector that forgets them, or that gives back the elements of an
array that only Python holds, would not show in its states. A trial that collects at each boundary
therefore holds an object over some of them, and compares its content before and after each
collection: one of the program, which is dropped soonest where only the running function has it, or
a read-only array of the host, which no program makes.

It holds none while an instruction makes an object: a held one that the program has dropped would
count against the limit.
"""

from __future__ import annotations

import ctypes

from ferryvm.isa import INSTRUCTIONS
from ferryvm.isa.effect import Effect, summary
from ferryvm.isa.element import Element
from ferryvm.isa.object import (
    ARRAY_HEADER_BYTES,
    FLAG_BIT,
    LENGTH_OFFSET,
    PLACE_OFFSET,
    STRUCT_HEADER_BYTES,
    is_object,
    type_number,
)
from ferryvm.isa.type import WORD_BYTES, Reference
from ferryvm.machine.collection import MASK, ROW_WORDS, SHAPE_WORDS, ShapeKind
from ferryvm.machine.host_array import HostArray
from ferryvm.machine.host_object import HostObjects
from ferryvm.machine.memory import AddressSpaceError
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.object_shape import ReferenceMap, Shapes
from ferryvm.machine.state import Machine

_COLLECTIONS = 8
"""Collections over which an object is held at most."""

_LENT_EVERY = 5
"""Of so many objects that are held, one is an array of the host."""

_LENT = bytes(range(1, 17))
"""Its content."""

_DEEPEST, _MOST = 2, 32
"""References that are followed from a held object, and words of an object that are compared."""

_MAKING = frozenset(
    row.opcode for row in INSTRUCTIONS if Effect.ALLOCATES_OBJECTS in summary(row).effects
)


class HeldObject:
    """The object that one trial holds, if any."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._shapes, self._map = Shapes(machine.program), ReferenceMap(machine.verified)
        self._handle: int | None = None
        self._left = self._turn = 0

    def collect(self, objects: ObjectMemory) -> None:
        """Perform a collection. Raises ValueError if it changes the object that is held, or as
        `ObjectMemory.collect`."""
        before = self._content(objects)
        objects.collect()
        after = self._content(objects)
        if before != after:
            raise ValueError(f"a collection made {after} of {before}, which only Python held")
        self._left -= 1
        if self._left <= 0 or self._makes_object():
            self.release()
        if self._handle is None and not self._makes_object():
            self._hold(objects)

    def release(self) -> None:
        """Hold nothing."""
        objects = self._machine.objects
        if self._handle is not None and objects is not None:
            objects.handles.release(self._handle)
        self._handle = None

    def _makes_object(self) -> bool:
        """True if the next instruction may make an object."""
        code = self._machine.program.code
        return code.opcodes[self._machine.control.pc] in _MAKING

    def _hold(self, objects: ObjectMemory) -> None:
        """Hold an object of the running function or of a static, or one that this refers to, or
        a host array; in turn."""
        self._turn += 1
        if self._turn % _LENT_EVERY == 0:
            self._lend(objects)
            return
        machine = self._machine
        roots = self._running() if self._turn % 3 else []
        for static, word in zip(machine.program.statics, machine.memory.statics, strict=False):
            if not roots and isinstance(static.type, Reference):
                roots.append(int(word))
        found = [word for word in roots if is_object(word)]
        if not found:
            return
        reference = found[self._turn % len(found)]
        inner = self._references(objects, reference)
        if inner and self._turn % 2:
            reference = inner[self._turn // 2 % len(inner)]
        self._handle, self._left = objects.handles.hold(reference), _COLLECTIONS

    def _running(self) -> list[int]:
        """The words of the running function's frame that are references."""
        control, rows = self._machine.control, self._map.rows
        row = self._map.row(control.pc)
        first = row + ROW_WORDS
        stack = self._machine.memory.stack
        return [stack[(control.fp + n) & MASK] for n in rows[first : first + rows[row]]]

    def _lend(self, objects: ObjectMemory) -> None:
        """Hold a read-only array of the host, if there is memory for its header."""
        content = ctypes.create_string_buffer(_LENT, len(_LENT))
        address, element = ctypes.addressof(content), Element.U8
        one = HostArray(address, element.array.number, len(_LENT), element.bytes, True, content, ())
        try:
            (reference,) = HostObjects(objects, lambda act: act()).lend([one])
        except AddressSpaceError:
            return
        self._handle, self._left = objects.handles.hold(reference), _COLLECTIONS

    def _references(self, objects: ObjectMemory, reference: int) -> list[int]:
        """The objects that an object refers to, of the first ones."""
        words = objects.space.words
        at = reference // WORD_BYTES
        kind, _, first, count = self._shape(type_number(words[at]))
        if kind == ShapeKind.STRUCT:
            offsets = self._shapes.offsets[first : first + count]
            found = [words[at + offset // WORD_BYTES] for offset in offsets]
        elif kind == ShapeKind.REFERENCES:
            found = self._elements(objects, at)[:_MOST].cast("Q").tolist()
        else:
            found = []
        return [word for word in found if is_object(word)]

    def _elements(self, objects: ObjectMemory, at: int) -> memoryview:
        """The bytes of the elements of an array at a word, the first ones."""
        space = objects.space
        number = type_number(space.words[at])
        length = space.words[at + LENGTH_OFFSET // WORD_BYTES]
        place = space.words[at + PLACE_OFFSET // WORD_BYTES]
        size = min(length * self._shape(number)[1], _MOST * WORD_BYTES)
        content = at * WORD_BYTES + ARRAY_HEADER_BYTES
        if place == content:
            return space.bytes[content : content + size]
        return space.block(place)[:size] if length else memoryview(b"")

    def _shape(self, number: int) -> tuple[int, ...]:
        rows = self._shapes.rows[SHAPE_WORDS * number : SHAPE_WORDS * (number + 1)]
        if not rows:
            raise ValueError(f"an object that only Python held has type {number}")
        return tuple(rows)

    def _content(self, objects: ObjectMemory) -> object:
        """The content of the object that is held; None if there is none."""
        if self._handle is None:
            return None
        return self._shown(objects, objects.handles.words[self._handle], _DEEPEST)

    def _shown(self, objects: ObjectMemory, reference: int, depth: int) -> object:
        """The content of an object, without its place in memory."""
        if not is_object(reference) or not depth:
            return "object" if is_object(reference) else reference
        words = objects.space.words
        at = reference // WORD_BYTES
        if reference >= self._machine.control.object_top:
            raise ValueError(f"an object that only Python held is at {reference:#x}")
        number, flags = type_number(words[at]), words[at] >> FLAG_BIT
        kind, size, first, count = self._shape(number)
        if kind == ShapeKind.STRUCT:
            content: list[int] = words[at + 1 : at + size // WORD_BYTES].tolist()
            parts: list[object] = [*content]
            for offset in self._shapes.offsets[first : first + count]:
                place = (offset - STRUCT_HEADER_BYTES) // WORD_BYTES
                parts[place] = self._shown(objects, content[place], depth - 1)
            return number, flags, tuple(parts[:_MOST])
        length = words[at + LENGTH_OFFSET // WORD_BYTES]
        elements = self._elements(objects, at)
        if kind == ShapeKind.REFERENCES:
            held = elements[: len(elements) // WORD_BYTES * WORD_BYTES].cast("Q").tolist()
            return number, flags, length, [self._shown(objects, w, depth - 1) for w in held]
        return number, flags, length, bytes(elements)
