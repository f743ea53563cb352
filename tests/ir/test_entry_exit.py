# SPDX-License-Identifier: Apache-2.0
"""Exits before any effect leave at the entry; checks of arguments come first."""

from __future__ import annotations

import ferryvm
from ferryvm.ir.graph import Body, FrameState, Module
from ferryvm.ir.lift import lift
from ferryvm.ir.passes.entry_exit import (
    entry_state,
    hoist_entry_checks,
    leave_at_entry,
    leaves_at_entry,
)
from ferryvm.ir.passes.inline import inline_all, remove_uncalled
from ferryvm.ir.verify import verify_module
from ferryvm.isa.type import I64
from ferryvm.region.region import Region, RegionKind
from ferryvm.verify import verify

PROGRAM = """
(define (item i n from to)
  (define j 0)
  (define sum 0)
  (while (< j n)
    (set! sum (+ sum (array-ref from j)))
    (set! j (+ j 1)))
  (array-set! to i sum)
  (if (= i 3) (array-set! to n sum))
  (array-set! to (+ i 1) sum))
(for-each-item 2 (item 1 (make-array i64 4) (make-array i64 9)))
"""


ONE_STORE = PROGRAM.replace("(if (= i 3) (array-set! to n sum))\n  (array-set! to (+ i 1) sum)", "")


def item(text: str = PROGRAM) -> tuple[Module, Body, FrameState]:
    """The function of the items, with the state at its entry."""
    verified = verify(ferryvm.compile(text))
    program = verified.program
    number = next(n for n, one in enumerate(program.functions) if one.name == "item")
    entry = program.functions[number].entry
    module = lift(Region(verified, RegionKind.FUNCTION, number, entry))
    body = module.functions.get(number)
    if body is None:
        raise AssertionError("the function is a body that can be called")
    state = entry_state(body, [I64 for _ in program.functions[number].locals])
    inline_all(module, body)
    remove_uncalled(module, number)
    return module, body, state


def states(body: Body) -> list[FrameState]:
    return [o.state for b in body.blocks for o in (*b.operations, b.end) if o.state is not None]


def test_exits_before_the_first_store_leave_at_the_entry_and_others_do_not() -> None:
    module, body, state = item()
    before = states(body)
    leave_at_entry(body, state)
    verify_module(module)
    after = states(body)
    at_entry = [one is state for one in after]
    assert any(at_entry)
    assert not all(at_entry)
    store = min(o.pc for o in body.operations if o.name == "element_store")
    for operation in body.operations:
        if operation.state is not None:
            assert (operation.state is state) == (operation.pc <= store), operation.name
    assert [one for one, old in zip(after, before, strict=True) if one is old] == [
        one for one in after if one is not state
    ]


def test_a_function_leaves_at_its_entry_if_all_its_exits_do() -> None:
    for text in (PROGRAM, ONE_STORE):
        _, body, state = item(text)
        assert not leaves_at_entry(body)
        leave_at_entry(body, state)
        assert leaves_at_entry(body) == (text is ONE_STORE)


def test_checks_that_each_run_comes_to_are_one_at_the_entry() -> None:
    module, body, state = item()
    leave_at_entry(body, state)
    checks = [o for o in body.operations if o.name == "trap_if"]
    hoist_entry_checks(body, state)
    verify_module(module)
    first = next(o for o in body.blocks[0].operations if o.state is not None)
    assert (first.name, first.state) == ("trap_if", state)
    left = [o for o in body.operations if o.name == "trap_if" and o is not first]
    # Those in the loop, and in the branch that not every item takes.
    assert 0 < len(left) < len(checks)
    assert all(o in checks for o in left)
    conditional = next(b for b in body.blocks if b.pc > 0 and any(o in left for o in b.operations))
    assert conditional is not body.blocks[0]
