# SPDX-License-Identifier: Apache-2.0
"""The classic form: what is inferred from it, what its programs do, and how faults are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ferryvm
from ferryvm import asm
from ferryvm.asm.classic import MNEMONICS
from ferryvm.errors import SourceError
from ferryvm.listing import Line
from ferryvm.verify import verify

from ..tier import examples


def faults(text: str) -> list[str]:
    with pytest.raises(SourceError) as caught:
        asm.parse(text, "t")
    return [f"{d.position.line}:{d.position.column} {d.message}" for d in caught.value.diagnostics]


def run(text: str) -> tuple[int | float | None, str]:
    """Result and output, the same with and without the peephole."""
    plain, short = (
        ferryvm.run(asm.assemble(text, "t", optimize), backend="reference")
        for optimize in (False, True)
    )
    assert (plain.value, plain.output) == (short.value, short.output)
    return plain.value, plain.output


def shapes(text: str) -> dict[str, str]:
    """Signature and number of locals of each function."""
    return {f.name: f"{f.signature} {len(f.locals)}" for f in asm.parse(text).functions}


BINARY = ["ADD", "SUB", "MUL", "DIV", "LT", "GT", "LE", "GE", "EQ", "NE", "AND", "OR"]

FACTORIAL = """
    MARK_STK PUSH_WORD 10 CALL fact PRINT STOP
:fact
    PUSH_WORD 0 LOAD_WORD PUSH_WORD 1 LE JMPT one
    PUSH_WORD 0 LOAD_WORD
    MARK_STK PUSH_WORD 0 LOAD_WORD DECR CALL fact
    MUL RETURN
:one PUSH_WORD 1 RETURN
"""

LOOPS = """
    PUSH_WORD 0 PUSH_WORD 3 STORE_WORD_STATIC     ; sum
    PUSH_WORD 0 STORE_WORD_STATIC 0
ENTER_JIT
:x  PUSH_WORD 0 STORE_WORD_STATIC 1
:y  PUSH_WORD 0 STORE_WORD_STATIC 2
:z  LOAD_WORD_STATIC 3 INCR STORE_WORD_STATIC 3
    LOAD_WORD_STATIC 2 INCR DUP STORE_WORD_STATIC 2 PUSH_WORD 5 LT JMPT z
    LOAD_WORD_STATIC 1 INCR DUP STORE_WORD_STATIC 1 PUSH_WORD 4 LT JMPT y
    LOAD_WORD_STATIC 0 INCR DUP STORE_WORD_STATIC 0 PUSH_WORD 3 GE JMPF x
LEAVE_JIT
    LOAD_WORD_STATIC 3 PRINT
    STOP
