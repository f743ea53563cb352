# SPDX-License-Identifier: Apache-2.0
"""The modern form: what statements stand for, and how faults are told."""

from __future__ import annotations

import pytest

from ferryvm import asm
from ferryvm.errors import Position, SourceError
from ferryvm.isa import BY_MNEMONIC, F32, F64, I32, I64
from ferryvm.listing import ClauseListing, FunctionListing, Label, Line, Listing
from ferryvm.program import Data, HostImport, Signature, Static, Tag

BODY = ".function main\n"


def lines(text: str) -> list[Line]:
    return [item for item in asm.parse(text, "t").functions[0].items if isinstance(item, Line)]


def operands(body: str) -> list[object]:
    return [line.operand for line in lines(BODY + body)]


def faults(text: str) -> list[str]:
    with pytest.raises(SourceError) as caught:
        asm.parse(text, "t.fasm")
    return [f"{d.position.line}:{d.position.column} {d.message}" for d in caught.value.diagnostics]


def test_whole_program() -> None:
    text = """
        .host print_i64 (i64)
        .static total i64 = -1
        .static ratio f64
        .data 16 "ab\\n" i16 1 -1 f64 1 ; three kinds of items
        .bytes "\\xff"
        .table twice main
        .function main
            .loc none
            i64.const 3
            call twice
            host print_i64
            static.get total
            halt
        .function twice (n i64) -> i64
            .local i64, spare f64
        :again local.get n
            local.set 1
            f64.const 0.5
            local.set spare
            static.get 0
            i64.eqz
            jump_if again
            local.get n
            return
    """

    def line(mnemonic: str, operand: object = None) -> Line:
        return Line(BY_MNEMONIC[mnemonic], operand)  # type: ignore[arg-type] - any kind

    assert asm.parse(text) == Listing(
        functions=[
            FunctionListing(
                "main",
                items=[
                    line("i64.const", 3),
                    line("call", "twice"),
                    line("host", "print_i64"),
                    line("static.get", 0),
                    line("halt"),
                ],
            ),
            FunctionListing(
                "twice",
                Signature((I64,), (I64,)),
                (I64, F64),
                [
                    Label("again"),
                    line("local.get", 0),
                    line("local.set", 1),
                    line("f64.const", 0x3FE0_0000_0000_0000),
                    line("local.set", 2),
                    line("static.get", 0),
                    line("i64.eqz"),
                    line("jump_if", "again"),
                    line("local.get", 0),
                    line("return", 1),
                ],
                parameters=("n",),
            ),
        ],
        statics=[Static("total", I64, 2**64 - 1), Static("ratio", F64)],
        data=[Data(16, b"ab\n\1\0\xff\xff" + bytes(6) + b"\xf0\x3f\xff")],
        table=["twice", "main"],
        hosts=[HostImport("print_i64", Signature((I64,)))],
    )


def test_exports_tags_and_clauses() -> None:
    text = """
        .tag error i64 f32
        .tag done
        .export all
        .export all as "main of mine"
        .function all
        .catch error from a to b using c depth 2
        .catch_all from from to to using using
        .catch_record from a to to using c
        :a :from nop
        :b :to nop
        :c :using halt
    """
    listing = asm.parse(text)
    assert listing.exports == {"all": "all", "main of mine": "all"}
    assert listing.tags == [Tag("error", (I64, F32)), Tag("done")]
    assert listing.functions[0].clauses == [
        ClauseListing("a", "b", "c", 2, "error"),
        ClauseListing("from", "to", "using"),
        ClauseListing("a", "to", "c", record=True),
    ]


def test_operands_of_each_kind() -> None:
    assert operands("i64.load\ni64.load 8\nreturn\nreturn 1") == [0, 8, 0, 1]
    assert operands(":a jump a\njump_table a, b a\n:b") == ["a", ("a", "b", "a")]
    assert operands("call_indirect (i32 f64) -> (i64)\ncall_indirect -> i32\ncall_indirect ()") == [
        Signature((I32, F64), (I64,)),
        Signature((), (I32,)),
        Signature(),
    ]


