# SPDX-License-Identifier: Apache-2.0
"""The passes of the region IR that run for a machine, and the choices that depend on the
machine."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Sequence

from ferryvm.backend import Options
from ferryvm.ir.function_body import expand
from ferryvm.ir.graph import Body, Module, Operation
from ferryvm.ir.group.batch import batch_groups
from ferryvm.ir.group.form import form_groups
from ferryvm.ir.group.improve import improve_item_loops
from ferryvm.ir.lift import lift
from ferryvm.ir.loop.natural import Loop
from ferryvm.ir.loop.preheader import add_preheaders
from ferryvm.ir.passes import optimise
from ferryvm.ir.passes.address_base import share_bases
from ferryvm.ir.passes.code_motion import hoist_invariants
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.inline import inline_items
from ferryvm.ir.passes.jump_threading import thread_jumps
from ferryvm.ir.passes.load_forwarding import forward_loads
from ferryvm.ir.passes.pipeline import checker
from ferryvm.ir.passes.range_check import hoist_range_checks
from ferryvm.ir.passes.strength_reduction import reduce_strength
from ferryvm.ir.passes.unroll import unroll
from ferryvm.ir.passes.unswitch import unswitch
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.region.launch import launch_numbers
from ferryvm.region.region import Region
from ferryvm_backends.vliw.code import tuning
from ferryvm_backends.vliw.code.operation import work_of
from ferryvm_backends.vliw.element_address import join_element_addresses
from ferryvm_backends.vliw.machine.model import FileKind, Machine, Work

_ARITHMETIC = frozenset({"compare", "add", "sub", "mul", "fadd", "fsub", "fmul", "fdiv", "fsqrt"})
"""Operations of the IR that there are many of, and that are one of the machine's."""

_ACCESSES = frozenset({"heap_load", "heap_store", "element_load", "element_store"})

_DEAREST = 32
"""The cost of a value that items compute anew behind a barrier: it takes units that have little to
do, and an access to memory takes one of few."""


def optimised(region: Region, options: Options, machine: Machine) -> Module:
    """The IR from which code for a machine is generated."""
    module = lift(region, options.counting, options.unseen, known=options.known)
    level, check = max(options.optimize, 1), options.check
    module.launches = frozenset(launch_numbers(region.verified))
    if options.optimize >= 2:
        inline_items(module, region.verified.program)
        form_groups(module, region.verified, _DEAREST)
        module.launches |= {group.pc for group in module.groups}  # independent between two barriers
    for body in module.bodies:
        expand(body)
    optimise(module, level, region.verified, unrolled=True, apart=True, check=check)
    verify = checker(module, region.verified, check)
    for body in module.bodies if module.groups else ():
        improve_item_loops(body, functools.partial(_unroll_rows, launches=module.launches))
        verify(body)
        if batch_groups(module, body):
            for each in (hoist_invariants, number_values, thread_jumps, remove_dead_code):
                each(body)
            verify(body)
    for body in module.bodies:
        join_element_addresses(body)
        verify(body)
    if options.optimize >= 2:
        for body in module.bodies:
            if hoist_range_checks(body):
                verify(body)
                unswitch(body, module.footprints)
            add_preheaders(body, of_branches=True)
            verify(body)
            for each in (
                share_bases,
                hoist_invariants,
                number_values,
                remove_dead_code,
                reduce_strength,
                hoist_invariants,
                remove_dead_code,
            ):
                each(body)
                verify(body)
            forward_loads(
                body, module.footprints, functools.partial(registers_for_forwarding, machine)
            )
            verify(body)
            remove_dead_code(body)
            verify(body)
    return module


def _is_over_row(loop: Loop) -> bool:
    """True for a loop over the items of a row, whose parent is over the rows of the same region."""
    return loop.parent is not None and loop.parent.header.pc == loop.header.pc


def _unroll_rows(body: Body, launches: Collection[int]) -> None:
    """Unroll the loops over the items of a row, so that these are issued side by side."""
    if unroll(body, launches, _is_over_row):
        for each in (
            number_values,
            thread_jumps,
            remove_dead_code,
            hoist_invariants,
            number_values,
        ):
            each(body)


def registers_for_forwarding(machine: Machine, operations: Sequence[Operation]) -> int:
    """The number of values that a loop of some operations should pass between iterations instead of
    loading them: the fewest that reduce the initiation interval.

    A retained value takes registers and ports, a loaded one a unit and a slot. The interval is
    estimated from the demand for load units, other units, and slots, if each value from before the
    loop may have to be loaded in each iteration, too.
    """
    files = (file for file in machine.files if file.kind is FileKind.INTEGER)
    most = (
        max(sum(file.registers for file in files) - tuning.LOOP_REGISTERS, 0)
        // tuning.FORWARDING_PART
    )
    inside = {*operations}
    before = {a for o in operations for a in o.arguments if isinstance(a, Operation)} - inside
    accesses = sum(o.name in _ACCESSES for o in operations)
    work = Counter(work_of(o.name, o.static) for o in operations if o.name in _ARITHMETIC)
    able = {each: len(machine.units_for(each)) for each in (*work, Work.LOAD)}
    if not all(able.values()):
        return most  # which the compiler reports
    others = max((-(-count // able[each]) for each, count in work.items()), default=0)

    def interval(cached: int) -> int:
        loads = accesses + len(before) - cached
        issued = accesses + work.total() - cached
        return max(others, -(-loads // able[Work.LOAD]), -(-issued // machine.slots))

    return next(count for count in range(most + 1) if interval(count) == interval(most))
