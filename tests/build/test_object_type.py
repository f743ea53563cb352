# SPDX-License-Identifier: Apache-2.0
"""Structs and arrays of the builder: programs that use them, and each way to get them wrong."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.build import (
    ANYREF,
    ARRAYREF,
    F64_ARRAY,
    I31REF,
    I32,
    I64,
    BuildError,
    Function,
    Program,
    Struct,
)
from ferryvm.verify import verify


def linked() -> tuple[Program, Struct]:
    p = Program()
    node = p.struct("node", {"value": I64})
    node.field("next", node)
    return p, node


def test_a_list_is_built_and_summed() -> None:
    p, node = linked()
    f = p.function("total", {"n": node}, [I64])
    total = f.local("total", I64)
    with f.block() as done, f.loop() as again:
        f.local_get("n")
        f.ref_is_null()
        f.br_if(done)
        f.local_get(total)
        f.local_get("n")
        f.struct_get(node["value"])
        f.i64_add()
        f.local_set(total)
        f.local_get("n")
        f.struct_get(node["next"])
        f.local_set("n")
        f.br(again)
    f.local_get(total)
    main = p.function("main", results=[I64])
    for value in (1, 20, 300):
        main.i64_const(value)
    main.ref_null(node)
    for _ in range(3):
        main.struct_new(node)
    main.call(f)
    p.start(main)
    assert ferryvm.run(p.build(), backend="reference").value == 321


def test_numbers_of_types_are_those_of_their_declarations() -> None:
    p, node = linked()
    nodes = node.array
    leaf = p.struct("leaf", {"more": nodes}, extends=node)
    grid = nodes.array
    assert [t.type.number for t in (node, nodes, leaf, grid)] == [14, 15, 16, 17]
    assert [str(t.type) for t in (nodes, grid)] == ["node[]", "node[][]"]
    assert node.array is nodes
    assert p.array(node) is nodes
    p.start(p.function("main"))
    assert [t.name for t in p.build().types] == ["node", "node[]", "leaf", "node[][]"]
    assert list(leaf.fields) == ["value", "next", "more"]


def test_labels_and_blocks_take_operands_of_subtypes() -> None:
    p, node = linked()
    leaf = p.struct("leaf", extends=node)
    twig = p.struct("twig", extends=node)
    f = p.function("f", {"c": I32}, [node])
    other, end = f.label(), f.label()
    f.local_get("c")
    f.jump_if(other)
    f.struct_new_default(leaf)
    f.jump(end)
    f.place(other)
    f.struct_new_default(twig)
    f.place(end)
    assert f.stack == (node.type,)
    with f.block([ANYREF]):
        f.struct_new_default(twig)
    assert f.stack == (node.type, ANYREF)
    f.drop()
    f.local_get("c")
    with f.if_([node]):
        f.struct_new_default(leaf)
        f.else_()
        f.ref_null(twig)
    f.local_get("c")
    f.select()
    assert f.stack == (node.type,)
    p.start(p.function("main"))
    verify(p.build())


def test_a_number_does_not_fit_a_reference_nor_a_parent_a_child() -> None:
    p, node = linked()
    leaf = p.struct("leaf", extends=node)
    f = p.function("f", {"n": node, "l": leaf})
    f.local_get("n")
    with pytest.raises(BuildError, match=r"local_set takes \(leaf\), the stack has \(node\)"):
        f.local_set("l")
    with pytest.raises(BuildError, match=r"i64_eqz takes \(i64\), the stack has \(node\)"):
        f.i64_eqz()
    f.i64_const(0)
    with pytest.raises(BuildError, match=r"array_get_f64 takes \(f64\[\] i64\)"):
        f.array_get_f64()
    with pytest.raises(
        BuildError, match=r"struct_new takes \(i64 node\), the stack has \(node i64"
    ):
        f.struct_new(node)


def faults() -> list[tuple[Callable[[Program, Struct, Function], object], str]]:
    other = Program().struct("node")
    return [
        (lambda p, n, f: p.struct("node"), "struct 'node': there is already a type of this name"),
        (lambda p, n, f: p.struct("f64"), "struct 'f64': there is already a type of this name"),
        (lambda p, n, f: p.struct("a b"), "struct 'a b': a name is letters, digits and _"),
        (
            lambda p, n, f: p.struct("x", extends=other),
            "struct 'x' extends a struct of this program",
        ),
        (lambda p, n, f: p.struct("x", {"a": int}), "struct 'x': field 'a': I32, I64, F32, F64 or"),
        (
            lambda p, n, f: n.field("value", I64),
            "struct 'node': field 'value': there is one already",
        ),
        (lambda p, n, f: n.field("a.b", I64), "struct 'node': field 'a.b': a name is letters"),
        (lambda p, n, f: n["nxt"], "struct 'node' has no field 'nxt'; did you mean 'next'?"),
        (lambda p, n, f: p.array(I64), "array takes a reference type; for numbers write U8_ARRAY"),
        (
            lambda p, n, f: p.static("s", n, 1),
            "static 's', which starts as null: 1 is out of range",
        ),
        (lambda p, n, f: f.struct_new(other), "struct_new takes a struct of this program, found"),
        (lambda p, n, f: f.struct_new(n.array), "struct_new takes a struct of this program, found"),
        (
            lambda p, n, f: f.struct_get("next"),
            "struct_get takes a field of a struct of this program",
        ),
        (lambda p, n, f: f.ref_null(I64), "ref_null takes a reference type of this program, found"),
        (lambda p, n, f: f.array_new_ref(n), "array_new_ref takes a type of arrays of references"),
        (lambda p, n, f: f.array_new_ref(F64_ARRAY), "array_new_ref takes a type of arrays of"),
        (lambda p, n, f: p.function("g", [other]), "function 'g': a list of I32, I64, F32, F64 or"),
    ]


@pytest.mark.parametrize("number", range(len(faults())))
def test_a_fault_names_what_is_wrong(number: int) -> None:
    call, message = faults()[number]
    p, node = linked()
    f = p.function("f")
    with pytest.raises(BuildError, match=re.escape(message)):
        call(p, node, f)
    assert f.stack == ()


def test_a_struct_that_is_made_by_code_or_extended_has_all_its_fields() -> None:
    p, node = linked()
    p.struct("leaf", extends=node)
    with pytest.raises(BuildError, match="the struct is made by code, or extended, already"):
        node.field("late", I64)
    pair = p.struct("pair")
    p.function("f").struct_new(pair)
    with pytest.raises(BuildError, match="the struct is made by code, or extended, already"):
        pair.field("late", I64)


def test_any_reference_type_can_be_stated() -> None:
    p = Program()
    f = p.function("f", [ANYREF, ARRAYREF, I31REF, F64_ARRAY])
    assert str(f.signature) == "(anyref arrayref i31ref f64[]) -> ()"


def test_element_of_a_matrix_is_found_by_row_and_column() -> None:
    p = Program()
    at = p.function("at", {"row": I64, "column": I64, "rows": I64, "columns": I64}, [I64])
    row, column, rows, _ = at.parameters
    at.local_get(row), at.local_get(column), at.index_2d(rows, "columns")
    p.export(at)
    main = p.function("main")
    main.halt()
    p.start(main)
    instance = ferryvm.Engine("reference").instantiate(p.build())
    assert instance.at(1, 2, 2, 3) == 5
    for outside in ((2, 0, 2, 3), (0, 3, 2, 3), (-1, 0, 2, 3)):
        with pytest.raises(ferryvm.TrapError, match="index out of bounds"):
            instance.at(*outside)
