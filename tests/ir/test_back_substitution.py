# SPDX-License-Identifier: Apache-2.0
"""Linear recurrences are computed iterations ahead, and have the values that they had."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ferryvm
from ferryvm.ir.graph import Module
from ferryvm.ir.passes import back_substitution, optimise
from ferryvm.ir.passes.back_substitution import FEWEST, substitute_back
from ferryvm.region.region import Region
from ferryvm.verify import verify

from ..tier import crossed
from .change import changed
from .comparison import compare, visits

LOOP = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  jump b1(%0, i64:0)
b1 @1 (%2: i64, %3: i64):
  {product}
  {sum}
  {next}
  poll @1 [_ _ %6 {state}]
  %7: i64 = add i64 %3, i64:1
  jump b1(%6, %7)^
"""
INVARIANT = {
    "product": "%4: i64 = mul i64 %2, i64:7",
    "sum": "%5: i64 = add i64 %4, i64:11",
    "next": "%6: i64 = bit_and i64 %5, i64:255",
    "state": "%3",
}
VARYING = INVARIANT | {"sum": "%5: i64 = add i64 %4, %3"}

UNFIT = {
    "it is a sum": {"product": "%4: i64 = add i64 %2, i64:7"},
    "the product is quick": {"product": "%4: i64 = mul i64 %2, i64:8"},
    "the factor varies": {"product": "%4: i64 = mul i64 %2, %3"},
    "the addend depends on it": {
        "product": "%8: i64 = shr_u i64 %2, i64:3\n  %4: i64 = mul i64 %2, i64:7",
        "sum": "%5: i64 = add i64 %4, %8",
    },
    "the mask is no power of two less one": {"next": "%6: i64 = bit_and i64 %5, i64:254"},
    "an overflow is looked for": {
        "product": "%8: boolean = mul_overflows i64 %2, i64:7\n"
        "  trap_if INTEGER_OVERFLOW %8 @1 [_ _ %2 %3]\n  %4: i64 = mul i64 %2, i64:7",
        "next": "%6: i64 = add i64 %4, i64:1",
    },
}


def test_sums_of_four_iterations_are_under_way() -> None:
    text = changed(substitute_back, LOOP.format_map(INVARIANT))
    loop = text.split("b1 @1")[1]
    assert f"%14: i64 = mul i64 %10, i64:{7**4}" in loop
    assert f"add i64 %14, i64:{11 * (7**3 + 7**2 + 7 + 1)}" in loop
    assert "bit_and i64 %10, i64:255" in loop
    assert loop.count("= mul") == 1


def test_a_sum_with_an_addend_that_varies_is_one_iteration_ahead() -> None:
    loop = changed(substitute_back, LOOP.format_map(VARYING)).split("b1 @1")[1]
    assert loop.count("= mul") == 2
    assert "i64:49" in loop


def test_a_recurrence_without_a_mask_is_ahead_too() -> None:
    without = INVARIANT | {"sum": "", "next": "%6: i64 = add i64 %4, %1"}
    text = changed(substitute_back, LOOP.format_map(without))
    assert f"i64:{7**4}" in text


@pytest.mark.parametrize("reason", UNFIT)
def test_it_stays_as_it_is_if(reason: str) -> None:
    text = LOOP.format_map(INVARIANT | UNFIT[reason])
    assert changed(substitute_back, text).count("= mul") == text.count("= mul")


COUNTED = """
entry @0 ():
  %0: i64 = word 2
  jump b1(%0, i64:0)
b1 @1 (%1: i64, %2: i64):
  %3: boolean = compare i64 lt_s %2, i64:{bound}
  branch %3 b2() leave()
leave @2 ():
  leave @2 [_ _ %1]
b2 @1 ():
  %4: i64 = mul i64 %1, i64:7
  %5: i64 = add i64 %2, i64:1
  poll @1 [_ _ %4]
  jump b1(%4, %5)^
"""


@pytest.mark.parametrize("bound", [FEWEST, FEWEST + 1])
def test_loops_of_few_iterations_stay_as_they_are(bound: int) -> None:
    text = changed(substitute_back, COUNTED.format(bound=bound))
    assert (f"i64:{7**4}" in text) == (bound > FEWEST)


PROGRAMS = {
    "masked": "(set! x (& (+ (* x {a}) {c}) 65535)) (set! s (^ s x))",
    "unmasked": "(set! x (+ (* x {a}) {c})) (set! s (^ s x))",
    "geometric": "(set! x (* x {a})) (set! s (+ s x))",
    "polynomial": "(set! x (+ (* x {a}) (^ i {c}))) (set! s (^ s x))",
    "masked polynomial": "(set! x (& (+ (* x {a}) (* i {c})) 1023)) (set! s (+ s x))",
    "two": "(set! x (+ (* x {a}) s)) (set! s (& (+ (* s 11) {c}) 255))",
    "the sum is used": "(let ((y (+ (* x {a}) {c}))) (set! s (+ s (>> y 3))) (set! x (& y 4095)))",
}
NUMBERS = [(1664525, 1013904223), (-7, 3), (7, -11)]


def states(name: str, numbers: tuple[int, int]) -> Iterator[tuple[Region, ferryvm.Machine]]:
    """Visits of a program's regions."""
    a, c = numbers
    body = PROGRAMS[name].format(a=a, c=c)
    text = f"""
        (define (f x n)
          (define s 1)
          (define i 0)
          (while (< i n) {body} (set! i (+ i 1)))
          (+ s x))
        (print! (f -5 9)) (print! (f 70000 2)) (print! (f 3 0))
    """
    yield from visits(verify(ferryvm.compile(text)), times=4)


@pytest.mark.parametrize(("name", "numbers"), crossed(PROGRAMS, NUMBERS, 1))
def test_states_are_the_same(name: str, numbers: tuple[int, int]) -> None:
    assert max(_compare(name, numbers)) == (2 if name == "two" else 1)


def test_a_wrong_product_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(back_substitution._Change, "_times", lambda self, factor, value: value)
    with pytest.raises(AssertionError):
        _compare("polynomial", NUMBERS[0])


def _compare(name: str, numbers: tuple[int, int]) -> list[int]:
    """Compare states; the recurrences that were ahead, a number for each time."""
    ahead = list[int]()

    def change(module: Module) -> None:
        optimise(module)
        ahead.append(sum(substitute_back(body) for body in module.bodies))

    for found, machine in states(name, numbers):
        compare(found, machine, change, polls=4)
    return ahead
