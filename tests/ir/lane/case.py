# SPDX-License-Identifier: Apache-2.0
"""Code of items, and how it ends in lanes and one by one."""

from __future__ import annotations

from ferryvm.ir.graph import Body, Module
from ferryvm.ir.lane.item import item_body

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

STRIDES = """
  %2: i64 = mul i64 %0, i64:3
  %3: i64 = add i64 %2, %0
  %4: i64 = sub i64 %2, %0
  %5: i64 = shl i64 %3, i64:1
  leave @21 [%0 %1 _ _ %3 %4 %5]
"""

NO_LANE = """
  %2: boolean = compare i64 gt_s %0, i64:1000
  branch %2 yes() no()
yes @21 ():
  %3: i64 = mul i64 %1, i64:100000
  %4: i64 = element_load i64 i64:4096, %3
  element_store i64 i64:4096, %3, %4
  jump no()
no @22 ():
  return
"""
"""A load that no item does: there is no such element."""

CONSTANT_DIVISOR = """
  %2: boolean = compare i64 gt_s %0, i64:1000
  branch %2 yes() no()
yes @21 ():
  %3: i64 = rem_s i64 %1, i64:0
  leave @22 [%0 %1 _ _ %3]
no @23 ():
  return
"""
"""A division that no item does, of numbers that all share."""

UPDATES = """
  %2: i64 = bit_and i64 %0, i64:3
  %3: i64 = shl i64 %2, i64:3
  %4: boolean = compare i64 gt_s %2, i64:1
  branch %4 yes() no()
yes @21 ():
  %5: i64 = update_element i64 add i64:4096, %3, %0
  %6: i64 = shl i64 %1, i64:3
  %7: i64 = add i64 %6, i64:400
  %8: i64 = update_element i64 max_s i64:4096, %7, %0
  jump no()
no @22 ():
  %9: i64 = update_element i64 min_s i64:4096, i64:64, %2
  return
"""

QUOTIENT = """
  %2: i64 = mul i64 %0, i64:11
  %3: i64 = bit_and i64 i64:5, i64:63
  %4: i64 = shr_u i64 %2, %3
  %5: i64 = mul i64 %1, %0
  %6: i64 = shr_u i64 %5, i64:4
  %7: i64 = sub i64 %0, %6
  %8: i64 = shl i64 %7, i64:3
  element_store i64 i64:65536, %8, %6
  leave @21 [%0 %1 _ _ %4 %6 %7]
"""
"""Quotients of which one differs in each vector, and one if `%1` is not 0."""

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
        "strides": STRIDES,
        "no lane": NO_LANE,
        "constant divisor": CONSTANT_DIVISOR,
        "updates": UPDATES,
        "quotient": QUOTIENT,
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
