# SPDX-License-Identifier: Apache-2.0
"""Items in lanes do what they do one by one on hand-written code."""

from __future__ import annotations

import pytest

from ferryvm.ir.graph import Body, Module
from ferryvm.ir.lane.cost import ratio
from ferryvm.ir.lane.item import UnvectorisedError, item_body
from ferryvm.ir.lane.shape import VARYING, computed_shape
from ferryvm.ir.lane.vectorise import lanes_of
from ferryvm.ir.parse import parse_module
from ferryvm.ir.text import body_text, module_text
from ferryvm.ir.verify import verify_module

from .case import CASES, FIRST, HEAD, LANES, in_lanes, memory, one_by_one
from .evaluator import LaneEvaluator


def vectorised(name: str) -> tuple[Module, Body]:
    module = parse_module(CASES[name])
    module.lanes = lanes_of(module)
    verify_module(module)
    return module, module.lanes


def names(body: Body) -> list[str]:
    return [operation.name for operation in body.operations]


@pytest.mark.parametrize("name", CASES)
def test_lanes_do_what_items_do_one_by_one(name: str) -> None:
    module, lanes = vectorised(name)
    for shared in (0, 3, 6):
        assert in_lanes(lanes, shared) == one_by_one(module, shared)


@pytest.mark.parametrize("name", CASES)
def test_a_body_of_lanes_reads_back_from_its_text(name: str) -> None:
    module, _ = vectorised(name)
    assert module_text(parse_module(module_text(module))) == module_text(module)


def test_uniform_branches_stay_and_varying_ones_become_masks() -> None:
    def branches(name: str) -> int:
        _, lanes = vectorised(name)
        return sum(block.end.name == "branch" for block in lanes.blocks)

    assert branches("branch") == 0
    assert branches("uniform branch") == 1
    assert branches("memory") == 0


def test_a_uniform_loop_has_a_scalar_counter_and_needs_no_mask_to_go_on() -> None:
    _, lanes = vectorised("uniform loop")
    assert "any_lane" not in names(lanes)
    assert "select" not in names(lanes)
    assert "compare i64 lt_s" in body_text(lanes)
    counters = [o for o in lanes.operations if o.name == "compare"]
    assert lanes.varying is not None
    assert lanes.varying.isdisjoint(counters)


def test_a_divergent_loop_blends_what_is_used_behind_it() -> None:
    _, lanes = vectorised("search")
    assert names(lanes).count("any_lane") >= 1
    assert "select" in names(lanes)


def test_only_consecutive_elements_are_accessed_as_vectors() -> None:
    _, lanes = vectorised("memory")
    found = [name for name in names(lanes) if "load" in name or "store" in name]
    expected = ["load_consecutive", "element_load", "load_each", "store_consecutive"]
    assert found == expected


def test_an_interrupt_suspends_the_lanes_that_are_in_the_loop() -> None:
    module, lanes = vectorised("search")
    whole, _ = one_by_one(module, 3)
    for polls in range(20):
        found = LaneEvaluator(lanes, memory(), LANES, polls).run(FIRST, 3)
        assert found.keys() == whole.keys()
        for lane, (pc, words) in found.items():
            assert pc == 21 or (pc, words) == whole[lane]
            if pc == 21:
                assert words[4] == polls + 1


def test_strides_are_those_of_affine_values() -> None:
    module = parse_module(CASES["memory"])
    (add, mul, shl) = (
        next(o for o in module.functions[1].operations if o.name == name)
        for name in ("add", "mul", "shl")
    )
    assert computed_shape(shl, [1, 0]) == 8
    assert computed_shape(mul, [-2, 0]) == -32
    assert computed_shape(add, [8, -8]) == 0
    assert computed_shape(add, [8, VARYING]) is VARYING
    compare = next(o for o in module.functions[1].operations if o.name == "compare")
    assert computed_shape(compare, [1, 0]) is VARYING


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("  set_static 0 %0\n  return\n", "its items write statics"),
        ("  %2: i64 = static_at %0\n  set_static_at %2, %0\n  return\n", "'static_at'"),
    ],
)
def test_what_cannot_be_run_in_lanes_is_refused_with_a_reason(line: str, reason: str) -> None:
    with pytest.raises(UnvectorisedError, match=reason):
        lanes_of(parse_module(HEAD + line))


def test_code_behind_an_allocation_is_left_to_others() -> None:
    text = "  allocate_if false i64:8, i64:3 @21 [%0 %1 _ _ %0]\n  set_object_top i64:8\n  return\n"
    text = text.replace("allocate_if false i64:8", "allocate_if false, i64:8")
    lanes = lanes_of(parse_module(HEAD + text))
    assert "set_object_top" not in names(lanes)
    found, _ = in_lanes(lanes, 5)
    assert found == {lane: (21, (FIRST + lane, 5, 5, 7, FIRST + lane)) for lane in range(LANES)}


GATHER = """
  %2: i64 = mul i64 %0, i64:24
  %3: i64 = element_load i64 i64:4096, %2
  %4: i64 = shl i64 %3, i64:3
  %5: i64 = element_load i64 i64:4096, %4
  %6: i64 = rem_s i64 %5, %3
  leave @24 [%0 %1 _ _ %6]
"""


def test_items_that_gather_and_divide_integers_are_left_to_scalar_code() -> None:
    module = parse_module(HEAD + GATHER.lstrip("\n"))
    with pytest.raises(UnvectorisedError, match="times as long, by an estimate"):
        lanes_of(module, always=False)
    item = item_body(module)
    assert ratio(item, lanes_of(module)) > 1
    for name in ("branch", "uniform loop"):
        other = parse_module(CASES[name])
        assert ratio(item_body(other), lanes_of(other)) < 1, name
