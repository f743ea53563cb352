# SPDX-License-Identifier: Apache-2.0
"""From a region to the text of its kernel.

Region ─ lift, passes ─> Module ─ print ─> OpenCL C, with the tables that it reads
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ferryvm.backend import Forcing, Options, RefusalError
from ferryvm.compiler import lifted
from ferryvm.ir.c import Choices, guard_pcs, module_text
from ferryvm.ir.c.comment import describer
from ferryvm.ir.c.dialect import Dialect
from ferryvm.ir.c.opencl import opencl
from ferryvm.ir.graph import Module
from ferryvm.ir.operation import UPDATES
from ferryvm.ir.passes.loop_deletion import delete_counting_loops
from ferryvm.ir.passes.pipeline import checker
from ferryvm.ir.passes.range_check import hoist_range_checks
from ferryvm.ir.passes.unswitch import unswitch
from ferryvm.isa.element import Element
from ferryvm.isa.type import F32, F64
from ferryvm.machine.declaration import declarations
from ferryvm.machine.state import descriptors
from ferryvm.region.object_access import ObjectAccess, object_access
from ferryvm.region.region import Region
from ferryvm.verify import Verified
from ferryvm_backends.opencl.device import Device
from ferryvm_backends.opencl.recursion import levels, resumed

WRAPPED, COPIED = "wrapped", "copied"
"""Ways to give a machine's memory to a device."""


@dataclasses.dataclass(frozen=True)
class KernelText:
    """The source of a kernel."""

    source: str
    guards: tuple[int, ...]
    """pc of each guard, by its number in a kernel."""
    resumes: bool
    """True if it may continue in the frames of callers."""
    objects: ObjectAccess | None
    """Its use of objects; None if it accesses none."""


def dialect(device: Device, memory_mode: str, objects: bool = False) -> Dialect:
    """The OpenCL C dialect of a device; `objects`: for code that uses references."""
    return opencl(aligned=not device.is_cpu, apart=memory_mode == COPIED, objects=objects)


def improved(
    region: Region,
    options: Options,
    *,
    items: bool = False,
    rows: bool = False,
    prepare: Callable[[Module], None] = lambda _module: None,
) -> Module:
    """The IR that is printed; `items`: of the items of a launch, out of order; `rows`: loops over them
    are divided by the rows of dimensions; `prepare`: a change before all passes."""
    module = lifted(
        region,
        options,
        least=1,
        exceptions=True,
        launches=not items,
        items=items,
        rows=rows,
        prepare=prepare,
    )
    if options.optimize >= 2:
        verify = checker(module, region.verified, options.check)
        for body in module.bodies:
            delete_counting_loops(body)
            verify(body)
            if hoist_range_checks(body):
                verify(body)
                unswitch(body)
            verify(body)
    return module


def kernel_text(
    region: Region, module: Module, options: Options, device: Device, memory_mode: str
) -> KernelText:
    """The kernel of a region; `module`: its improved IR. Raises RefusalError for operations that
    the device does not support."""
    more = resumed(region, module, lambda part: improved(part, options))
    modules = [module, *more.values()]
    refuse_floats(modules, device)
    refuse_atomics(modules, device)
    access = object_access(region)
    use = access if access.any else None
    d = dialect(device, memory_mode, use is not None)
    choices = Choices(
        guard_limit=options.guard_limit,
        forced=Forcing.DEOPT in options.forcing,
        levels=levels(module, len(more), device.is_cpu),
    )
    describe = describer(region.verified)
    declared = declarations(d) + constant_tables(modules, region.verified)
    text = module_text(module, d, declared, choices, describe, more)
    return KernelText(text, tuple(guard_pcs(module, more)), bool(more), use)


def refuse_floats(modules: list[Module], device: Device) -> None:
    """Raise RefusalError if a device does not compute the floats of some IR as it should."""
    used: set[object] = set()
    for body in (body for module in modules for body in module.bodies):
        used.add(body.result)
        for block in body.blocks:
            used |= {parameter.type for parameter in block.parameters}
            for o in (*block.operations, block.end):
                used |= {v.type for v in (o, *o.arguments)} | set(o.static)
                used |= {v.type for v in o.state.values()} if o.state else set()
    if F64 in used and not device.has_f64:
        raise RefusalError(f"{device} has no f64, which the region computes with")
    if F32 in used and not device.has_exact_f32:
        raise RefusalError(
            f"{device} does not compute f32 as IEEE 754 says: division and square root are not "
            "rounded correctly, or denormal numbers are lost"
        )


def refuse_atomics(modules: list[Module], device: Device) -> None:
    """Raise RefusalError if the modules use atomic operations that the device has not."""
    bodies = (body for module in modules for body in module.bodies)
    operations = (o for body in bodies for block in body.blocks for o in block.operations)
    updated = {o.static[0] for o in operations if o.name in UPDATES}
    if Element.I64 in updated and not device.has_atomics_64:
        raise RefusalError(
            f"{device} has no atomic operations of 64 bits (cl_khr_int64_base_atomics), which the "
            "region uses"
        )


def constant_tables(modules: list[Module], verified: Verified) -> str:
    """Constant tables of the program that the region reads."""
    bodies = [body for module in modules for body in module.bodies]
    names = {operation.name for body in bodies for operation in body.operations}
    found = ""
    if "function_field" in names:
        found += _table("ferry_functions", [word for row in descriptors(verified) for word in row])
    if "table_function" in names:
        found += _table("ferry_table", list(verified.program.table))
    return found


def _table(name: str, words: list[int]) -> str:
    listed = ", ".join(f"{word}ul" for word in words or [0])
    return f"__constant ulong {name}[] = {{ {listed} }};\n"
