# SPDX-License-Identifier: Apache-2.0
"""What is not as compilers may rely on it is refused, in one line that says where and what."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.ir.graph import Constant, Module, Operation, Terminator
from ferryvm.ir.lift import lift
from ferryvm.ir.operation import IrError
from ferryvm.ir.parse import parse_module
from ferryvm.ir.verify import IrVerifier, verify_module
from ferryvm.isa.type import F64, I64
from ferryvm.region.region import region
from ferryvm.verify import verify

GOOD = """
module m

region work function=0 entry=0 -> i64
entry @0 ():
  %0: i64 = word 2
  %1: i64 = call 1 3 %0 @1 [_ _ %0 i64:0 i64:0]
  jump b1(%0)
b1 @2 (%2: i64):
  %3: boolean = compare i64 lt_s %2, i64:9
  branch %3 b2() b3()
b2 @3 ():
  %4: i64 = add i64 %2, i64:1
  trap_if INTEGER_OVERFLOW %3 @3 [_ _ %4]
  poll @2 [_ _ %4]
  jump b1(%4)^
b3 @4 ():
  return %2

function twice function=1 entry=9 -> i64
entry @9 (%0: i64):
  %1: i64 = mul i64 %0, i64:2
  return %1
"""

FAULTS = {
    "definition after use": (
        ("  %0: i64 = word 2\n  %1: i64 = call 1 3 %0", "  %1: i64 = call 1 3 %0"),
        "%0 is not defined",
    ),
    "operand type": (("compare i64 lt_s %2", "compare i32 lt_s %2"), "i32 expected, found i64"),
    "condition": (("compare i64 lt_s", "compare i64 lt"), "no condition lt of i64"),
    "no such types": (("%4: i64 = add i64", "%4: f64 = add f64"), "an integer type expected"),
    "result type": (("%4: i64 = add", "%4: i32 = add"), "i64 expected, found i32"),
    "number of operands": (("add i64 %2, i64:1", "add i64 %2"), "2 operands expected, found 1"),
    "operands of a call": (("call 1 3 %0 @1", "call 1 3 @1"), "1 operands expected, found 0"),
    "unknown function": (("call 1 3 %0", "call 7 3 %0"), "function 7 is not in the module"),
    "frame of a call": (("call 1 3 %0", "call 1 1 %0"), "a frame past the header"),
    "result of a call": (("%1: i64 = call", "%1: f64 = call"), "i64 expected, found f64"),
    "no value": (("  poll @2", "  %9: i64 = poll @2"), "no value expected, found one of type i64"),
    "value missing": (("%1: i64 = mul", "mul"), "%1 is not defined"),
    "state missing": (("poll @2 [_ _ %4]", "poll"), "a state expected"),
    "state too many": (("jump b1(%0)", "jump b1(%0) @2 [_ _ %0]"), "no state expected"),
    "header in a state": (("poll @2 [_ _ %4]", "poll @2 [_ %4 %4]"), "every word of the frame"),
    "no poll": (("  poll @2 [_ _ %4]\n", ""), "block b1: it is in a cycle without a `poll`"),
    "no poll in a long loop": (
        ("  poll @2 [_ _ %4]\n", "  bounded 4097\n"),
        "block b1: it is in a cycle without a `poll`",
    ),
    "no poll and no mark": (
        ("  poll @2 [_ _ %4]\n  jump b1(%4)^", "  jump b1(%4)"),
        "block b1: it is in a cycle without a `poll`",
    ),
    "recursion without a look at the stack": (
        ("  return %1", "  %2: i64 = call 1 3 %1 @9 [%1 _ _ _ i64:0 i64:0]\n  return %2"),
        "body twice: it can call itself, `check_entry true` expected",
    ),
    "edge not marked": (("b1(%4)^", "b1(%4)"), "marked as going back"),
    "edge marked": (("jump b1(%0)", "jump b1(%0)^"), "marked as going back"),
    "to the entry": (("b1(%4)^", "entry()^"), "nothing leads to the entry"),
    "arguments of an edge": (("b1(%4)^", "b1()^"), "1 arguments of b1 expected, found 0"),
    "type of an argument": (("b1(%4)^", "b1(true)^"), "i64 expected, found boolean"),
    "number of edges": (("b2() b3()", "b2() b3() b3()"), "2 edges expected, found 3"),
    "result of the body": (("  return %2", "  return"), "1 operands expected, found 0"),
    "no way to a block": (
        ("  return %2\n", "  return %2\nb4 @4 ():\n  return %2\n"),
        "no block leads to it",
    ),
    "statics of a state": (
        ("poll @2 [_ _ %4]", "poll @2 [_ _ %4] {s1=%4 s0=%4}"),
        "statics of a state in rising order",
    ),
    "heap pointer of a state": (
        ("poll @2 [_ _ %4]", "poll @2 [_ _ %4] {hp=true}"),
        "i64 expected, found boolean",
    ),
    "bytes": (("  return %1", "  heap_store 3 %1, %1\n  return %1"), "1, 2, 4 or 8 expected"),
    "floats in turn with addresses": (
        ("  return %1", "  canonicalise f64 %1, %1\n  return %1"),
        "f64 expected, found i64",
    ),
    "an address without a float": (
        ("  return %1", "  canonicalise f64 %1\n  return %1"),
        "2 operands expected, found 1",
    ),
    "an integer that is canonical": (
        ("  return %1", "  canonicalise i64 %1, %1\n  return %1"),
        "a float type expected",
    ),
    "not on every way": (("  return %2", "  return %4"), "not defined on every way"),
    "order in a block": (
        (
            "  %4: i64 = add i64 %2, i64:1\n  trap_if INTEGER_OVERFLOW %3 @3 [_ _ %4]\n",
            "  trap_if INTEGER_OVERFLOW %3 @3 [_ _ %4]\n  %4: i64 = add i64 %2, i64:1\n",
        ),
        "not defined on every way",
    ),
    "two ways into a loop": (
        ("  jump b1(%0)", "  %8: boolean = compare i64 eq %0, %0\n  branch %8 b1(%0) b2()"),
        "another way leads by",
    ),
}


def module(text: str = GOOD) -> Module:
    return parse_module(text)


def test_a_good_module_passes() -> None:
    verify_module(module())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_line_that_says_what_was_expected(fault: str) -> None:
    (old, new), message = FAULTS[fault]
    assert GOOD.count(old) == 1, fault
    with pytest.raises(IrError, match=re.escape(message)) as caught:
        verify_module(module(GOOD.replace(old, new)))
    assert "\n" not in str(caught.value)


def test_a_fault_names_body_block_and_operation() -> None:
    with pytest.raises(IrError) as caught:
        verify_module(module(GOOD.replace("i64 = mul i64 %0, i64:2", "i64 = mul i64 %0")))
    where = "body twice, block entry, `%1: i64 = mul i64 %0`: "
    assert str(caught.value) == f"{where}2 operands expected, found 1"


def test_a_poll_stands_in_the_block_of_the_edge_that_goes_back() -> None:
    made = module()
    _, head, latch, _ = made.root.blocks
    poll = latch.operations.pop()
    poll.state = dataclasses.replace(poll.exit, words=(None, None, head.parameters[0]))
    head.operations.append(poll)
    with pytest.raises(IrError, match="a `poll` expected in a block from which an edge goes back"):
        verify_module(made)


def test_a_block_without_an_end_is_refused() -> None:
    made = module()
    made.root.blocks[1].terminator = None
    with pytest.raises(IrError, match="block b1: it has no terminator"):
        verify_module(made)


def test_a_body_without_blocks_is_refused() -> None:
    made = module()
    made.functions[1].blocks.clear()
    with pytest.raises(IrError, match="body twice: it has no block"):
        verify_module(dataclasses.replace(made, root=made.functions[1], functions={}))


def test_two_blocks_with_one_label_are_refused() -> None:
    made = module()
    made.root.blocks[2].label = "b1"
    with pytest.raises(IrError, match="another block has the same label"):
        verify_module(made)


def test_parameters_of_a_regions_entry_are_refused() -> None:
    made = module()
    made.functions[1].is_root = True
    with pytest.raises(IrError, match="a region's entry has no parameters"):
        verify_module(made)


def test_an_unknown_operation_is_refused() -> None:
    made = module()
    made.root.blocks[2].operations.insert(0, Operation("addd", I64))
    with pytest.raises(IrError, match="`%4: i64 = addd`: no operation has this name"):
        verify_module(made)


def test_a_terminator_stands_only_at_the_end() -> None:
    made = module()
    made.root.blocks[2].operations.insert(0, Operation("leave", None))
    with pytest.raises(IrError, match="it ends a block"):
        verify_module(made)
    made = module()
    made.root.blocks[3].terminator = Terminator("poll")
    with pytest.raises(IrError, match="a terminator expected here"):
        verify_module(made)


def test_a_value_defined_twice_is_refused() -> None:
    made = module()
    operations = made.root.blocks[2].operations
    operations.append(operations[0])
    with pytest.raises(IrError, match="it is defined twice"):
        verify_module(made)


def test_an_equal_constant_that_is_another_object_is_refused() -> None:
    made = module()
    end = made.root.blocks[3].end
    end.arguments = (Constant(I64, 9),)
    with pytest.raises(IrError, match="not the body's own"):
        verify_module(made)


def _another_operand(made: Module) -> None:
    made.root.blocks[2].operations[0].arguments = (made.root.blocks[1].parameters[0],)


def _another_state(made: Module) -> None:
    poll = made.root.blocks[2].operations[2]
    poll.state = dataclasses.replace(poll.exit, statics=((3, poll), (1, poll)))


def _another_place(made: Module) -> None:
    operations = made.root.blocks[2].operations
    operations[0], operations[1] = operations[1], operations[0]


def _another_signature(made: Module) -> None:
    del made.functions[1].blocks[0].parameters[0]
    made.functions[1].blocks[0].operations.clear()
    made.functions[1].blocks[0].end.arguments = (made.functions[1].constants[I64, 2],)


def _another_constant(made: Module) -> None:
    constants = made.root.constants
    constants[I64, 9] = Constant(I64, 9)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (_another_operand, "2 operands expected, found 1"),
        (_another_state, "statics of a state in rising order"),
        (_another_place, "%4 is not defined|a value that is not defined on every way"),
        (_another_signature, "0 operands expected, found 1"),
        (_another_constant, "not the body's own"),
    ],
)
def test_what_was_right_before_a_pass_is_looked_at_after_it(
    change: Callable[[Module], None], fault: str
) -> None:
    made = module()
    verifier = IrVerifier(made)
    verifier.check_module()
    change(made)
    with pytest.raises(IrError, match=fault):
        verifier.check_module()


def test_an_edge_out_of_the_body_is_refused() -> None:
    made = module()
    made.root.blocks[0].end.edges[0].block = made.functions[1].blocks[0]
    with pytest.raises(IrError, match="block entry is not in the body"):
        verify_module(made)


LOOP = """
.static count i32
.function main
.local i i64
:L
local.get i
i64.const 1
i64.add
local.set i
local.get i
i64.const 9
i64.lt_s
jump_if L
halt
"""

AGAINST_THE_PROGRAM = {
    "words": (("poll @0 [_ _ %4]", "poll @0 [_ _]"), "3 words at pc 0 expected, found 2"),
    "word": (("poll @0 [_ _ %4]", "poll @0 [_ _ i32:0]"), "i64 expected, found i32"),
    "operand": (("halt @8 [_ _ %4]", "halt @8 [_ _ %4 %4]"), "3 words at pc 8 expected"),
    "pc": (("poll @0", "poll @99"), "a pc of function 0 expected, found 99"),
    "static": (("poll @0 [_ _ %4]", "poll @0 [_ _ %4] {s0=%4}"), "i32 expected, found i64"),
    "no static": (("poll @0 [_ _ %4]", "poll @0 [_ _ %4] {s7=%4}"), "there is no static 7"),
    "static read": (("%0: i64 = word 2", "%0: i64 = static 0"), "i32 expected, found i64"),
    "static beyond": (("%0: i64 = word 2", "%0: i64 = static 5"), "a static below 1 expected"),
}

LIFTED = """
module main

