# SPDX-License-Identifier: Apache-2.0
"""Names of regions, what is in them, and which are tried when a place got hot."""

from __future__ import annotations

import dataclasses

import pytest

import ferryvm
import ferryvm.region as package
from ferryvm.errors import UnknownNameError
from ferryvm.program import Function
from ferryvm.region.fact import facts
from ferryvm.region.region import RegionKind, candidates, region, regions
from ferryvm.testing.generate import ProgramKind as Generated
from ferryvm.testing.generate import generate
from ferryvm.verify import Verified, verify

from ..tier import sample

NESTED = """
(define (work n)
  (let ((i 0) (sum 0))
    (while (< i n) (set! i (+ i 1)))
    (while (> i 0)
      (let ((j 0))
        (while (< j i) (set! sum (+ sum j)) (set! j (+ j 1))))
      (set! i (- i 1)))
    sum))
(enter-jit ((print! (work 9))))
"""


def skiff(text: str) -> Verified:
    return verify(ferryvm.compile(text))


def assembled(text: str) -> Verified:
    return verify(ferryvm.assemble(text))


def names(found: tuple[object, ...]) -> list[str]:
    return [str(each) for each in found]


def test_names_are_made_of_functions_and_numbers() -> None:
    assert names(regions(skiff(NESTED))) == [
        "program",
        "main",
        "main/scope.1",
        "work",
        "work/loop.1",
        "work/nest.2",
        "work/loop.2.1",
    ]


def test_names_are_the_same_for_the_same_program() -> None:
    assert names(regions(skiff(NESTED))) == names(regions(skiff(NESTED)))


def test_region_is_found_by_name_and_a_nest_as_a_loop_too() -> None:
    verified = skiff(NESTED)
    for each in regions(verified):
        assert region(verified, each.name) == each
    assert region(verified, "work/loop.2").kind is RegionKind.NEST


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"no region 'work/lop\.1'; did you mean 'work/loop"):
        region(skiff(NESTED), "work/lop.1")


def test_equal_regions_are_equal_and_others_are_not() -> None:
    verified = skiff(NESTED)
    first, second = regions(verified), regions(verified)
    assert first == second
    assert len(set(first + second)) == len(first)
    assert set(first).isdisjoint(regions(skiff(NESTED)))


def test_nest_holds_its_loops_and_the_function_holds_the_nest() -> None:
    verified = skiff(NESTED)
    work, nest, inner = (region(verified, n) for n in ("work", "work/nest.2", "work/loop.2.1"))
    assert inner.pcs < nest.pcs < work.pcs
    assert inner.blocks < nest.blocks < work.blocks
    assert work.pcs == {pc for pc in range(len(verified.program.code)) if verified.owner(pc) == 1}
    assert {nest.entry, inner.entry} <= nest.blocks
    whole = region(verified, "program")
    assert whole.pcs == work.pcs | region(verified, "main").pcs
    assert whole.blocks >= work.blocks


def test_function_entry_gets_the_function() -> None:
    verified = skiff(NESTED)
    assert names(candidates(verified, verified.program.functions[1].entry)) == ["work"]


def test_loop_head_gets_the_outermost_loop_first() -> None:
    verified = skiff(NESTED)
    nest, inner = region(verified, "work/nest.2"), region(verified, "work/loop.2.1")
    assert candidates(verified, inner.entry) == (nest, inner)
    assert candidates(verified, nest.entry) == (nest,)


def test_entry_that_is_a_loop_head_and_a_scope_gets_all_three() -> None:
    text = ".function main\n:top enter_jit\nnop\nleave_jit\ni32.const 1\njump_if top\nhalt\n"
    found = candidates(assembled(text), 0)
    assert names(found) == ["main", "main/loop.1", "main/scope.1"]


def test_other_places_get_nothing() -> None:
    verified = assembled(".function main\nnop\njump over\nnop\n:over halt\n")
    assert [candidates(verified, pc) for pc in (1, 2, 3)] == [(), (), ()]


def test_only_the_outermost_of_three_loops_is_a_nest() -> None:
    heads = ":a nop\n:b nop\n:c nop\n"
    tails = "".join(f"i32.const 1\njump_if {label}\n" for label in "cba")
    verified = assembled(".function main\n" + heads + tails + "halt\n")
    found = candidates(verified, 2)
    assert names(found) == ["main/nest.1", "main/loop.1.1", "main/loop.1.1.1"]


def test_callees_are_transitive_and_sorted() -> None:
    text = """
    .function main
        call c
        halt
    .function a
        return
    .function b
        call a
        return
    .function c
        call b
    :again
        i32.const 0
        jump_if again
        return
    """
    verified = assembled(text)
    assert region(verified, "main").callees == (1, 2, 3)
    assert region(verified, "c").callees == (1, 2)
    assert region(verified, "c/loop.1").callees == ()
    assert region(verified, "program").callees == (1, 2, 3)
    assert region(verified, "a").callees == ()


