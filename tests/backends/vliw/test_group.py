# SPDX-License-Identifier: Apache-2.0
"""Items of two dimensions that wait for each other: nests over their rows, in the region IR for the processor."""

from __future__ import annotations

import ferryvm
from ferryvm.backend import Options
from ferryvm.ir.graph import Module
from ferryvm.ir.loop.natural import find_loops
from ferryvm.region.region import RegionKind, regions
from ferryvm.verify import verify
from ferryvm_backends.vliw.machine.read import find
from ferryvm_backends.vliw.passes import optimised

GRID = """
(define (item (row i64) (column i64) (x (array i64)) (t (array i64)) (to (array i64)) (n i64))
  (define at (+ (* WIDTH row) column))
  (array-set! t at (+ (array-ref x (+ at n)) 1))
  (barrier)
  (define sum 0)
  (define k 0)
  (while (< k 4)
    (set! sum (+ (* 3 sum) (array-ref t (+ (* WIDTH (% k HEIGHT)) column))))
    (set! k (+ k 1)))
  (array-set! to (+ at n) (+ sum row)))
(define (group number (x (array i64)) (to (array i64)))
  (for-each-item (HEIGHT WIDTH) (item x (make-array i64 (* HEIGHT WIDTH)) to (* number (* HEIGHT WIDTH)))))
(define x (make-array i64 96))
(define to (make-array i64 96))
(for-each-item 2 (group x to))
(reduce + to)
"""


def _module(height: int, width: int) -> Module:
    """The launch over groups of so many rows and columns."""
    text = GRID.replace("HEIGHT", str(height)).replace("WIDTH", str(width))
    verified = verify(ferryvm.compile(text, "p"))
    machine, found = find("multi16"), list[Module]()
    for each in regions(verified):
        if each.kind is RegionKind.LAUNCH:
            module = optimised(each, Options(check=True), machine)
            found += [module] if module.groups else []
    return max(found, key=lambda module: len(module.rare))


def _rows(module: Module) -> list[str]:
    """The names of the regions whose items run by rows, without checks."""
    return [
        loop.header.label
        for loop in find_loops(module.root)
        if ".rows." in loop.header.label
        and not any(operation.name == "trap_if" for operation in loop.operations)
    ]


def test_short_rows_have_a_nest_without_checks_beside_the_plain_loop() -> None:
    module = _module(24, 2)
    labels = [label for label in _rows(module) if label.startswith("unchecked.")]
    assert {label.split("rows.")[1][:7] for label in labels} == {"region0", "region1"}
    plain = [loop for loop in find_loops(module.root) if loop.header in module.rare]
    assert any(operation.name == "trap_if" for loop in plain for operation in loop.operations)


def test_items_of_a_row_are_numbered() -> None:
    module = _module(24, 2)
    stores = [o for o in module.root.operations if o.name == "element_store"]
    assert {operation.item for operation in stores} == {0, 1}


def test_long_rows_are_left_alone() -> None:
    module = _module(2, 24)
    assert _rows(module) == []
    assert not module.rare
