# SPDX-License-Identifier: Apache-2.0
"""Programs in Skiff that apply a mathematical function to arrays."""

from __future__ import annotations

from collections.abc import Callable

import ferryvm
from benchmarks.mathematics.operand import Operands
from benchmarks.mathematics.repeated import Array
from ferryvm.engine import Engine
from ferryvm.isa.pure_function import PureFunction

_LAUNCH = """
(define (item (i i64) {parameters} (to (array {t})))
  (array-set! to i ({operator} {elements})))
(define (work (n i64) {parameters} (to (array {t})))
  (for-each-item n (item {names} to)))
"""

_SUM = """
(define (work (n i64) {parameters})
  (define sum {zero})
  (define i 0)
  (while (< i n)
    (set! sum (+ sum {term}))
    (set! i (+ i 1)))
  sum)
"""

_NAMES = "xy"


def launch(
    function: PureFunction, on: Engine, operands: Operands, to: Array
) -> Callable[[], object]:
    """Launches that store the function's results in `to`."""
    return _call(_LAUNCH, function, on, [operands.count, *operands.arrays, to])


def summation(
    function: PureFunction, on: Engine, operands: Operands, is_applied: bool = True
) -> Callable[[], object]:
    """The sum of the function's results; or of the operands, which is what the loop takes."""
    given = [operands.count, *operands.arrays]
    return _call(_SUM, function, on, given, is_applied)


def _call(
    template: str, function: PureFunction, on: Engine, given: list[object], is_applied: bool = True
) -> Callable[[], object]:
    t = function.result
    names = _NAMES[: len(function.parameters)]
    elements = [f"(array-ref {name} i)" for name in names]
    applied, bare = f"({function.name} {' '.join(elements)})", " ".join(elements)
    if len(names) > 1:
        bare = f"(+ {bare})"
    text = template.format(
        t=t,
        operator=function.name,
        names=" ".join(names),
        elements=" ".join(elements),
        parameters=" ".join(f"({name} (array {t}))" for name in names),
        zero=f"0.0{'f32' if t.bits == 32 else ''}",
        term=applied if is_applied else bare,
    )
    work = on.instantiate(ferryvm.compile(text)).exports["work"]
    return lambda: work(*given)
