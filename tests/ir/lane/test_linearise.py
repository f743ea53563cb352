# SPDX-License-Identifier: Apache-2.0
"""Items in lanes do what they do one by one: on hand-written code, and on code with planted faults."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from ferryvm.ir.graph import Body, Module, Operation
from ferryvm.ir.lane.cost import ratio
from ferryvm.ir.lane.emission import Emission
from ferryvm.ir.lane.item import UnvectorisedError, item_body
from ferryvm.ir.lane.shape import VARYING, computed_shape
from ferryvm.ir.lane.variable import LaneValue
from ferryvm.ir.lane.vectorise import lanes_of
from ferryvm.ir.lane.widen import Widening
from ferryvm.ir.parse import parse_module
from ferryvm.ir.text import body_text, module_text
from ferryvm.ir.verify import verify_module

from .evaluator import ItemEvaluator, LaneEvaluator, Memory, Suspended

LANES, FIRST, PLACE = 8, 40, 4096

HEAD = """
module launch

region launch function=0 entry=1
entry @1 ():
  %0: i64 = word 2
  %1: i64 = word 3
  %2: i64 = word 4
  jump b0(%1)
b0 @1 (%3: i64):
  %4: boolean = compare i64 ge_s %3, %0
  branch %4 out() b1()
out @6 ():
  leave @6 [_ _ %0 %1 %3]
b1 @3 ():
  %5: i64 = add i64 %3, i64:1
  call 1 5 %3, %2 @4 [_ _ %0 %1 %5 _ _ i64:5 i64:7]
  poll @1 [_ _ %0 %1 %5]
  jump b0(%5)^

function item function=1 entry=20
entry @20 (%0: i64, %1: i64):
"""

BRANCH = """
  %2: i64 = rem_s i64 %0, i64:3
  %3: boolean = compare i64 eq %2, i64:0
  branch %3 yes() no()
yes @21 ():
  %4: i64 = mul i64 %0, i64:5
  jump join(%4)
no @22 ():
  %5: i64 = add i64 %0, %1
  jump join(%5)
join @23 (%6: i64):
  leave @24 [%0 %1 _ _ %6 %2]
"""

UNIFORM_BRANCH = BRANCH.replace("rem_s i64 %0", "rem_s i64 %1")

SEARCH = """
  %2: i64 = rem_s i64 %0, i64:11
  jump head(i64:0, %1)
head @21 (%3: i64, %4: i64):
  %5: boolean = compare i64 ge_s %3, i64:20
  branch %5 none() test()
test @22 ():
  %6: i64 = mul i64 %3, %3
  %7: i64 = rem_s i64 %6, i64:13
  %8: boolean = compare i64 eq %7, %2
  branch %8 found() again()
again @23 ():
  %9: i64 = add i64 %3, i64:1
  %10: i64 = add i64 %4, %7
  poll @21 [%0 %1 _ _ %9 %10]
  jump head(%9, %10)^
found @24 ():
  leave @25 [%0 %1 _ _ %3 %4 %6]
none @26 ():
  leave @27 [%0 %1 _ _ %4]
"""

NEST = """
  %2: i64 = rem_s i64 %0, i64:4
  jump outer(i64:0, i64:0)
outer @21 (%3: i64, %4: i64):
  %5: boolean = compare i64 lt_s %3, %2
  branch %5 start() done()
start @22 ():
  jump inner(i64:0, %4)
inner @23 (%6: i64, %7: i64):
  %8: i64 = add i64 %7, %6
  %9: i64 = add i64 %6, i64:1
  %10: i64 = add i64 %3, %2
  %11: boolean = compare i64 lt_s %9, %10
  branch %11 more() next()
more @24 ():
  %12: boolean = compare i64 gt_s %8, i64:9
  branch %12 done2() more2()
more2 @25 ():
  poll @23 [%0 %1 _ _ %9 %8]
  jump inner(%9, %8)^
next @26 ():
  %13: i64 = add i64 %3, i64:1
  poll @21 [%0 %1 _ _ %13 %8]
  jump outer(%13, %8)^
done2 @27 ():
  leave @28 [%0 %1 _ _ %8 %6 %3]
done @29 ():
  leave @30 [%0 %1 _ _ %4 %2]
"""

UNIFORM_LOOP = """
  jump head(i64:0, %0)
head @21 (%2: i64, %3: i64):
  %4: boolean = compare i64 lt_s %2, %1
  branch %4 body() out()
body @22 ():
  %5: i64 = mul i64 %3, i64:7
  %6: i64 = bit_xor i64 %5, %2
  %7: i64 = add i64 %2, i64:1
  poll @21 [%0 %1 _ _ %7 %6]
  jump head(%7, %6)^
out @23 ():
  leave @24 [%0 %1 _ _ %3 %2]
