# SPDX-License-Identifier: Apache-2.0
"""Items that retain nothing of what they make."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.isa import BY_MNEMONIC
from ferryvm.region.region import Region, RegionKind
from ferryvm.region.retention import retains_objects
from ferryvm.verify import verify

PROGRAM = """
(define-struct cell (number i64) (next cell))
(define last (make-cell 1 null))
(define total 0)
(define cells (make-array cell 9))
(define (far (from cell)) (if (= 1 (cell-number from)) (set! last from)))
(define (body item (old cell) (to (array i64)))
  (define mine (make-cell item old))
  {act})
(for-each-item 9 (body last (make-array i64 9)))
"""


@pytest.mark.parametrize(
    ("act", "retains"),
    [
        ("(array-set! to item (cell-number mine))", False),
        ("(set-cell-number! mine 5)", False),
        ("(array-set! to item (array-length (make-array f64 item)))", False),
        ("(set! total (cell-number (make-cell 2 mine)))", False),
        ("(set! last mine)", True),
        ("(far mine)", True),
        ("(set-cell-next! old mine)", True),
        ("(set-cell-next! mine old)", True),
        ("(array-set! cells item mine)", True),
        ("(array-fill! cells mine 0 3)", True),
        ("(print! item)", True),
        ("(throw mine)", True),
    ],
)
def test_items_retain_what_they_store_throw_or_hand_over(act: str, retains: bool) -> None:
    verified = verify(ferryvm.compile(PROGRAM.replace("{act}", act)))
    test = BY_MNEMONIC["launch.test"].opcode
    (pc,) = (n for n, each in enumerate(verified.program.code.opcodes) if each == test)
    assert retains_objects(Region(verified, RegionKind.LAUNCH, verified.owner(pc), pc)) == retains
