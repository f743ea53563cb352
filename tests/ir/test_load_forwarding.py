# SPDX-License-Identifier: Apache-2.0
"""What a loop has loaded it does not load again, and what it works with is the same."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.ir.footprint import Footprint
from ferryvm.ir.graph import Block, Body, Module, Parameter, UnrolledItem
from ferryvm.ir.lift import lift
from ferryvm.ir.passes import optimise
from ferryvm.ir.passes.address_base import share_bases
from ferryvm.ir.passes.code_motion import hoist_invariants
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.load_forwarding import forward_loads
from ferryvm.ir.passes.strength_reduction import reduce_strength
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.isa.type import I64
from ferryvm.region.region import region
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import verify

from ..heap_vector import on_heap
from ..tier import crossed, sample
from .change import changed
from .comparison import compare, visits
from .test_unroll import PROGRAMS

LOOP = """
entry @0 ():
  %0: i64 = word 2
  jump b1(%0)
b1 @1 (%1: i64):
  %2: i64 = add i64 %1, i64:8
  %3: i64 = heap_load 8 %2
  %4: i64 = add i64 %1, i64:{second}
  %5: i64 = heap_load {size} %4
  {change}
  poll @1 [_ _ %3 %5]
  %6: i64 = add i64 %1, {step}
  jump b1(%6)^
"""
USUAL = {"second": "16", "size": "8", "change": "", "step": "i64:8"}

NEST, V, W = Block("b0", 0), Parameter(I64), Parameter(I64)

WAVE = """
    (define (f v w n)
      (define i 0)
      (while (< i n)
        (let ((s 0) (k 0))
          (while (< k {taps})
            (set! s (+ s (vector-ref v (+ (* i {step}) k))))
            (set! k (+ k 1)))
          (vector-set! w i s))
        (set! i (+ i 1))))
    (f {v} (make-vector i64 40) 9)
"""


def kept(body: Body, most: int = 4) -> None:
    forward_loads(body, {}, lambda _: most)
    remove_dead_code(body)


def loads_of(text: str) -> int:
    """How many there are in the loop."""
    return text.split("b1 @1")[1].count("heap_load")


def test_what_the_next_round_loads_is_passed_on() -> None:
    assert changed(kept, LOOP.format_map(USUAL)) == (
        """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = add i64 %0, i64:8
  %2: i64 = heap_load 8 %1
  jump b1(%0, %2)
b1 @1 (%3: i64, %4: i64):
  %5: i64 = add i64 %3, i64:16
  %6: i64 = heap_load 8 %5
  poll @1 [_ _ %4 %6]
  %7: i64 = add i64 %3, i64:8
  jump b1(%7, %6)^
