# SPDX-License-Identifier: Apache-2.0
"""Types in assembly: their declarations, their names as operands, and what is said of wrong
ones."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm import asm
from ferryvm.errors import SourceError
from ferryvm.isa.declared_type import ArrayType, Field, StructType
from ferryvm.isa.type import F64, I64, Reference
from ferryvm.program import Program

NODE = Reference(14, "node")


def assembled(*lines: str) -> Program:
    return ferryvm.assemble("\n".join((*lines, ".function main", "halt")), "t.fasm")


def test_a_struct_has_its_fields_after_those_of_its_parent() -> None:
    program = assembled(
        ".struct node value i64 next node", ".struct leaf extends node weight f64 kids node[]"
    )
    own = (Field("value", I64), Field("next", NODE))
    more = (Field("weight", F64), Field("kids", Reference(16, "node[]")))
    assert program.types == (
        StructType("node", None, own),
        StructType("leaf", 14, own + more),
        ArrayType(NODE),
    )


def test_a_type_may_be_used_before_it_is_declared() -> None:
    program = ferryvm.assemble(
        ".static s late[]\n.function main\n.local late\nref.null late\nlocal.set 0\nhalt\n"
        ".struct early a late\n.struct late b early\n"
    )
    assert [t.name for t in program.types] == ["early", "late", "late[]"]
    assert program.functions[0].locals == (Reference(15, "late"),)


def test_an_array_that_is_declared_keeps_its_number() -> None:
    program = assembled(".struct a", ".array a[]", ".struct b x a[][]", ".array a[][]")
    assert [t.name for t in program.types] == ["a", "a[]", "b", "a[][]"]
    assert asm.assemble(asm.disassemble(program)).types == program.types


def test_a_parameter_with_the_name_of_a_type_is_quoted() -> None:
    program = ferryvm.assemble(
        '.struct node\n.function main\nhalt\n.function f ("node" i64 other node)\nreturn\n'
    )
    assert program.functions[1].parameters == ("node", "other")
    assert asm.assemble(asm.disassemble(program)).functions == program.functions


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (".struct", "1:1 .struct takes a name, found nothing"),
        (".struct a.b", "1:9 a.b is no name of a struct: letters, digits and _ are allowed"),
        (".struct f64", "1:9 'f64' is a type already"),
        (".struct anyref", "1:9 'anyref' is a type already"),
        (".struct a / .struct a", "2:9 struct 'a' is already at t.fasm:1:9"),
        (".struct a x", "1:1 .struct takes a type after the field's name, found"),
        (".struct a x nod / .struct node", "1:13 expected a type (i32, i64, f32, f64, or a"),
        (".struct a extends b", "1:19 no reference type 'b'"),
        (".struct a extends b / .struct b", "1:19 struct 'b' is declared below; a parent comes"),
        (".struct a extends u8[]", "1:19 expected a struct, found 'u8[]'"),
        (".struct a x i64 x i64", "1:9 type 14 ('a') has two fields 'x'"),
        (".array i64", "1:8 expected an array type, found 'i64'"),
        (".array i64[]", "1:8 every program has i64[]; arrays of references are declared, as"),
        (".array i64[][] / .array i32[]x", "2:8 expected a type"),
        (".static s anyref = 1", "1:18 .static takes 2 operands here, found also '='"),
    ],
)
def test_a_wrong_declaration_is_named(line: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        assembled(*line.split(" / "))
    assert message in str(caught.value).replace("t.fasm:", "", 1).replace(": ", " ", 1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ref.null", "ref.null takes a reference type, found nothing"),
        ("ref.null i64", "no reference type 'i64'"),
        ("ref.test nodes", "no reference type 'nodes'; did you mean 'node'?"),
        ("struct.new f64[]", "expected a struct, found 'f64[]'"),
        ("struct.get node", "expected a field as in node.next, found 'node'"),
        (
            "struct.get node.nxt",
            "struct node has no field 'nxt'; did you mean 'next'? (has: value,",
        ),
        ("array.new_ref node", "expected an array of references, found 'node'"),
        ("array.get_ref f64[]", "expected an array of references, found 'f64[]'"),
    ],
)
def test_a_wrong_operand_is_named(line: str, message: str) -> None:
    text = f".struct node value i64 next node\n.function main\n{line}\nhalt\n"
    with pytest.raises(SourceError) as caught:
        ferryvm.assemble(text)
    assert message in str(caught.value)