def test_quotes_allow_any_name() -> None:
    text = '.function "my main" ; comment\n:"a;b" jump "a;b"\ncall "my main"'
    assert [line.operand for line in lines(text)] == ["a;b", "my main"]
    assert asm.parse(text).functions[0].name == "my main"


def test_text_without_loc_maps_to_itself() -> None:
    assert [line.position for line in lines(".function main\n  nop\n:x :y halt")] == [
        Position("t", 2, 3),
        Position("t", 3, 7),
    ]


def test_loc_holds_until_the_next_one_and_self_ends_it() -> None:
    text = '.file 1 "a"\n.file 7 "b"\n.function f\n.loc 7 3 4\nnop\n'
    text += ".loc none\nnop\n.function g\nnop\n.loc 1 9\nnop\n.loc self\nnop"
    functions = asm.parse(text, "t").functions
    positions = [i.position for f in functions for i in f.items if isinstance(i, Line)]
    assert positions == [Position("b", 3, 4), None, None, Position("a", 9, 1), Position("t", 13, 1)]


def test_statics_of_one_name_go_by_number() -> None:
    text = ".static x i64\n.static x f64\n.function main\nstatic.get 1\n"
    assert lines(text)[0].operand == 1
    assert faults(text + "static.get x") == [
        "5:12 2 statics are named 'x': say by number which one is meant (0, 1)"
    ]


def test_fault_shows_its_line_with_a_caret() -> None:
    with pytest.raises(SourceError) as caught:
        asm.parse(".function main\n\ti64.cnst 1", "t.fasm")
    assert str(caught.value) == (
        "t.fasm:2:2: no instruction 'i64.cnst'; did you mean 'i64.const'?\n"
        "    \ti64.cnst 1\n"
        "    \t^^^^^^^^"
    )