"""
    )


def test_a_loop_that_goes_down_keeps_the_lower_one() -> None:
    text = changed(kept, LOOP.format_map(USUAL | {"step": "i64:-8"}))
    assert loads_of(text) == 1
    assert "jump b1(%0, %2)" in text
    assert "%1: i64 = add i64 %0, i64:16" in text


@pytest.mark.parametrize(
    "change",
    [
        {"second": "24"},
        {"second": "12"},
        {"size": "4"},
        {"step": "%3"},
        {"change": "heap_store 8 %1, %3"},
    ],
)
def test_both_are_loaded_if(change: dict[str, str]) -> None:
    assert loads_of(changed(kept, LOOP.format_map(USUAL | change))) == 2


def test_what_was_loaded_in_the_same_round_is_loaded_once() -> None:
    assert loads_of(changed(kept, LOOP.format_map(USUAL | {"second": "8"}))) == 1


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ("", 1),
        ("element_store f64 %1, i64:0, %3", 1),
        ("heap_store 8 %1, %3", 1),
        ("element_store i64 %1, i64:0, %3", 2),
        ("canonicalise_elements f64 %1, i64:0, f64:1.0", 1),
        ("fill_elements i64 %1, i64:0, %3, %3", 2),
        ("%50: i64 = update_element i64 add %1, i64:0, %3", 2),
        ("%50: i64 = update_element u32 min_u %1, i64:0, %3", 1),
        ("%50: i64 = compare_exchange_element i64 %1, i64:0, %3, %3", 2),
        ("canonicalise_elements f64 %1, i64:0, f64:0.0", 1),
    ],
)
def test_elements_are_passed_on_unless_those_of_their_type_are_stored(
    change: str, left: int
) -> None:
    text = LOOP.format_map(USUAL | {"change": change})
    text = text.replace("heap_load 8 %2", "element_load i64 %2, i64:0")
    text = text.replace("heap_load 8 %4", "element_load i64 %4, i64:0")
    assert changed(kept, text).split("b1 @1")[1].count("element_load") == left


def test_no_more_is_passed_on_than_was_said() -> None:
    more = "".join(
        f"\n  %{20 + n}: i64 = add i64 %1, i64:{24 + 8 * n}"
        f"\n  %{30 + n}: i64 = heap_load 8 %{20 + n}\n  poll @1 [_ _ %{30 + n} %3]"
        for n in range(4)
    )
    text = LOOP.format_map(USUAL | {"change": more})
    assert loads_of(text) == 6
    for most, left in enumerate([6, 5, 4, 3, 2, 1, 1]):
        found = changed(lambda body, most=most: kept(body, most), text)  # type: ignore[misc]
        assert loads_of(found) == left
        assert found.split("b1 @1")[0].count("heap_load") == 6 - left


@pytest.mark.parametrize(
    ("places", "left"),
    [
        ((V, V, W), 1),  # what is stored is known to be elsewhere
        ((V, V, V), 2),
        ((V, V, None), 2),
        ((None, None, W), 2),
    ],
)
def test_a_store_may_change_what_is_loaded_unless_it_is_known_not_to(
    places: tuple[Parameter | None, ...], left: int
) -> None:
    def apart(body: Body) -> None:
        accesses = [o for o in body.operations if o.name in ("heap_load", "heap_store")]
        pairs = zip(accesses, places, strict=True)
        known = {o: Footprint(NEST, base, 0, 8, 8) for o, base in pairs if base is not None}
        forward_loads(body, known, lambda _: 4)
        remove_dead_code(body)

    text = LOOP.format_map(USUAL | {"change": "heap_store 8 %1, %3"})
    assert loads_of(changed(apart, text)) == left


@pytest.mark.parametrize(("step", "left"), [(1, 1), (2, 2), (3, 3), (4, 4)])
def test_a_window_that_moves_on_is_loaded_as_far_as_it_is_new(step: int, left: int) -> None:
    text = WAVE.format(taps=4, step=step, v="(make-vector i64 40)")
    module = lift(region(verify(ferryvm.compile(on_heap(text))), "f/nest.1"))
    _kept(module)
    (sure,) = (b for b in module.root.blocks if b.label.startswith("unchecked.iteration"))
    assert sum(operation.name == "heap_load" for operation in sure.operations) == left


@pytest.mark.rotate("v", "taps", "step", most=2)
@pytest.mark.parametrize("v", ["(make-vector i64 40)", "(make-vector i64 11)"])
@pytest.mark.parametrize("taps", [2, 5])
@pytest.mark.parametrize("step", [1, 2])
def test_states_of_moving_windows_are_the_same(v: str, taps: int, step: int) -> None:
    text = WAVE.format(taps=taps, step=step, v=v)
    for found, machine in visits(verify(ferryvm.compile(on_heap(text))), most=6000):
        compare(found, machine, _kept)


SIZES = [(40, 7), (6, 7), (1, 2), (40, 0)]


@pytest.mark.parametrize(("name", "size"), crossed(PROGRAMS, SIZES, 1))
def test_states_are_the_same(name: str, size: tuple[int, int]) -> None:
    length, n = size
    text = PROGRAMS[name].format(length=length, n=n)
    for found, machine in visits(verify(ferryvm.compile(on_heap(text)))):
        compare(found, machine, _kept)


@pytest.mark.parametrize("number_", sample(range(40), 3))
def test_states_of_random_programs_are_the_same(number_: int) -> None:
    for found, machine in visits(verify(generate(86, number_, ProgramKind.BYTECODE))):
        compare(found, machine, _kept)


def _kept(module: Module) -> None:
    optimise(module, unrolled=True)
    for body in module.bodies:
        for each in (
            share_bases,
            hoist_invariants,
            number_values,
            remove_dead_code,
            reduce_strength,
            hoist_invariants,
            remove_dead_code,
        ):
            each(body)
        forward_loads(body, module.footprints, lambda _: 8)
        remove_dead_code(body)


@pytest.mark.parametrize(
    ("items", "left"),
    [
        ((0, 1, 2), 1),
        ((0, 0, 2), 1),
        ((0, 2, 2), 2),  # an item sees what it has stored itself
        ((0, None, 2), 2),
        ((0, 1, None), 2),
    ],
)
def test_a_row_loads_once_what_its_items_share(items: tuple[int | None, ...], left: int) -> None:
    def shared(body: Body) -> None:
        accesses = [o for o in body.operations if o.name in ("heap_load", "heap_store")]
        for access, number in zip(accesses, items, strict=True):
            access.item = None if number is None else UnrolledItem(2, 1, number)
        kept(body)

    text = LOOP.replace("  {change}\n", "").replace("  %5:", "  heap_store 8 %1, %3\n  %5:")
    assert loads_of(changed(shared, text.format_map(USUAL | {"second": "8"}))) == left
