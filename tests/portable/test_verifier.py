# SPDX-License-Identifier: Apache-2.0
"""The verifier of plain form takes what is exported, and finds planted faults of each kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.ir.graph import FrameState, Operation, Terminator
from ferryvm.ir.operation import IrError
from ferryvm.isa.element import Element
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F64, I64
from ferryvm.portable.interface import Direction
from ferryvm.portable.plain import PlainFunction
from ferryvm.portable.plain_form import plain_form
from ferryvm.portable.region import region_subject
from ferryvm.portable.verifier import verify_plain
from ferryvm.verify import Verified, verify

from ..tier import sample

NAMES = ("axpy", "histogram", "buckets", "scaled", "roots", "narrow", "shift!", "dot/loop.1")


def plain(kernels: Verified, name: str, level: int = 2) -> PlainFunction:
    return plain_form(region_subject(kernels, name), "kernel", level)


def one(function: PlainFunction, name: str) -> Operation:
    """The first operation of a name."""
    return next(each for each in function.body.operations if each.name == name)


@pytest.mark.parametrize(
    ("name", "level"), sample([(name, level) for name in NAMES for level in (0, 2, 3)], 6)
)
def test_exported_functions_are_in_plain_form(kernels: Verified, name: str, level: int) -> None:
    verify_plain(plain(kernels, name, level))


PRODUCT = """
(define (product (a (array f64)) (b (array f64)) (c (array f64)) (n i64))
  (define i 0)
  (while (< i n)
    (define j 0)
    (while (< j n)
      (define sum 0.0)
      (define k 0)
      (while (< k n)
        (set! sum (+ sum (* (array-ref a (+ (* i n) k)) (array-ref b (+ (* k n) j)))))
        (set! k (+ k 1)))
      (array-set! c (+ (* i n) j) sum)
      (set! j (+ j 1)))
    (set! i (+ i 1))))
(product (make-array f64 1) (make-array f64 1) (make-array f64 1) 1)
"""


def test_a_nest_is_interleaved_at_the_default_level_and_compares_its_arrays() -> None:
    verified = verify(ferryvm.compile(PRODUCT))
    sizes = {}
    for level in (1, 2):
        function = plain(verified, "product", level)
        verify_plain(function)
        sizes[level] = sum(each.name == "fmul" for each in function.body.operations)
        compared = [o for o in function.body.operations if {*o.arguments} & {*function.pointers}]
        assert any(each.name == "compare" for each in compared) == (level == 2)
    assert sizes[2] > 4 * sizes[1]


def with_unknown_operation(function: PlainFunction) -> None:
    one(function, "array_store").name = "element_store"


def with_a_state(function: PlainFunction) -> None:
    one(function, "array_store").state = FrameState(0, ())


def with_a_pointer_as_a_number(function: PlainFunction) -> None:
    load = one(function, "array_load")
    load.arguments = (load.arguments[0], load.arguments[0])


def with_a_number_as_a_pointer(function: PlainFunction) -> None:
    load = one(function, "array_load")
    load.arguments = (load.arguments[1], load.arguments[1])


def with_an_operand_of_another_type(function: PlainFunction) -> None:
    store = one(function, "array_store")
    store.arguments = (*store.arguments[:2], store.arguments[1])


def with_too_few_operands(function: PlainFunction) -> None:
    store = one(function, "array_store")
    store.arguments = store.arguments[:2]


def with_elements_of_another_kind(function: PlainFunction) -> None:
    one(function, "array_load").static = (Element.F32,)


def with_a_value_from_nowhere(function: PlainFunction) -> None:
    store = one(function, "array_store")
    store.arguments = (*store.arguments[:2], Operation("array_load", F64, (Element.F64,)))


def with_a_use_before_the_definition(function: PlainFunction) -> None:
    block = next(b for b in function.body.blocks if any(o.name == "fmul" for o in b.operations))
    at = next(n for n, each in enumerate(block.operations) if each.name == "fmul")
    block.operations.insert(0, block.operations.pop(at))


def with_an_error_that_is_not_listed(function: PlainFunction) -> None:
    one(function, "error_if").static = (Trap.INTEGER_OVERFLOW, 8)


def with_an_error_of_another_line(function: PlainFunction) -> None:
    one(function, "error_if").static = (Trap.INDEX_OUT_OF_BOUNDS, 8)


def with_a_block_without_an_end(function: PlainFunction) -> None:
    function.body.blocks[-1].terminator = None


def with_another_terminator(function: PlainFunction) -> None:
    block = next(each for each in function.body.blocks if each.end.name == "return")
    block.terminator = Terminator("halt")


def with_a_result_too_many(function: PlainFunction) -> None:
    block = next(each for each in function.body.blocks if each.end.name == "return")
    block.terminator = Terminator("return", (), (function.body.constant(I64, 0),))


def with_an_edge_of_too_few_arguments(function: PlainFunction) -> None:
    edges = [e for b in function.body.blocks for e in b.end.edges if e.arguments]
    edges[0].arguments = edges[0].arguments[1:]


def with_an_array_that_is_read_only(function: PlainFunction) -> None:
    redirect(function, "y", Direction.IN)


def with_an_array_that_is_only_written(function: PlainFunction) -> None:
    redirect(function, "x", Direction.OUT)


def redirect(function: PlainFunction, name: str, direction: Direction) -> None:
    """Give an array another direction in the interface."""
    interface = function.interface
    changed = {
        each: dataclasses.replace(each, direction=direction)
        for each in interface.arrays
        if each.name == name
    }
    arguments = tuple(changed.get(each, each) for each in interface.arguments)  # type: ignore[call-overload]  # others stay
    function.interface = dataclasses.replace(interface, arguments=arguments)
    function.pointers = {p: changed.get(each, each) for p, each in function.pointers.items()}


def with_a_parameter_too_few(function: PlainFunction) -> None:
    function.body.blocks[0].parameters.pop()


PLANTED: dict[Callable[[PlainFunction], None], str] = {
    with_unknown_operation: "it is no operation of plain form",
    with_a_state: "no state expected",
    with_a_pointer_as_a_number: "a i64 expected, found a pointer",
    with_a_number_as_a_pointer: "a pointer expected, found a number",
    with_an_operand_of_another_type: "f64 expected, found i64",
    with_too_few_operands: "3 operands expected, found 2",
    with_elements_of_another_kind: "has elements of f64",
    with_a_value_from_nowhere: "a value that is defined on every path expected",
    with_a_use_before_the_definition: "a value that is defined on every path expected",
    with_an_error_that_is_not_listed: "the interface has no such error at that line",
    with_an_error_of_another_line: "the interface has no such error at that line",
    with_a_block_without_an_end: "it has no terminator",
    with_another_terminator: "it is no terminator of plain form",
    with_a_result_too_many: "0 operands expected, found 1",
    with_an_edge_of_too_few_arguments: "operands expected, found",
    with_an_array_that_is_read_only: "'y' is in",
    with_an_array_that_is_only_written: "'x' is out",
    with_a_parameter_too_few: "'y' has no parameter of type i64",
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: str(plant.__name__))
def test_a_planted_fault_is_found(
    kernels: Verified, plant: Callable[[PlainFunction], None]
) -> None:
    function = plain(kernels, "axpy")
    plant(function)
    with pytest.raises(IrError, match=PLANTED[plant]):
        verify_plain(function)
