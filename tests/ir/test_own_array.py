# SPDX-License-Identifier: Apache-2.0
"""Arrays that no other thread sees: made by the body, and stored nowhere."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.backend import Options
from ferryvm.compiler import lifted
from ferryvm.ir.graph import Module
from ferryvm.ir.own_array import own_places
from ferryvm.region.region import RegionKind, regions
from ferryvm.verify import verify

TEXT = """
(define seen (make-array i64 4))
(define (deep n (xs (array i64))) -> i64
  (if (> n 0) (+ 1 (deep (- n 1) xs)) (array-ref xs 0)))
(define (member i mine to)
  (atomic-add! mine (% i 3) i)
  (barrier)
  (array-set! to i (array-ref mine (% i 3))))
(define (group g to)
  (define mine (make-array i64 4))
  MORE
  (for-each-item 8 (member mine to)))
(define to (make-array i64 8))
(define k 0)
(while (< k 3) (for-each-item 2 (group to)) (set! k (+ k 1)))
(print! (array-ref to 7) (array-ref seen 0))
"""


def module_of(more: str) -> Module:
    """The module of the launch of groups, which makes the array."""
    verified = verify(ferryvm.compile(TEXT.replace("MORE", more), "p"))
    for each in regions(verified):
        if each.kind is RegionKind.LAUNCH:
            module = lifted(each, Options(), groups=True, launches=True, fields=True)
            if module.groups and any(o.name == "object_top" for o in module.root.operations):
                return module
    raise LookupError


def is_own(module: Module) -> bool:
    """True if all updates are in arrays that no other thread sees."""
    own = own_places(module.root)
    updates = [o for o in module.root.operations if o.name == "update_element"]
    assert updates
    return all(o.arguments[0] in own for o in updates)


def test_an_array_that_a_group_makes_for_its_members_is_its_own() -> None:
    assert is_own(module_of(""))


@pytest.mark.parametrize(
    "more",
    [
        "(set! seen mine)",
        "(array-set! mine 0 (deep 3 mine))",
        "(if (> g 0) (set! mine to))",
        "(define others (make-array (array i64) 1)) (array-set! others 0 mine)",
    ],
    ids=["in a static", "passed to a function", "perhaps another array", "in another object"],
)
def test_an_array_that_others_may_see_is_none(more: str) -> None:
    assert not is_own(module_of(more))


def test_an_array_that_comes_from_elsewhere_is_none() -> None:
    verified = verify(ferryvm.compile(TEXT.replace("MORE", ""), "p"))
    inner = [r for r in regions(verified) if r.kind is RegionKind.LAUNCH and "group" in r.name]
    assert not is_own(lifted(inner[0], Options(), groups=True))