def test_indirect_call_reaches_the_table_by_signature() -> None:
    text = """
    .table f g h
    .function main
        i32.const 0
        call_indirect ()
        halt
    .function f
        return
    .function g () -> i64
        i64.const 1
        return
    .function h
        return
    .function outside
        return
    """
    assert region(assembled(text), "main").callees == (1, 3)


def test_program_leaves_out_what_main_does_not_call() -> None:
    verified = assembled(".function main\nhalt\n.function f\ncall f\nreturn\n")
    assert region(verified, "program").pcs == {0}
    assert region(verified, "f").callees == (1,)


def test_scope_ends_before_its_leave() -> None:
    verified = assembled(".function main\nnop\nenter_jit\nnop\nnop\nleave_jit\nnop\nhalt\n")
    scope = region(verified, "main/scope.1")
    assert (scope.kind, scope.entry) == (RegionKind.SCOPE, 1)
    assert scope.pcs == {1, 2, 3}
    assert scope.blocks == {0}


def test_scope_goes_where_control_goes() -> None:
    text = ".function main\nenter_jit\ni32.const 1\njump_if out\nleave_jit\nhalt\n:out nop\nhalt\n"
    assert region(assembled(text), "main/scope.1").pcs == {0, 1, 2, 5, 6}


def test_scope_inside_a_scope_is_closed_first() -> None:
    text = ".function main\nenter_jit\nenter_jit\nnop\nleave_jit\nnop\nleave_jit\nnop\nhalt\n"
    verified = assembled(text)
    assert region(verified, "main/scope.1").pcs == {0, 1, 2, 3, 4}
    assert region(verified, "main/scope.2").pcs == {1, 2}


def test_scope_that_is_entered_again_from_inside_is_one_scope() -> None:
    text = ".function main\n:top enter_jit\ni32.const 1\njump_if top\nleave_jit\nnop\nhalt\n"
    assert region(assembled(text), "main/scope.1").pcs == {0, 1, 2}


def test_marked_is_what_has_or_lies_in_a_scope() -> None:
    text = """
    .function main
        enter_jit
    :inside
        i32.const 0
        jump_if inside
        leave_jit
    :around
        enter_jit
        leave_jit
        i32.const 0
        jump_if around
    :other
        i32.const 0
        jump_if other
        call f
        halt
    .function f
        return
    """
    verified = assembled(text)
    marked = {each.name for each in regions(verified) if each.marked}
    everything = set(names(regions(verified)))
    assert everything - marked == {"main/loop.3", "f"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("main", "f", "f"), ["main", "f#1", "f#2"]),
        (("main", "program", ""), ["main", "program#1", "#2"]),
        (("main", "f/loop.1", "f"), ["main", "f/loop.1#1", "f"]),
        (("main", "f#2", "f"), ["main", "f#2#1", "f"]),
        (("string/length", "->", "a b"), ["string/length", "->", "a b"]),
    ],
)
def test_functions_that_could_be_mistaken_have_their_number(
    given: tuple[str, ...], expected: list[str]
) -> None:
    program = ferryvm.assemble(".function a\nhalt\n.function b\nreturn\n.function c\nreturn\n")
    functions = tuple(
        dataclasses.replace(function, name=name)
        for function, name in zip(program.functions, given, strict=True)
    )
    assert all(isinstance(function, Function) for function in functions)
    found = regions(verify(dataclasses.replace(program, functions=functions)))
    assert names(found) == ["program", *expected]


@pytest.mark.parametrize("number", sample(range(30), 10))
def test_names_of_random_programs_are_unique(number: int) -> None:
    verified = verify(generate(3, number, list(Generated)[number % 2]))
    found = regions(verified)
    assert len({each.name for each in found}) == len(found)
    for each in found:
        assert each.entry in each.pcs
        assert all(verified.owner(pc) in each.functions for pc in each.pcs)
        if each.kind not in (RegionKind.PROGRAM, RegionKind.SCOPE):
            assert each in candidates(verified, each.entry)


def test_package_gives_every_name_that_it_lists() -> None:
    for name in package.__all__:
        assert getattr(package, name).__name__ == name
    with pytest.raises(AttributeError, match=r"module 'ferryvm\.region' has no attribute 'regoin'"):
        package.regoin  # noqa: B018 - the look-up is what raises


def test_scope_that_no_exception_gets_to_is_no_region() -> None:
    program = assembled("""
.tag thrown
.tag other i64
.function main
:try
    throw thrown
:end
:unreached
    enter_jit
    drop
    leave_jit
    halt
:handler
    enter_jit
    nop
    leave_jit
    halt
.catch thrown from try to end using handler
.catch other from try to end using unreached
""")
    found = regions(program)
    assert names(found) == ["program", "main", "main/scope.1"]
    assert [facts(each).instructions for each in found] == [5, 5, 2]