"""


def test_recursive_factorial() -> None:
    assert shapes(FACTORIAL) == {"main": "() -> () 0", "fact": "(i64) -> (i64) 0"}
    assert run(FACTORIAL) == (None, "3628800\n")


def test_triple_loop_in_a_jit_scope() -> None:
    assert len(asm.parse(LOOPS).statics) == 4
    assert run(LOOPS) == (None, "60\n")


def test_operands_may_stand_on_the_next_line() -> None:
    spread = "\n".join(FACTORIAL.replace("\n", " ").split())
    assert run(spread) == run(FACTORIAL)


def test_mutual_recursion_of_functions_that_main_jumps_over() -> None:
    text = """
        JMP start
    :even LOAD_WORD 0 JMPF yes MARK_STK LOAD_WORD 0 DECR CALL odd RETURN
    :yes PUSH_WORD 1 RETURN
    :odd LOAD_WORD 0 JMPF no MARK_STK LOAD_WORD 0 DECR CALL even RETURN
    :no PUSH_WORD 0 RETURN
    :start MARK_STK PUSH_WORD 7 CALL even MARK_STK PUSH_WORD 7 CALL odd STOP
    """
    assert shapes(text) == {
        "main": "() -> () 0",
        "even": "(i64) -> (i64) 0",
        "odd": "(i64) -> (i64) 0",
    }
    assert run(text) == (1, "")


def test_marks_emit_nothing_and_arguments_may_be_given_up() -> None:
    text = """
        MARK_STK PUSH_WORD 4 CALL half MARK_STK PUSH_WORD 5 CALL half ADD STOP
    :half MARK_STK LOAD_WORD 0 DUP PUSH_WORD 2 DIV DUP ADD LOAD_WORD 0 EQ JMPT even
        PUSH_WORD 100 RETURN
    :even PUSH_WORD 2 CALL div RETURN
    :div LOAD_WORD 0 LOAD_WORD 1 DIV RETURN
    """
    assert run(text) == (102, "")
    names = {
        line.row.mnemonic
        for f in asm.parse(text).functions
        for line in f.items
        if isinstance(line, Line)
    }
    assert names <= {"i64.const", "call", "i64.add", "halt", "local.get", "dup", "i64.div_s", "i64.eq",
                     "i64.extend_i32_u", "i64.eqz", "jump_unless", "jump_if", "return"}  # fmt: skip


def test_parameters_results_and_locals_are_inferred() -> None:
    text = """
        MARK_STK PUSH_WORD 20 PUSH_WORD 22 CALL add2 PRINT
        MARK_STK CALL quiet STOP
    :add2 LOAD_WORD 0 LOAD_WORD 1 ADD STORE_WORD 4 LOAD_WORD 4 RETURN
    :quiet PUSH_WORD 1 PRINT RETURN
    """
    assert shapes(text) == {
        "main": "() -> () 0",
        "add2": "(i64 i64) -> (i64) 3",
        "quiet": "() -> () 0",
    }
    assert run(text) == (None, "42\n1\n")


def test_main_has_locals_too() -> None:
    text = "PUSH_WORD 5 STORE_WORD 1 LOAD_WORD 1 LOAD_WORD 0 ADD STOP"
    assert shapes(text) == {"main": "() -> () 2"}
    assert run(text) == (5, "")


def test_nested_calls_pass_results_on() -> None:
    text = """MARK_STK MARK_STK PUSH_WORD 2 CALL sq MARK_STK PUSH_WORD 3 CALL sq CALL plus STOP
    :sq LOAD_WORD 0 DUP MUL RETURN :plus LOAD_WORD 0 LOAD_WORD 1 ADD RETURN"""
    assert run(text) == (13, "")


def test_two_functions_may_share_a_tail() -> None:
    text = """MARK_STK PUSH_WORD 1 CALL f MARK_STK PUSH_WORD 2 CALL g ADD STOP
    :f LOAD_WORD 0 PUSH_WORD 10 MUL JMP tail
    :g LOAD_WORD 0 PUSH_WORD 100 MUL
    :tail INCR RETURN"""
    assert run(text) == (212, "")


def test_code_before_a_functions_entry_can_be_part_of_it() -> None:
    text = """JMP start
    :again LOAD_WORD 0 DECR STORE_WORD 0
    :f LOAD_WORD 0 JMPT again LOAD_WORD 0 RETURN
    :start MARK_STK PUSH_WORD 3 CALL f STOP"""
    assert run(text) == (0, "")


def test_main_can_be_called() -> None:
    text = """:main LOAD_WORD_STATIC 0 INCR DUP STORE_WORD_STATIC 0
        PUSH_WORD 3 GE JMPT out MARK_STK CALL main
    :out LOAD_WORD_STATIC 0 STOP"""
    assert list(shapes(text)) == ["main_", "main"]
    assert run(text) == (3, "")


def test_unreached_code_and_functions_are_left_out() -> None:
    text = "PUSH_WORD 1 STOP DROP DROP :f MARK_STK CALL f RETURN"
    assert shapes(text) == {"main": "() -> () 0"}
    assert run(text) == (1, "")


@pytest.mark.parametrize(
    ("body", "result"),
    [("RETURN", "() -> ()"), ("PUSH_WORD 1 RETURN", "() -> (i64)"), ("INCR RETURN", "() -> (i64)")],
)
def test_function_that_can_only_call_itself_still_has_a_signature(body: str, result: str) -> None:
    text = f"MARK_STK CALL f STOP :f MARK_STK CALL f {body}"
    program = asm.assemble(text)
    assert verify(program).is_reachable(len(program.code) - 1)
    assert [str(f.signature) for f in asm.parse(text).functions] == ["() -> ()", result]


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("PUSH_WORD 7 PUSH_WORD 2 SUB", 5),
        ("PUSH_WORD -7 PUSH_WORD 2 DIV", -3),
        ("PUSH_WORD 0x7fffffffffffffff INCR", -(2**63)),
        ("PUSH_WORD 12 PUSH_WORD 10 AND", 8),
        ("PUSH_WORD 12 PUSH_WORD 10 OR", 14),
        ("PUSH_WORD 12 NOT", 0),
        ("PUSH_WORD 0 NOT", 1),
        ("PUSH_WORD 1 PUSH_WORD 2 LT", 1),
        ("PUSH_WORD 1 PUSH_WORD 2 GT", 0),
        ("PUSH_WORD 2 PUSH_WORD 2 LE", 1),
        ("PUSH_WORD -1 PUSH_WORD 2 GE", 0),
        ("PUSH_WORD 2 PUSH_WORD 2 EQ", 1),
        ("PUSH_WORD 2 PUSH_WORD 2 NE", 0),
        ("PUSH_WORD 1 PUSH_WORD 2 SWAP DROP", 2),
        ("NOOP PUSH_WORD 3 DUP DECR SUB", 1),
        ("PUSH_WORD 9 JMPT a PUSH_WORD 0 STOP :a PUSH_WORD 1", 1),
        ("PUSH_WORD 9 JMPF a PUSH_WORD 0 STOP :a PUSH_WORD 1", 0),
        ("PUSH_WORD 8 PUSH_WORD 2 STORE_WORD_STATIC PUSH_WORD 1 INCR LOAD_WORD_STATIC", 8),
    ],
)
def test_mnemonic_leaves_this_word(code: str, value: int) -> None:
    assert run(f"{code} STOP")[0] == value


def test_every_mnemonic_of_the_form_exists_and_is_documented() -> None:
    names = {
        "PUSH_WORD",
        "LOAD_WORD_STATIC",
        "STORE_WORD_STATIC",
        "LOAD_WORD",
        "STORE_WORD",
        "ADD",
        "SUB",
        "MUL",
        "DIV",
        "INCR",
        "DECR",
        "LT",
        "GT",
        "LE",
        "GE",
        "EQ",
        "NE",
        "AND",
        "OR",
        "NOT",
        "JMP",
        "JMPT",
        "JMPF",
        "MARK_STK",
        "CALL",
        "RETURN",
        "PRINT",
        "ENTER_JIT",
        "LEAVE_JIT",
        "STOP",
        "NOOP",
        "DUP",
        "SWAP",
        "DROP",
    }
    assert set(MNEMONICS) == names
    page = (Path(__file__).parents[2] / "docs" / "assembly.md").read_text(encoding="utf-8")
    assert not [name for name in names if f"`{name}" not in page]


def test_computed_static_numbers_get_the_default_or_the_stated_count() -> None:
    text = "PUSH_WORD 1 INCR LOAD_WORD_STATIC STOP"
    assert len(asm.parse(text).statics) == 256
    assert len(asm.parse(f".statics 3 {text}").statics) == 3
    assert len(asm.parse("PUSH_WORD 300 LOAD_WORD_STATIC " + text).statics) == 301


def test_directive_states_the_form() -> None:
    assert [f.name for f in asm.parse(".classic STOP").functions] == ["main"]
    assert [f.name for f in asm.parse(":STOP ; none\n:x STOP").functions] == ["main"]


def test_position_is_that_of_the_mnemonic() -> None:
    items = asm.parse("\n  PUSH_WORD\n 1 PRINT STOP", "p").functions[0].items
    assert [str(item.position) for item in items if isinstance(item, Line)] == [
        "p:2:3",
        "p:3:4",
        "p:3:10",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("PUSH_WORD 1 PUSH_WRD 2 STOP", "1:13 no classic mnemonic 'PUSH_WRD'; did you mean"),
        ("STOP i64.add", "1:6 no classic mnemonic 'i64.add'; instructions of the other form"),
        ("STOP 3", "1:6 expected a mnemonic or :label after STOP, found the number 3"),
        ("JMP :a :a STOP", "1:5 JMP takes a label, found ':a'; as an operand a label stands"),
        ("JMP\n:a STOP", "1:1 JMP takes a label, found ':a'"),
        ("JMP lop :loop STOP", "1:5 no label 'lop'; did you mean 'loop'?"),
        ("CALL", "1:1 CALL takes a label, found the end of the text"),
        ("PUSH_WORD PUSH_WORD", "1:1 PUSH_WORD takes an i64 literal, found 'PUSH_WORD'"),
        ("PUSH_WORD x", "1:11 expected an i64 literal, found 'x'"),
        ("PUSH_WORD 18446744073709551616", "1:11 18446744073709551616 is out of range for i64"),
        (":a :a STOP", "1:4 label 'a' is already at t:1:1"),
        ("STOP : STOP", "1:6 a label needs a name right after the colon"),
        (".classic", "1:1 no instructions: a listing starts with its main program"),
        (".classic .static 3 STOP", "1:10 no directive '.static' in the classic form; did you"),
        (".statics x STOP", "1:10 .statics takes a number of statics, found 'x'"),
        (".statics 99999 STOP", "1:1 99999 statics; 0 to 65536 are allowed"),
        (".statics 2 LOAD_WORD_STATIC 2 STOP", "1:12 no static 2: 0 to 1 are allowed"),
        (".statics 0 LOAD_WORD_STATIC 0 STOP", "1:12 no static 0: there are none"),
        ("PUSH_WORD -1 LOAD_WORD_STATIC STOP", "1:14 no static 18446744073709551615: 0 to"),
        ("LOAD_WORD -1 STOP", "1:1 LOAD_WORD -1 is out of range: 0 to 65535 are allowed"),
        ("PUSH_WORD 99999 LOAD_WORD STOP", "1:1 LOAD_WORD has the number 99999; 0"),
        ("PUSH_WORD 0 DUP LOAD_WORD", "1:17 LOAD_WORD needs a constant: a number that follows"),
        ("PUSH_WORD 0 :a LOAD_WORD", "1:16 LOAD_WORD needs a constant"),
        ("ADD STOP", "1:1 ADD takes 2 words, the stack has 0 words here"),
        ("PUSH_WORD 1 MARK_STK PRINT", "1:22 PRINT takes 1 word, the stack has 0 words here above"),
        ("PUSH_WORD 1", "1:1 control runs past the end of the listing after this; expected STOP,"),
        ("JMP a :a", "1:1 control runs past the end of the listing after this"),
        ("CALL f :f RETURN", "1:1 CALL f needs a MARK_STK before its arguments"),
        ("MARK_STK CALL f STOP :f MARK_STK CALL f DROP RETURN", "1:41 DROP takes 1 word, the"),
        ("RETURN", "1:1 the main program reaches this RETURN; it ends with STOP"),
        (
            "MARK_STK CALL f\nMARK_STK PUSH_WORD 1 CALL f STOP :f RETURN",
            "2:22 CALL f passes 1 word here, but 0 at t:1:10",
        ),
        (
            "MARK_STK PUSH_WORD 1 CALL f STOP :f LOAD_WORD 0 JMPT a RETURN\n:a PUSH_WORD 1 RETURN",
            "1:56 function f returns nothing here, but a word at t:2:16",
        ),
        (
            "PUSH_WORD 1 JMPT a PUSH_WORD 2\n:a STOP",
            "2:4 the stack has 0 words here from JMPT at t:1:13, but 1 word from PUSH_WORD at t:1:20",
        ),
        (":l PUSH_WORD 1 JMP l", "1:4 the stack has 0 words here from PUSH_WORD at t:1:4, but 1"),
    ],
)
def test_fault_tells_what_was_expected_and_found(text: str, fault: str) -> None:
    assert faults(text)[0].startswith(fault)


def test_faults_of_different_functions_are_told_at_once() -> None:
    text = "PUSH_WORD 1 JMPT a MARK_STK CALL f STOP :a MARK_STK CALL g STOP\n"
    text += ":f ADD RETURN\n:g DROP RETURN"
    assert [fault.split()[0] for fault in faults(text)] == ["2:4", "3:4"]


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Programs with branches, bounded loops, statics and calls that all end or trap."""
    labels = iter(range(10_000))

    def value(depth: int) -> str:
        kinds = ["const", "static", "frame"] + (["binary", "unary", "call"] if depth else [])
        kind = draw(st.sampled_from(kinds))
        if kind == "const":
            return f"PUSH_WORD {draw(st.integers(-3, 3))}"
        if kind == "static":
            number = draw(st.integers(0, 3))
            return draw(
                st.sampled_from(
                    [f"LOAD_WORD_STATIC {number}", f"PUSH_WORD {number} LOAD_WORD_STATIC"]
                )
            )
        if kind == "frame":
            return f"LOAD_WORD {draw(st.integers(0, 2))}"
        if kind == "unary":
            return f"{value(depth - 1)} {draw(st.sampled_from(['INCR', 'DECR', 'NOT']))}"
        if kind == "call":
            return f"MARK_STK {value(depth - 1)} CALL f"
        name = draw(st.sampled_from(BINARY))
        return f"{value(depth - 1)} {value(depth - 1)} {name}"

    def statement(depth: int) -> str:
        kind = draw(st.sampled_from(["print", "store", "local", "if", "loop", "none"]))
        if kind == "if" and depth:
            number, jump = next(labels), draw(st.sampled_from(["JMPT", "JMPF"]))
            return (
                f"{value(2)} {jump} e{number} {block(depth - 1)} JMP d{number} "
                f":e{number} {block(depth - 1)} :d{number}"
            )
        if kind == "loop" and depth:
            number = next(labels)
            return f"PUSH_WORD 3 :h{number} {block(depth - 1)} DECR DUP JMPT h{number} DROP"
        if kind == "store":
            return f"{value(2)} PUSH_WORD {draw(st.integers(0, 3))} STORE_WORD_STATIC"
        if kind == "local":
            return f"{value(2)} STORE_WORD {draw(st.integers(0, 2))}"
        return "NOOP" if kind == "none" else f"{value(3)} PRINT"

    def block(depth: int) -> str:
        return " ".join(statement(depth) for _ in range(draw(st.integers(0, 3))))

    body = f"{value(1)} RETURN".replace("CALL f", "CALL g")
    return f".statics 4 {block(2)} {value(2)} STOP :f {body} :g LOAD_WORD 0 INCR RETURN"


@examples(20)
@given(programs())
def test_peephole_changes_neither_output_nor_result_nor_trap(text: str) -> None:
    outcomes = []
    for optimize in (False, True):
        program = asm.assemble(text, "t", optimize)
        try:
            result = ferryvm.run(program, backend="reference")
            outcomes.append((result.value, result.output))
        except ferryvm.TrapError as trap:
            outcomes.append((trap.kind, str(trap.position)))
    assert outcomes[0] == outcomes[1]
