# SPDX-License-Identifier: Apache-2.0
"""The order of the passes that are run over a region.

    level 1   launch_exit ─> value_numbering ─> check_elimination ─> canonicalisation
    level 2   launch_exit ─> jump_threading ─> exit_threading ─> code_motion ─> value_numbering
                └─> check_elimination
                ├─ a branch was folded: ──> jump_threading ─> value_numbering ─┐
                └──────────────────────────────────────────────────────────────┴─>
              loop_versioning ─> canonicalisation ─> nan_check

For a compiler that requests it `row_split` runs before `loop_versioning`, and then `code_motion` and
`value_numbering`: what depends on the row alone is computed in front of it.

For a compiler that requests it `unroll` runs before `loop_versioning`; if it has changed the body,
the passes before it run again.

If `exit_threading` has changed the body, its flags are folded: `dead_code`, `value_numbering` and
`jump_threading` run.

`code_motion` runs before `value_numbering`, which merges equal operations of several preheaders.
`jump_threading` bypasses preheaders, so loops with two entries get them again then.

The copies that `loop_versioning` makes load what is invariant before their loops, as the row of a
list of lists. For compilers that load fields there, `code_motion`, `value_numbering` and
`check_elimination` run again then: a row's checks are invariant.

`canonicalisation` runs late: it lets states refer to virtual values, and other passes would only
move the operations that it inserts. Level 0 leaves the body as lifted; level 3 is as level 2.
`range_check` is not in the pipeline: only compilers that unswitch loops profit from it, and they
call it themselves.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ferryvm.ir.graph import Body, Constant, Module
from ferryvm.ir.loop.preheader import add_preheaders
from ferryvm.ir.loop.runtime_check import LARGEST_NEST
from ferryvm.ir.passes.canonicalisation import defer_canonicalisation
from ferryvm.ir.passes.check_elimination import eliminate_checks
from ferryvm.ir.passes.code_motion import hoist_invariants
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.exit_threading import thread_exits
from ferryvm.ir.passes.jump_threading import thread_jumps
from ferryvm.ir.passes.launch_exit import sink_launch_exits
from ferryvm.ir.passes.loop_versioning import version_loops
from ferryvm.ir.passes.nan_check import combine_nan_checks
from ferryvm.ir.passes.row_split import split_rows
from ferryvm.ir.passes.unroll import unroll
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.verify import Verified

ENVIRONMENT = "FERRYVM_CHECK_IR"
"""The variable which, set to 1, makes `optimise` verify the module before and after each pass."""

UNROLLED_NEST = 4000
"""The largest number of operations of a versioned nest in which short loops are unrolled."""

Pass = Callable[[Body], object]


def optimise(
    module: Module,
    level: int = 2,
    verified: Verified | None = None,
    *,
    unrolled: bool = False,
    apart: bool = False,
    check: bool = False,
    remarks: bool = False,
    fields: bool = False,
    rows: bool = False,
) -> None:
    """Improve a module in place; higher levels (0 to 3) run more passes.

    `verified`: the program, for the checks. `unrolled`: fully unroll short loops. `apart`: as for
    `version_loops`, for compilers that order accesses themselves. `check`: verify the module before
    and after each pass, as `FERRYVM_CHECK_IR` does. `remarks`: code reports the executed versions
    of nests. `fields`: as for `hoist_invariants`, for compilers whose code can read the first page
    of the object space. `rows`: divide loops by the rows of their items, unless they count
    instructions.
    """
    verify = checker(module, verified, check)
    verify()
    for body in module.bodies:
        _optimise(module, body, level, verify, unrolled, apart, remarks, fields, rows)
    verify()


def checker(module: Module, verified: Verified | None, check: bool) -> Callable[..., None]:
    """A function that verifies the module, or only the body given to it, for backends with passes
    of their own; it does nothing unless `check` is set or `FERRYVM_CHECK_IR` is 1. It raises
    IrError."""
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
    module: Module,
    body: Body,
    level: int,
    check: Callable[..., None],
    unrolled: bool,
    apart: bool,
    remarks: bool,
    fields: bool,
    rows: bool,
) -> None:
    def run(*passes: Pass) -> None:
        for each in passes:
            each(body)
            check(body)

    if level <= 0:
        return
    run(sink_launch_exits)
    if level >= 2:
        run(thread_jumps)
        if thread_exits(body):
            check(body)
            run(remove_dead_code, number_values, thread_jumps)
        run(lambda body: hoist_invariants(body, fields))
    run(number_values, eliminate_checks)
    if level >= 2 and _has_decided_branch(body):
        run(thread_jumps, remove_dead_code, add_preheaders, number_values)
    if level >= 2 and unrolled and unroll(body, module.launches):
        check(body)
        run(
            thread_jumps,
            remove_dead_code,
            number_values,
            eliminate_checks,
            thread_jumps,
            remove_dead_code,
        )
        run(
            lambda body: add_preheaders(body, of_branches=True),
            hoist_invariants,
            number_values,
            remove_dead_code,
        )
    if level >= 2 and rows and not module.counting and split_rows(body):
        check(body)
        run(hoist_invariants, number_values, remove_dead_code)
    if level >= 2:
        footprints = module.footprints
        largest = UNROLLED_NEST if unrolled else LARGEST_NEST
        nests = module.nests if remarks else None
        # Loops over items have no checks that need two versions: `ferryvm.ir.group` makes them in
        # front.
        versions = not has_groups(body) and version_loops(
            body, footprints, largest, nests, apart=apart
        )
        check(body)
        if versions and fields:
            run(lambda body: hoist_invariants(body, fields), number_values, eliminate_checks)
        run(defer_canonicalisation, lambda body: combine_nan_checks(body, footprints))
    else:
        run(defer_canonicalisation)


def has_groups(body: Body) -> bool:
    """True if items run in parallel regions in a body."""
    return any(operation.name == "begin_group" for operation in body.operations)


def _has_decided_branch(body: Body) -> bool:
    return any(
        isinstance(argument, Constant)
        for block in body.blocks
        if block.end.edges
        for argument in block.end.arguments
    )
