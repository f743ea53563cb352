# SPDX-License-Identifier: Apache-2.0
"""The exit of a launch's loop for pieces of the record moves behind the loop."""

from __future__ import annotations

import ferryvm
from ferryvm.ir.graph import Module
from ferryvm.ir.passes.launch_exit import sink_launch_exits
from ferryvm.region.region import region
from ferryvm.verify import verify

from .change import changed
from .comparison import compare, visits

PROGRAM = """
(define (put item to) (array-set! to item (* item item)))
(define to (make-array i64 5))
(for-each-item 5 (put to))
(print! (array-ref to 4))
"""

HEADER = """
entry @0 ():
  %0: i64 = word 2
  %1: boolean = compare i64 ne %0, i64:0
  jump b1(i64:0)
b1 @1 (%2: i64):
  %3: boolean = compare i64 ge_s %2, i64:9
  %4: boolean = all {condition}
  continue_launch_if %4 @1 [_ _ %0]
  branch %3 leave2() b3()
leave2 @2 ():
  leave @2 [_ _ %0]
b3 @3 ():
  %5: i64 = add i64 %2, i64:1
  poll @1 [_ _ %0]
  jump b1(%5)^
"""


def test_the_exit_is_behind_the_loop_and_tests_the_record_alone() -> None:
    text = changed(sink_launch_exits, HEADER.format(condition="%3, %1"))
    assert "branch %3 behind.b1() b3()" in text
    assert "behind.b1 @1 ():\n  continue_launch_if %1 @1 [_ _ %0]\n  jump leave2()" in text


def test_an_exit_with_another_condition_than_the_branch_stays() -> None:
    same = HEADER.format(condition="%1, %3")
    assert changed(sink_launch_exits, same) == same


def test_states_are_those_of_the_reference() -> None:
    verified = verify(ferryvm.compile(PROGRAM))

    def change(module: Module) -> None:
        sink_launch_exits(module.root)

    names = set()
    for each, machine in visits(verified):
        if each.kind.value == "launch":
            names.add(each.name)
            compare(each, machine, change)
    assert names == {region(verified, "main/launch.1").name}
