# SPDX-License-Identifier: Apache-2.0
"""Updates of elements that one thread alone accesses: loads and stores with the same results."""

from __future__ import annotations

import os
from pathlib import Path
from unittest import mock

import pytest

import ferryvm
from ferryvm.backend import Forcing
from ferryvm.testing import Differ, Verdict
from ferryvm.verify import verify
from ferryvm_backends.llvm import object as lowered

TILES = [
    (f"{kind}{update}", kind, update)
    for kind in ("i32", "u32", "i64")
    for update in ("add", "min", "max", "and", "or")
]


def _update(tile: str, kind: str, update: str) -> str:
    t = "i64" if kind == "u32" else kind
    return f"(atomic-{update}! {tile} (% i 3) (- (* 7{t} ({t} i)) 24{t}))"


def _sum(tile: str, _kind: str, _update: str) -> str:
    return f"(set! sum (+ (* 31 sum) (i64 (array-ref {tile} (% i 4)))))"


TEXT = f"""
(define (member i g {" ".join(f"({tile} (array {kind}))" for tile, kind, _ in TILES)} (to (array i64)))
  {" ".join(_update(*tile) for tile in TILES)}
  (define sum (atomic-fetch-add! i64add 3 0))
  (barrier)
  {" ".join(_sum(*tile) for tile in TILES)}
  (array-set! to (+ (* g 9) i) sum))
(define (group g (to (array i64)))
  (for-each-item 9 (member g {" ".join(f"(make-array {kind} 4 5)" for _, kind, _ in TILES)} to)))
(define to (make-array i64 27))
(for-each-item 3 (group to))
(print! (reduce ^ to) (array-ref to 4) (array-ref to 26))
"""


def agrees(folder: Path) -> bool:
    """True if native code with a cache of its own ends as the reference does."""
    differ = Differ(["llvm"], forcing=frozenset({Forcing.HOT}))
    differ.form = False
    with mock.patch.dict(os.environ, FERRYVM_CACHE_DIR=str(folder)):
        (found,) = differ.compare(verify(ferryvm.compile(TEXT, "p.skiff")))
    return found.verdict is Verdict.AGREE


def test_updates_of_a_groups_own_arrays_are_those_of_the_reference(tmp_path: Path) -> None:
    assert agrees(tmp_path)


@pytest.mark.nightly
def test_another_update_of_them_is_found(tmp_path: Path) -> None:
    """Such an update is lowered as this one, so the test before has seen it."""
    with mock.patch.object(lowered, "updated", lambda m, t, kind, old, operand: operand):
        assert not agrees(tmp_path)
