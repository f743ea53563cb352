# SPDX-License-Identifier: Apache-2.0
"""Which passes are run over a region, and in which order.

    level 1   number ─> check ─> relax
    level 2   thread ─> hoist ─> number ─> check ─┬──────────────────────┬─> version ─> relax ─> defer
                                                  └─> thread ─> number ──┘ where a branch was decided

For a compiler that asks for it `unroll` comes before `version`, and all of this again where it has
changed something.

`hoist` comes before `number`, which makes one of what several loops had before them. `thread` passes
by the blocks in front of loops that it has made, so loops that two edges enter get them again then.

`relax` comes late: it lets states name values that have no place in a block, and what it moves
would only be moved again. Level 0 leaves everything as it was lifted; 3 is as 2. `range` is not
among them: what it prepares is won only by compilers that unswitch loops, which call it themselves.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ferryvm.ir.graph import Body, Constant, Module
from ferryvm.ir.passes.canonical import relax
from ferryvm.ir.passes.check import drop_known_checks
from ferryvm.ir.passes.defer import defer
from ferryvm.ir.passes.hoist import add_fronts, hoist
from ferryvm.ir.passes.number import number
from ferryvm.ir.passes.prune import prune
from ferryvm.ir.passes.thread import thread
from ferryvm.ir.passes.unroll import unroll
from ferryvm.ir.passes.version import version_nests
from ferryvm.ir.touch import LARGEST_NEST
from ferryvm.verify import Verified

ENVIRONMENT = "FERRYVM_CHECK_IR"
"""The variable which, set to 1, makes `optimise` verify the module before and after each pass."""

UNROLLED_NEST = 4000
"""Operations of a nest that gets two versions, where short loops are straight code."""

Pass = Callable[[Body], object]


def optimise(
    module: Module,
    level: int = 2,
    verified: Verified | None = None,
    *,
    unrolled: bool = False,
    check: bool = False,
    told: bool = False,
) -> None:
    """Improve a module in place; the higher the level (0 to 3), the more is tried.

    `verified`: the program, for the checks. `unrolled`: whether short loops become straight code.
    `check`: verify the module before and after each pass, as `FERRYVM_CHECK_IR` asks for, too.
    `told`: whether code tells which versions of nests are run.
    """
    verify = checker(module, verified, check)
    verify()
    for body in module.bodies:
        _optimise(module, body, level, verify, unrolled, told)
    verify()


def checker(module: Module, verified: Verified | None, check: bool) -> Callable[..., None]:
    """What verifies the module, or only the body that it is given, for backends with passes of
    their own; nothing is done unless `check` is set or `FERRYVM_CHECK_IR` is 1. It raises IrError."""
    if not check and os.environ.get(ENVIRONMENT) != "1":
        return lambda body=None: None
    from ferryvm.ir.verify import IrVerifier  # costs as much as a pass

    verifier = IrVerifier(module, verified)

    def verify(body: Body | None = None) -> None:
        if body is None:
            verifier.check_module()
        else:
            verifier.check_body(body)

    return verify


def _optimise(
    module: Module, body: Body, level: int, check: Callable[..., None], unrolled: bool, told: bool
) -> None:
    def run(*passes: Pass) -> None:
        for each in passes:
            each(body)
            check(body)

    if level <= 0:
        return
    if level >= 2:
        run(thread, hoist)
    run(number, drop_known_checks)
    if level >= 2 and _has_decided_branch(body):
        run(thread, prune, add_fronts, number)
    if level >= 2 and unrolled and unroll(body):
        check(body)
        run(thread, prune, number, drop_known_checks, thread, prune)
        run(lambda body: add_fronts(body, of_branches=True), hoist, number, prune)
    if level >= 2:
        places = module.places
        largest = UNROLLED_NEST if unrolled else LARGEST_NEST
        nests = module.nests if told else None
        run(lambda body: version_nests(body, places, largest, nests), relax)
        run(lambda body: defer(body, places))
    else:
        run(relax)


def _has_decided_branch(body: Body) -> bool:
    return any(
        isinstance(argument, Constant)
        for block in body.blocks
        if block.end.edges
        for argument in block.end.arguments
    )
