# SPDX-License-Identifier: Apache-2.0
"""The first difference of two images of objects of one program.

Words are compared one by one. In a field or an element of float type any NaN equals any NaN.
"""

from __future__ import annotations

from collections.abc import Iterator

from ferryvm.isa.declared_type import StructType, TypeHierarchy
from ferryvm.isa.object import LENGTH_OFFSET, STRUCT_HEADER_BYTES
from ferryvm.isa.type import WORD_BYTES, Type, ValueType
from ferryvm.machine.collection import ShapeKind
from ferryvm.machine.difference import Difference, is_nan
from ferryvm.machine.object_memory import ObjectImage
from ferryvm.machine.object_shape import Shapes
from ferryvm.machine.object_walk import ImageFault, PlacedObject, objects
from ferryvm.machine.sparse import Sparse
from ferryvm.program import Program


def object_difference(
    program: Program, left: ObjectImage | None, right: ObjectImage | None
) -> Difference | None:
    """The first word that differs in the objects of two states, None if they are equal."""
    if left == right or left is None or right is None:
        return None
    shapes, types = Shapes(program), TypeHierarchy(program.types)
    found = _in_space(shapes, types, left.space, right.space)
    if found is not None:
        return found
    if len(left.space) != len(right.space):
        return Difference("bytes of objects", str(len(left.space)), str(len(right.space)))
    arrays = [one for one in _objects(shapes, left.space) if one.is_outside]
    for one, a, b in zip(arrays, left.elements, right.elements, strict=True):
        found = _in_elements(shapes, types, one, a, b)
        if found is not None:
            return found
    return None


def _objects(shapes: Shapes, space: Sparse) -> Iterator[PlacedObject]:
    return objects(memoryview(space.cut(0, len(space))).cast("Q"), shapes)


def _in_space(
    shapes: Shapes, types: TypeHierarchy, left: Sparse, right: Sparse
) -> Difference | None:
    different = list(left.unequal(right))
    if not different:
        return None
    walk = _objects(shapes, left)
    try:
        current = next(walk, None)
        for word in different:
            offset = WORD_BYTES * word
            while current is not None and current.end <= offset:
                current = next(walk, None)
            if current is None:
                break
            found = _at_word(shapes, types, current, offset - current.offset, left, right)
            if found is not None:
                return found
        else:
            return None
    except ImageFault as fault:
        return Difference("objects", str(fault), "others")
    return _difference(f"objects at byte {offset}", left, right, offset, WORD_BYTES)


def _at_word(
    shapes: Shapes,
    types: TypeHierarchy,
    one: PlacedObject,
    at: int,
    left: Sparse,
    right: Sparse,
) -> Difference | None:
    """The difference in a word of an object; None for two NaNs."""
    name = f"object {one.number} ({types.references[one.type]})"
    offset = one.offset + at
    if offset < one.content:
        part = "header"
        if one.kind is not ShapeKind.STRUCT and at:
            part = "length" if at == LENGTH_OFFSET else "place"
        return _difference(f"{part} of {name}", left, right, offset, WORD_BYTES)
    if one.kind is ShapeKind.STRUCT:
        index = (at - STRUCT_HEADER_BYTES) // WORD_BYTES
        declared = types.declared(one.type)
        assert isinstance(declared, StructType)
        field = declared.fields[index]
        return _value_difference(
            f"field {field.name} of {name}", field.type, left, right, offset, WORD_BYTES
        )
    (t,) = shapes.fields[one.type]
    for start in range(offset, offset + WORD_BYTES, one.element_bytes):
        index = (start - one.content) // one.element_bytes
        element = f"element {index} of {name}" if index < one.length else f"padding of {name}"
        found = _value_difference(element, t, left, right, start, one.element_bytes)
        if found is not None:
            return found
    return None


def _in_elements(
    shapes: Shapes, types: TypeHierarchy, one: PlacedObject, left: Sparse, right: Sparse
) -> Difference | None:
    """The first difference in elements outside the space."""
    name = f"object {one.number} ({types.references[one.type]})"
    (t,) = shapes.fields[one.type]
    for word in left.unequal(right):
        for start in range(WORD_BYTES * word, WORD_BYTES * (word + 1), one.element_bytes):
            element = f"element {start // one.element_bytes} of {name}"
            found = _value_difference(element, t, left, right, start, one.element_bytes)
            if found is not None:
                return found
    if len(left) != len(right):
        return Difference(f"bytes of elements of {name}", str(len(left)), str(len(right)))
    return None


def _value_difference(
    name: str, t: ValueType, left: Sparse, right: Sparse, offset: int, size: int
) -> Difference | None:
    a, b = (int.from_bytes(one.cut(offset, offset + size), "little") for one in (left, right))
    if a == b or (isinstance(t, Type) and is_nan(t, a) and is_nan(t, b)):
        return None
    return Difference(name, f"{a:#x}", f"{b:#x}")


def _difference(name: str, left: Sparse, right: Sparse, offset: int, size: int) -> Difference:
    texts = (
        f"{int.from_bytes(one.cut(offset, offset + size), 'little'):#x}" for one in (left, right)
    )
    return Difference(name, *texts)