def test_all_faults_are_told_at_once_in_the_order_of_the_text() -> None:
    text = """.function main
        jump lop
        :loop nop 1
        :loop
        i64.const
        i64.const 1 2
        call man
        local.get n
        static.get :s
        host h
        jump_table
        halt"""
    assert faults(text) == [
        "2:14 no label 'lop'; did you mean 'loop'?",
        "3:19 nop takes no operand here, found also '1'",
        "4:9 label 'loop' is already at t.fasm:3:9",
        "5:9 i64.const takes an i64 literal, found nothing",
        "6:21 i64.const takes 1 operand here, found also '2'",
        "7:14 no function 'man'; did you mean 'main'?",
        "8:19 no local 'n'",
        "9:20 expected a static, found ':s'; as an operand it stands without the colon",
        "10:14 no host import 'h'",
        "11:9 jump_table takes one label or more, the last one for any other index, found nothing",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "1:1 no function: a program starts with its first one, .function NAME"),
        ("nop", "1:1 nop stands outside a function; begin one with .function"),
        (":a", "1:1 :a stands outside a function; begin one with .function"),
        (".local i64", "1:1 .local stands outside a function; begin one with .function"),
        (".functoin main", "1:1 no directive '.functoin'; did you mean '.function'?"),
        (".function", "1:1 .function takes a name, found nothing"),
        (".function 1st", "1:11 expected a name, found '1st'; other names stand in quotes"),
        (".function f i64", "1:13 expected a signature like (i64 f64) -> (i64), found 'i64'"),
        (
            ".function f (x",
            "1:14 expected a type (i32, i64, f32, f64, or a reference type), found 'x'",
        ),
        (".function f (i64", "1:1 .function takes a type or ), found nothing more"),
        (
            ".function f (x i46)",
            "1:16 expected a type (i32, i64, f32, f64, or a reference type), found 'i46'; did",
        ),
        (".function f (x i64 x f64)", "1:20 this function has already a local 'x'"),
        (".function f ->", "1:1 .function takes a result type after ->, found nothing more"),
        (".function f\n.function f", "2:11 function 'f' is already at t.fasm:1:11"),
        (".host h\n.host h", "2:7 host import 'h' is already at t.fasm:1:7"),
        (".static s", "1:1 .static takes a type after the name, found nothing more"),
        (".static s i64 = 1.5", "1:17 expected an i64 literal, found '1.5'"),
        (".static s i64 3", "1:15 .static takes 2 operands here, found also '3'"),
        (".export f", "1:9 no function 'f'"),
        (".export f as", "1:1 .export takes a name after as, found nothing more"),
        (".function f\n.export f\n.export f as f", "3:14 export 'f' is already at t.fasm:2:9"),
        (".tag e\n.tag e", "2:6 tag 'e' is already at t.fasm:1:6"),
        (
            ".tag e i46",
            "1:8 expected a type (i32, i64, f32, f64, or a reference type), found 'i46'; did",
        ),
        (".catch_all", "1:1 .catch_all stands outside a function; begin one with .function"),
        (
            ".function f\n.catch_all a b c",
            "2:12 expected from and a label, as in from START to END using HANDLER; found 'a'",
        ),
        (".function f\n.catch_all from", "2:1 .catch_all takes a label after from, found nothing"),
        (".function f\n:a :b .catch e from a to b using a", "2:14 no tag 'e'"),
        (".function f\n:a .catch_all from a to b using a", "2:25 no label 'b'"),
        (".table f", "1:8 no function 'f'"),
        (".data -1", "1:7 -1 is out of range: 0 to 18446744073709551615 are allowed"),
        (".data x", "1:7 expected a number, found 'x'"),
        (".data 0 1", "1:9 expected a string, or one of i8, i16, i32, i64, f32, f64; found '1'"),
        (".data 0 i8 256", "1:12 256 is out of range for i8: -128 to 255 are allowed"),
        ('.bytes "x"', "1:1 .bytes goes on after a .data, and there is none above it"),
        ('.data 0 "\\q"', "1:9 unknown escape \\q; "),
        ('.data 0 "abc', "1:9 this string has no closing quote on its line"),
        ('.function "\\xff"', "1:11 a name must be UTF-8"),
        ('.file 1 "a"\n.file 1 "b"', "2:7 file 1 is already 'a'"),
        (".loc 1 2", "1:6 no .file has number 1 (known: none)"),
        (".function f\ni64.load 4294967296", "2:10 4294967296 is out of range: 0 to 4294967295"),
        (".function f\nPUSH_WORD 1", "2:1 no instruction 'PUSH_WORD'; the classic form cannot be"),
    ],
)
def test_fault_tells_what_was_expected_and_found(text: str, fault: str) -> None:
    assert faults(text)[0].startswith(fault)


def test_fault_in_a_declaration_causes_no_faults_below() -> None:
    text = ".host h (i46)\n.static s i46\n.function f (i46)\ncall f\nhost h\nstatic.get s"
    assert [fault.split()[0] for fault in faults(text)] == ["1:10", "2:11", "3:14"]


def test_text_that_is_something_else_is_given_up_after_a_hundred_faults() -> None:
    assert len(faults("lorem ipsum\n" * 100_000)) == 100


def test_optimizing_assembly_shortens_it() -> None:
    text = ".function main\ni64.const 1\ni64.const 0\ni64.add\nhalt"
    assert len(asm.assemble(text).code) == 4
    assert len(asm.assemble(text, optimize=True).code) == 2


def test_fault_in_a_huge_line_is_told_in_few_words() -> None:
    with pytest.raises(SourceError) as caught:
        asm.parse(".function main\nf64.const 0x1" + "0" * 1_000_000 + "1p0", "t.fasm")
    assert len(str(caught.value)) < 500
    assert str(caught.value).endswith("p0 is not exactly an f64")
