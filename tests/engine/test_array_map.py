# SPDX-License-Identifier: Apache-2.0
"""Maps and reductions of NumPy arrays by functions of an instance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ferryvm
from ferryvm import CallError, Engine, Instance, host, i64
from ferryvm.build import F64, I32, Program
from ferryvm.engine import array_map
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.object_shape import Shapes
from ferryvm.machine.object_walk import objects

from ..tier import nightly

TEXT = """
(define (axpy x y a) (+ (* a x) y))
(define (inverse (x i64)) (/ 10 x))
(define (plus (a f64) b) (+ a b))
(define (pick (i i64) (table (array f64))) (array-ref table i))
(define (shout (x i64)) (print! x))
(define (spin (n i64)) (while (> n 0) (set! n (- n 1))) 7)
(define count 0)
(print! (axpy 1 2 3.0))
"""


def instance(backend: str | None = "threaded") -> Instance:
    return Engine(backend).instantiate(ferryvm.compile(TEXT, "a.skiff"))


@pytest.mark.parametrize(
    "backend", ["threaded", *map(nightly, ("reference", "switch", "llvm", "opencl", "vliw"))]
)
def test_arrays_and_numbers_are_arguments_by_place_or_by_name(backend: str) -> None:
    f = instance(backend).axpy
    xs = np.arange(6.0).reshape(2, 3)
    found = ferryvm.map(f, xs, xs, a=2.0)
    assert found.tolist() == (3 * xs).tolist()
    assert ferryvm.map(f, xs, 1, a=xs, out=found) is found
    assert found.tolist() == (xs * xs + 1).tolist()
    ferryvm.map(f, xs, xs, 2, out=xs)
    assert xs.tolist() == (3 * np.arange(6.0).reshape(2, 3)).tolist()
    assert ferryvm.map(f, np.array([]), 1, 2).shape == (0,)


def test_narrow_elements_and_arrays_that_all_items_share() -> None:
    made = instance()
    table = np.array([0.5, 1.5, 2.5])
    assert ferryvm.map(made.pick, np.array([2, 0], np.uint8), table).tolist() == [2.5, 0.5]
    out = np.zeros(2, np.int8)
    ferryvm.map(made.inverse, np.array([-2, 5], np.int16), out=out)
    assert out.tolist() == [-5, 2]


def test_several_results_are_a_tuple_of_arrays() -> None:
    program = Program()
    both = program.function("both", {"x": F64}, [F64, I32])
    both.local_get("x")
    both.local_get("x")
    both.i32_trunc_f64_s()
    program.export(both, "two parts")
    made = Engine("threaded").instantiate(program.build())
    halves, wholes = ferryvm.map(made.exports["two parts"], np.array([1.5, 2.25]))
    assert (halves.tolist(), wholes.tolist(), wholes.dtype) == ([1.5, 2.25], [1, 2], np.int32)
    out = np.zeros(2), np.zeros(2, np.uint8)
    assert ferryvm.map(made.exports["two parts"], np.array([1.5, 300.0]), out=out)[1] is out[1]
    assert out[1].tolist() == [1, 44]
    memory = np.zeros(3)
    with pytest.raises(CallError, match=r"\(out\[1\]\) shares .* \(out\[0\]\); each result needs"):
        ferryvm.map(
            made.exports["two parts"], np.zeros(2), out=(memory[1:], memory.view(np.int32)[2:4])
        )


def test_a_reduction_has_the_stated_order() -> None:
    xs = np.array([0.1, 0.2, 0.3, 1e20, -1e20])
    assert ferryvm.reduce(instance().plus, xs, 5.0) == 5.0 + ((((0.1 + 0.2) + 0.3) + 1e20) - 1e20)
    assert ferryvm.reduce(instance().plus, xs[:3]) == (0.1 + 0.2) + 0.3


def test_without_an_initial_value_an_empty_array_has_the_neutral_element() -> None:
    text = "(define (plus (x f64) (y f64)) (+ x y)) (define (both (x i64) (y i64)) (& y x))"
    text += "(define (apart (x f64) (y f64)) (+ x (- y 0)))"
    made = Engine("threaded").instantiate(ferryvm.compile(text))
    found = ferryvm.reduce(made.plus, np.zeros(0)), ferryvm.reduce(made.both, np.zeros(0, int))
    assert found == (0.0, -1)
    assert str(ferryvm.reduce(made.plus, np.array([-0.0]))) == "-0.0"
    with pytest.raises(CallError, match="reduce of apart: the array has no elements; an initial"):
        ferryvm.reduce(made.apart, np.zeros(0))


def test_a_scan_is_stored_where_out_says_also_in_place() -> None:
    f, xs = instance().plus, np.linspace(0.1, 70.0, 700).reshape(7, 100)
    expected, out = ferryvm.scan(f, xs), np.empty_like(xs)
    assert ferryvm.scan(f, xs, out=out) is out
    assert out.reshape(-1).tolist() == expected.tolist()
    ferryvm.scan(f, xs, out=xs)
    assert xs.tolist() == out.tolist()
    for wrong in (np.zeros(3), np.zeros((7, 100), np.float32), [0.0]):
        with pytest.raises(CallError, match=r"^scan of plus: out (has the shape|is an array|is )"):
            ferryvm.scan(f, xs, out=wrong)  # type: ignore[arg-type]  # that is the test


def test_a_trap_names_the_item_and_leaves_the_instance_usable() -> None:
    f = instance().inverse
    with pytest.raises(ferryvm.TrapError, match=r"^a.skiff:3:27: .*by zero, in item 1\n"):
        ferryvm.map(f, np.array([5, 0, 0]))
    assert f(5) == 2
    assert ferryvm.map(f, np.array([5, 1])).tolist() == [2, 10]


def test_a_call_that_had_stopped_goes_on_after_a_map() -> None:
    made = instance()
    with pytest.raises(ferryvm.OutOfFuelError) as stopped:
        made.call("spin", 100, fuel=50)
    assert ferryvm.map(made.inverse, np.array([5])).tolist() == [2]
    assert stopped.value.call.resume() == 7
    assert ferryvm.map(made.inverse, np.array([2])).tolist() == [5]


def test_a_saved_instance_maps_again(tmp_path: Path) -> None:
    made = instance()
    ferryvm.map(made.inverse, np.array([5]))
    made.save(tmp_path / "a.ferry")
    again = Engine("switch").resume_instance(tmp_path / "a.ferry")
    assert list(again.exports) == list(made.exports)
    assert ferryvm.map(again.inverse, np.array([5])).tolist() == [2]
    assert ferryvm.map(again.inverse, np.array([5], np.int8)).tolist() == [2]


def test_mixed_execution_goes_on_with_the_longer_program() -> None:
    made = instance(None)
    xs = np.arange(3000.0)
    for factor in range(3):
        assert ferryvm.map(made.axpy, xs, 1, factor)[-1] == 2999 * factor + 1
        assert made.axpy(1, 2, factor) == factor + 2


def test_the_first_use_inside_a_host_function_is_an_error() -> None:
    @host
    def asked(made: Instance, x: i64) -> i64:
        return int(ferryvm.map(made.double, np.array([x]))[0])

    text = """(host-function asked (i64) i64) (define (double (x i64)) (* 2 x))
              (define (f x) (asked x))"""
    made = Engine("threaded").instantiate(ferryvm.compile(text), hosts=[asked])
    with pytest.raises(CallError, match="map of double: its first use is inside a host function"):
        made.f(4)
    ferryvm.map(made.double, np.array([1]))
    assert made.f(4) == 8


XS = np.arange(6.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: ferryvm.map(f, XS, a=2), "takes 3 arguments, found 1 and 1 by name"),
        (lambda f: ferryvm.map(f, XS, XS, b=2), "no parameter 'b'; there are x, y, a"),
        (
            lambda f: ferryvm.map(f, 1, 2, 3),
            "no argument is an array of elements; call axpy itself",
        ),
        (lambda f: ferryvm.map(f, XS.astype("f4"), 1, 2), "pass x.astype(numpy.float64)"),
        (lambda f: ferryvm.map(f, XS, [1, 2], 3), "(y) is [1, 2]; a contiguous array of float64"),
        (lambda f: ferryvm.map(f, XS, XS[1:], 2), "x and y have different shapes, (6,) and (5,)"),
        (lambda f: ferryvm.map(f, XS[::2], 1, 2), "pass numpy.ascontiguousarray(x)"),
        (lambda f: ferryvm.map(f, XS, 1, "a"), "argument 3 (a) is 'a'; a number for an f64"),
        (lambda f: ferryvm.map(f, XS, 1, 2, out=5), "out is 5; an ndarray is needed, or a tuple"),
        (lambda f: ferryvm.map(f, XS, 1, 2, out=XS[1:]), "out has the shape (5,), the arrays have"),
        (lambda f: ferryvm.map(f, XS, 1, 2, out=(XS, XS)), "out has 2 arrays, there are 1 results"),
        (
            lambda f: ferryvm.map(f, XS, 1, 2, out=np.zeros(6, int)),
            "out is an array of int64; one of float64 is needed, as numpy.empty((6,), numpy.float64)",
        ),
        (lambda f: (ferryvm.map(f, XS, 1, 3), ferryvm.map(f, XS, [1], 3)), "(y) is [1]; a contig"),
        (lambda f: ferryvm.map(f, np.ma.array(XS), 1, 2), "pass x.filled()"),
        (
            lambda f: ferryvm.map(f, XS[1:], 1, 2, out=XS[:-1]),
            "read-only and begin apart: pass x.copy()",
        ),
        (
            lambda f: ferryvm.map(f, XS, 1, 2, out=np.broadcast_to(XS, (6,))),
            "out is read-only; an array that can be written is needed",
        ),
        (lambda f: ferryvm.reduce(f, XS, 1), "a function of two numbers of one type is needed"),
    ],
)
def test_a_mistake_is_one_line(call, message: str) -> None:  # type: ignore[no-untyped-def]  # lambdas
    with pytest.raises(CallError) as raised:
        call(instance().axpy)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_other_mistakes_are_one_line() -> None:
    made = instance()
    with pytest.raises(
        TypeError, match="map takes a Python function, or a function of an instance, such"
    ):
        ferryvm.map("abs", XS)
    with pytest.raises(CallError, match="map of shout: the results must be numbers, and at least"):
        ferryvm.map(made.shout, np.array([1]))
    with pytest.raises(CallError, match="pass array"):
        ferryvm.reduce(made.plus, np.array([1]), 1)


def test_no_object_refers_to_the_memory_of_a_released_array() -> None:
    f = instance().axpy
    machine = f.__ferryvm__[0].machine
    space = machine.objects.space

    def outside() -> list[int]:
        shapes = Shapes(machine.program)
        words = space.words[: machine.control.object_top // WORD_BYTES]
        found = objects(words, shapes, is_image=False, gaps=space.gaps)
        return [one.outside for one in found if one.outside is not None]

    xs, out = np.arange(6.0), np.zeros(6)
    for _ in range(2):
        ferryvm.map(f, xs, xs, 2.0, out=out)
        array_map.release(f, [out])
        assert len(outside()) == len(space.hosts) == 1
    assert out.tolist() == (3 * xs).tolist()


def test_ranges_are_reduced_and_scanned_without_an_array() -> None:
    program = ferryvm.compile("(define (plus (x i64) (y i64)) (+ x y))")
    f = ferryvm.Engine("threaded").instantiate(program).plus
    assert ferryvm.reduce(f, range(5, 3000, 7)) == sum(range(5, 3000, 7))
    assert ferryvm.reduce(f, range(0)) == 0
    assert ferryvm.scan(f, range(4, 0, -1)).tolist() == [4, 7, 9, 10]
    out = np.zeros(3, np.int64)
    with pytest.raises(CallError, match=r"out has the shape \(3,\)"):
        ferryvm.scan(f, range(4), out=out)
    with pytest.raises(CallError, match="do not fit into 64 bits"):
        ferryvm.reduce(f, range(2**63, 2**63 + 2))
