# SPDX-License-Identifier: Apache-2.0
"""Objects of items are released where their items end, unless they may outlive them."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.ir.lift import lift
from ferryvm.ir.passes.inline import inline_items
from ferryvm.ir.passes.item_object import release_item_objects
from ferryvm.ir.text import module_text
from ferryvm.ir.verify import verify_module
from ferryvm.region.region import region
from ferryvm.verify import verify

PROGRAM = """
(define-struct box (of (array i64)))
(define (item number to boxes)
  (define own (make-array i64 4))
  (array-set! own 1 number)
  {store}
  (array-set! to number (array-ref own 1)))
(define to (make-array i64 5))
(define boxes (make-array box 5 (make-box (make-array i64 1))))
(for-each-item 5 (item to boxes))
(print! (array-ref to 4))
"""


@pytest.mark.parametrize(
    ("store", "count"),
    [
        ("", 1),
        ("(set-box-of! (array-ref boxes 0) own)", 0),
        ("(array-set! boxes 1 (make-box own))", 0),
    ],
)
def test_objects_are_released_unless_a_reference_is_stored(store: str, count: int) -> None:
    program = verify(ferryvm.compile(PROGRAM.format(store=store)))
    module = lift(region(program, "main"))
    inline_items(module, program.program)
    assert release_item_objects(module, module.root, program) == count
    assert module_text(module).count("release_objects") == count
    verify_module(module, program)
