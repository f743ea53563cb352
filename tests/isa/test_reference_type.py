# SPDX-License-Identifier: Apache-2.0
"""Reference types: one object for each, their numbers, how they are related, their rows."""

from __future__ import annotations

import copy
import pickle

import pytest

from ferryvm.isa import F64, I32, I64
from ferryvm.isa.declared_type import (
    PREDEFINED,
    ArrayType,
    Field,
    RowKind,
    StructType,
    TypeHierarchy,
)
from ferryvm.isa.element import Element
from ferryvm.isa.object import ROW_WORDS, header, outside_bytes, padded, type_number
from ferryvm.isa.type import ANYREF, ARRAYREF, FIRST_DECLARED, I31REF, Reference

NODE, LEAF, NODES, OTHER = range(FIRST_DECLARED, FIRST_DECLARED + 4)
NODE_FIELDS = (Field("value", I64), Field("next", Reference(NODE, "node")))
TYPES = (
    StructType("node", None, NODE_FIELDS),
    StructType("leaf", NODE, (*NODE_FIELDS, Field("weight", F64))),
    ArrayType(Reference(NODE, "node")),
    StructType("other"),
)
HIERARCHY = TypeHierarchy(TYPES)


def test_a_reference_type_is_one_object() -> None:
    node = Reference(NODE, "node")
    assert Reference(NODE, "node") is node
    assert pickle.loads(pickle.dumps(node)) is node
    assert copy.deepcopy(node) is copy.copy(node) is node
    assert Reference(LEAF, "node") is not node


def test_element_kinds_have_the_numbers_and_widths_of_the_contract() -> None:
    assert [e.array.number for e in Element] == list(range(3, 12))
    assert [e.kind for e in Element] == [
        "i8",
        "u8",
        "i16",
        "u16",
        "i32",
        "u32",
        "i64",
        "f32",
        "f64",
    ]
    assert [e.bytes for e in Element] == [1, 1, 2, 2, 4, 4, 8, 4, 8]
    assert [1 << e.shift for e in Element] == [e.bytes for e in Element]
    assert {e.type for e in Element if e.bits <= 32 and e is not Element.F32} == {I32}
    assert [str(e.array) for e in Element][-1] == "f64[]"


def test_every_program_has_the_predefined_types_by_number() -> None:
    assert [t.number for t in PREDEFINED] == list(range(FIRST_DECLARED))
    assert [str(t) for t in HIERARCHY.references[FIRST_DECLARED:]] == [
        "node",
        "leaf",
        "node[]",
        "other",
    ]
    assert HIERARCHY.declared(NODE) is TYPES[0]
    assert HIERARCHY.declared(I31REF.number) is None


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        (NODE, LEAF, NODE),
        (LEAF, OTHER, ANYREF.number),
        (NODES, Element.F64.array.number, ARRAYREF.number),
        (NODES, ARRAYREF.number, ARRAYREF.number),
        (I31REF.number, NODE, ANYREF.number),
        (Element.U8.array.number, Element.I8.array.number, ARRAYREF.number),
        (ANYREF.number, LEAF, ANYREF.number),
    ],
)
def test_join_is_the_least_common_supertype(left: int, right: int, common: int) -> None:
    assert HIERARCHY.join(left, right) == HIERARCHY.join(right, left) == common
    assert HIERARCHY.is_subtype(left, common)
    assert HIERARCHY.is_subtype(right, common)
    assert HIERARCHY.is_subtype(left, right) == (common == right)


def test_rows_hold_kind_size_depth_and_ancestors() -> None:
    assert HIERARCHY.row(LEAF)[:5] == [32 << 8 | RowKind.STRUCT, 1, NODE, LEAF, 0]
    assert HIERARCHY.row(NODES)[:5] == [8 << 8 | RowKind.REFERENCES, 1, 2, NODES, 0]
    assert HIERARCHY.row(Element.I16.array.number)[:4] == [2 << 8 | RowKind.NUMBERS, 1, 2, 5]
    assert HIERARCHY.row(I31REF.number)[:4] == [RowKind.I31, 0, 1, 0]
    assert HIERARCHY.row(ANYREF.number) == [0] * ROW_WORDS
    assert len(HIERARCHY.rows()) == ROW_WORDS * len(HIERARCHY.references)


def test_header_holds_the_type_number_below_the_flags() -> None:
    assert header(NODE) % 2 == 1
    assert type_number(header(NODE) | 1 << 32) == NODE


@pytest.mark.parametrize(
    ("wanted", "is_array", "outside"),
    [(32792, True, 0), (32800, True, 32776), (32800, False, 0), (24, True, 0)],
)
def test_elements_of_more_than_the_limit_stand_outside(
    wanted: int, is_array: bool, outside: int
) -> None:
    assert outside_bytes(wanted, is_array) == outside
    assert padded(wanted - 7) == wanted