"""

TRAPS = """
  %2: i64 = sub i64 %0, i64:42
  %3: boolean = compare i64 eq %2, i64:0
  trap_if INTEGER_DIVIDE_BY_ZERO %3 @21 [%0 %1 _ _ %2]
  %4: i64 = div_s i64 i64:1000, %2
  %5: boolean = compare i64 gt_s %4, i64:300
  branch %5 big() small()
big @22 ():
  %6: i64 = rem_s i64 %4, i64:2
  %7: boolean = compare i64 eq %6, i64:0
  trap_if INTEGER_OVERFLOW %7 @23 [%0 %1 _ _ %2 %4]
  jump small2()
small @24 ():
  jump small2()
small2 @25 ():
  %8: i64 = shl i64 %0, i64:3
  element_store i64 i64:4096, %8, %4
  return
"""

SWITCH = """
  %2: i64 = bit_and i64 %0, i64:3
  switch %2 a() b() c()
a @21 ():
  jump join(i64:10)
b @22 ():
  jump c2(%0)
c @23 ():
  jump c2(%1)
c2 @24 (%3: i64):
  %4: i64 = mul i64 %3, i64:3
  jump join(%4)
join @25 (%5: i64):
  leave @26 [%0 %1 _ _ %5]
"""

MEMORY = """
  %2: i64 = shl i64 %0, i64:3
  %3: i64 = element_load i64 i64:4096, %2
  %4: boolean = compare i64 gt_s %3, i64:50
  branch %4 yes() no()
yes @21 ():
  %5: i64 = shl i64 %1, i64:3
  %6: i64 = element_load i64 i64:4096, %5
  %7: i64 = mul i64 %0, i64:16
  %8: i64 = element_load i64 i64:4096, %7
  %9: i64 = add i64 %6, %8
  element_store i64 i64:65536, %2, %9
  jump no()
no @22 ():
  return
"""

CASES = {
    name.lower(): HEAD + body.lstrip("\n")
    for name, body in {
        "branch": BRANCH,
        "uniform branch": UNIFORM_BRANCH,
        "search": SEARCH,
        "nest": NEST,
        "uniform loop": UNIFORM_LOOP,
        "traps": TRAPS,
        "switch": SWITCH,
        "memory": MEMORY,
    }.items()
}


def memory() -> Memory:
    """Elements for the cases that access some."""
    return Memory({(PLACE, 8 * at): at * 37 % 101 for at in range(200)})


def one_by_one(module: Module, shared: int) -> tuple[dict[int, Suspended], Memory]:
    item, found, elements = item_body(module), {}, memory()
    for lane in range(LANES):
        left = ItemEvaluator(item, elements).run(FIRST + lane, shared)
        if left is not None:
            found[lane] = left
    return found, elements


def in_lanes(lanes: Body, shared: int) -> tuple[dict[int, Suspended], Memory]:
    elements = memory()
    return LaneEvaluator(lanes, elements, LANES).run(FIRST, shared), elements


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
        ("  set_static 0 %0\n  return\n", "it has the operation 'set_static'"),
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


# --- planted faults -------------------------------------------------------------------------


def _swapped(
    run: Callable[..., LaneValue], self: Emission, mask: object, new: LaneValue, old: object
) -> LaneValue:
    """A blend of the wrong lanes."""
    return run(self, mask, new if old is None else old, old if old is None else new)  # type: ignore[arg-type]


def _uncleared(
    run: Callable[..., None], self: Widening, operation: Operation, *rest: object, **more: object
) -> None:
    """A mask that keeps the lanes that have left."""
    mask = self.emission.mask
    run(self, operation, *rest, **more)
    self.emission.mask = mask


def _others_frame(
    run: Callable[..., object], self: LaneEvaluator, operation: Operation, lane: int
) -> None:
    """The words of another lane."""
    before = {**self.suspended}
    run(self, operation, (lane + 1) % self.lanes)
    self.suspended = before | {lane: self.suspended[(lane + 1) % self.lanes]}


FAULTS = {
    "a blend of the wrong lanes": (Emission, "blend", _swapped),
    "a mask not cleared after an exit": (Widening, "suspend", _uncleared),
    "the frame of another lane": (LaneEvaluator, "_leave", _others_frame),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_of_masks_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, method, wrong = FAULTS[fault]
    right = getattr(kind, method)

    @functools.wraps(right)
    def planted(self: object, *rest: object, **more: object) -> object:
        return wrong(right, self, *rest, **more)  # type: ignore[operator]  # one of the three

    monkeypatch.setattr(kind, method, planted)
    found = 0
    for text in CASES.values():
        module = parse_module(text)
        try:
            assert in_lanes(lanes_of(module), 3) == one_by_one(module, 3)
        except (AssertionError, KeyError, ArithmeticError):
            found += 1
    assert found
