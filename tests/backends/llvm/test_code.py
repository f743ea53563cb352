# SPDX-License-Identifier: Apache-2.0
"""What native code of regions looks like: loops that are found, attributes, writers of frames."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import pytest

import ferryvm
from ferryvm.backend import Options
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.region.region import region
from ferryvm.verify import verify
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.passes import Pipeline
from ferryvm_backends.llvm import LlvmBackend
from ferryvm_backends.llvm.build import improved, passes_for
from ferryvm_backends.llvm.native import has_loop, parsed

ENDLESS = "(define i 0) (while (< i 1) (set! i (& i 0))) i"


def module(text: str) -> llvm.ModuleRef:
    return llvm.parse_assembly(text)


def stage(source: str, name: str, which: str) -> str:
    """A stage of the compilation of a region of a Skiff program."""
    found = region(verify(ferryvm.compile(source)), name)
    return LlvmBackend().show(found, Options(), which)


@pytest.mark.parametrize(
    "blocks",
    [
        "start: br label %again again: br label %again",
        "start: br label %0 0: br i1 %p, label %0, label %1 1: ret void",
        'start: br label %"a b" "a b": br i1 %p, label %"a b", label %end end: ret void',
        "start: br label %a a: br label %b b: br i1 %p, label %a, label %end end: ret void",
        "start: br label %a a: switch i8 0, label %end [i8 1, label %a] end: ret void",
    ],
    ids=["endless", "numbered", "quoted", "two", "switch"],
)
def test_a_loop_is_found_whatever_its_blocks_are_called(blocks: str) -> None:
    assert has_loop(module(f"define void @f(i1 %p) {{ {blocks} }}"))


def test_a_function_that_only_goes_forward_has_no_loop() -> None:
    forward = "start: br i1 %p, label %a, label %b a: br label %b b: ret void"
    assert not has_loop(module(f"define void @f(i1 %p) {{ {forward} }}"))


def test_a_jump_to_a_block_that_stands_before_is_no_loop_by_itself() -> None:
    back = "br label %b\na: ret void\nb: br label %a"
    assert not has_loop(module(f"define void @f() {{ {back} }}"))


def test_blocks_of_another_function_make_no_loop() -> None:
    first = "define void @f() { start: br label %a a: br label %b b: ret void }"
    second = "define void @g() { start: br label %b b: br label %a a: ret void }"
    assert not has_loop(module(f"{first} {second}"))


def test_the_first_back_edge_of_a_stay_looks_at_the_interrupt_flag() -> None:
    text = "(define i 0) (define x 1) (while (< i 1000) (set! x (+ (* x 3) 1)) (set! i (+ i 1))) x"
    program = verify(ferryvm.compile(text))
    code = LlvmBackend().compile(region(program, "program"), Options(cache=False))
    enter = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)(code.address)
    machine = Machine(program)
    assert Status(enter(machine.address)) is Status.HALT
    machine = Machine(program)
    machine.control.interrupt = 1
    assert Status(enter(machine.address)) is Status.INTERRUPTED


def test_an_endless_loop_stays_a_loop_and_polls() -> None:
    """It changes nothing: LLVM could delete it, were it allowed to take it for finite."""
    endless = stage(ENDLESS, "main/loop.1", "optimized")
    assert has_loop(module(endless))
    assert "load atomic i32" in endless


@pytest.mark.parametrize("which", ["llvm", "optimized"])
def test_nothing_says_that_a_loop_comes_to_an_end(which: str) -> None:
    attributes = _attributes(stage(ENDLESS, "main/loop.1", which), "ferry_region")
    assert "nounwind" in attributes
    assert "mustprogress" not in attributes
    assert "willreturn" not in attributes


def _attributes(text: str, function: str) -> str:
    """The attributes of a function."""
    head = next(line for line in text.splitlines() if "define" in line and f"@{function}(" in line)
    group = head.rpartition("#")[2].split()[0]
    return next(line for line in text.splitlines() if line.startswith(f"attributes #{group} "))


def test_a_writer_that_is_called_once_is_no_function_of_its_own() -> None:
    source = "(define (f n) (define i 0) (while (< i n) (set! i (+ i 1))) i) (f 3)"
    assert "leave." not in stage(source, "f/loop.1", "optimized")


def test_exits_with_words_of_the_same_types_share_a_function() -> None:
    source = """
(define (f v n)
  (define i 0)
  (while (< i n) (array-set! v i (+ (array-ref v i) (array-ref v (* i i)))) (set! i (+ i 1)))
  i)
(f (make-array i64 3) 3)"""
    text = stage(source, "f/loop.1", "llvm")
    heads = [line for line in text.splitlines() if line.startswith("define") and "@leave." in line]
    calls = {_name(head): text.count(f"call void @{_name(head)}(") for head in heads}
    assert any(count > 1 for count in calls.values())
    for name, count in calls.items():
        assert ("noinline" in _attributes(text, name)) == (count > 1)


def _name(head: str) -> str:
    return head.partition("@")[2].partition("(")[0]


def test_wrong_assembly_is_refused() -> None:
    native = ir.Module("wrong")
    ir.Function(native, ir.FunctionType(ir.VoidType(), []), "f").append_basic_block("no.end")
    with pytest.raises(RuntimeError):
        parsed(native)


def test_a_loop_over_a_vector_has_a_copy_without_checks() -> None:
    source = """
(define (f v n) (define i 0) (define s 0.0)
  (while (< i n) (set! s (+ s (array-ref v i))) (set! i (+ i 1))) s)
(f (make-array f64 3) 3)"""
    text = stage(source, "f/loop.1", "optimized")
    blocks = text.split("\n\n")
    sums = [block for block in blocks if "fadd double" in block]
    assert len(sums) == 3
    # From the start of an iteration to the sum, nothing is compared; the copy is free of checks
    # behind it, too, so LLVM unrolls it, and has a loop for the iterations that are left.
    assert all("phi double" in block for block in sums)
    assert {block.partition("fadd double")[0].count("icmp") for block in sums} == {0}
    assert max(block.count("fadd double") for block in sums) == 8


def test_a_function_used_once_without_loops_is_in_place_and_others_are_called() -> None:
    text = stage(f"(define (f x) {TWO_LOGARITHMS}) (f 3.0)", "f", "optimized")
    assert 'call double @"function f64.exp"' not in text
    assert text.count('call double @"function f64.log"') == 2


TWO_LOGARITHMS = "(+ (exp x) (* (log x) (log (+ x 1.0))))"


@pytest.mark.parametrize(
    ("source", "is_arithmetic"),
    [
        (f"(define (f x) {TWO_LOGARITHMS}) (f 3.0)", True),
        ("(define (f x) (* x 2.0)) (f 3.0)", False),
        ("(define (f x) (while (< x 9.0) (set! x (exp x))) x) (f 3.0)", False),
        ("(define (f v) (exp (array-ref v 0))) (f (make-array f64 1))", False),
        ("(define (f x) (if (< x 9.0) (f (exp x)) x)) (f 3.0)", False),
    ],
    ids=["functions", "no function", "loop", "memory", "recursion"],
)
def test_few_passes_are_for_code_that_only_applies_functions(
    source: str, is_arithmetic: bool
) -> None:
    found, level = improved(region(verify(ferryvm.compile(source)), "f"), Options())
    assert (passes_for(found, level) is Pipeline.ARITHMETIC) == is_arithmetic
    assert passes_for(found, 0) is Pipeline.LEVEL_0