region main function=0 entry=0
entry @0 ():
  %0: i64 = word 2
  jump b0(%0)
b0 @0 (%1: i64):
  %4: i64 = add i64 %1, i64:1
  %5: boolean = compare i64 lt_s %4, i64:9
  branch %5 b2() b1()
b1 @8 ():
  halt @8 [_ _ %4]
b2 @0 ():
  poll @0 [_ _ %4]
  jump b0(%4)^
"""


def test_states_have_the_words_of_the_stack_map() -> None:
    verified = verify(ferryvm.assemble(LOOP))
    verify_module(parse_module(LIFTED), verified)
    verify_module(lift(region(verified, "main")), verified)


@pytest.mark.parametrize("fault", AGAINST_THE_PROGRAM)
def test_what_the_program_has_not_is_refused(fault: str) -> None:
    (old, new), message = AGAINST_THE_PROGRAM[fault]
    assert old in LIFTED
    text = LIFTED.replace(old, new)
    verified = verify(ferryvm.assemble(LOOP))
    with pytest.raises(IrError, match=re.escape(message)):
        verify_module(parse_module(text), verified)


def test_floats_are_words_too() -> None:
    text = GOOD.replace("%0: i64 = word 2", "%0: i64 = word 2\n  %8: f64 = word 3")
    made = module(text)
    assert made.root.blocks[0].operations[1].type is F64
    verify_module(made)
