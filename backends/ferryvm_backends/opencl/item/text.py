# SPDX-License-Identifier: Apache-2.0
"""The text of the kernel that runs the items of a launch."""

from __future__ import annotations

import dataclasses
from collections.abc import Container

from ferryvm.backend import Forcing, Options, RefusalError
from ferryvm.ir.c import Choices, guard_pcs, module_text
from ferryvm.ir.c.comment import describer
from ferryvm.ir.c.context import function_name
from ferryvm.ir.c.opencl_item import (
    MARKS,
    MOST_ARGUMENTS,
    ItemEntry,
    block_of_items,
    items_dialect,
    one_item,
)
from ferryvm.ir.graph import Module, Operation
from ferryvm.ir.operation import SHAPES, Role
from ferryvm.ir.passes.entry_exit import (
    entry_state,
    hoist_entry_checks,
    leave_at_entry,
    leaves_at_entry,
)
from ferryvm.ir.passes.inline import inline_all, remove_uncalled
from ferryvm.isa.element import Element
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.type import Reference, Type
from ferryvm.machine.declaration import declarations
from ferryvm.region.fact import region_effects
from ferryvm.region.graph import graph
from ferryvm.region.launch import CALL_DISTANCE
from ferryvm.region.object_access import object_access
from ferryvm.region.region import Region
from ferryvm_backends.opencl.device import Device
from ferryvm_backends.opencl.item import (
    MOST_FRAME_WORDS,
    ItemShape,
    frame_words,
    shared_types,
)
from ferryvm_backends.opencl.item.bound import loop_bounds
from ferryvm_backends.opencl.item.foreseen import are_exits_foreseen
from ferryvm_backends.opencl.item.header import overwritten, passed_headers, stored_arrays
from ferryvm_backends.opencl.recursion import levels
from ferryvm_backends.opencl.text import (
    COPIED,
    KernelText,
    constant_tables,
    improved,
    refuse_atomics,
    refuse_floats,
)

_NUMBERS = frozenset(element.array.number for element in Element)
"""Types of arrays of numbers."""


def item_text(
    launch: Region,
    items: Region,
    options: Options,
    device: Device,
    memory_mode: str,
    polls: bool = False,
) -> tuple[KernelText, ItemShape]:
    """The kernel of the items of a launch, which call the function `items`. Raises RefusalError for
    what the device does not support, and for frames that are too large. `polls`: poll loops, also
    those of single items that end soon, if `ItemShape.bounds` are small."""
    is_block = memory_mode != COPIED
    part = launch if is_block else items
    module = improved(part, options, items=True, rows=True) if is_block else _items(items, options)
    refuse_floats([module], device)
    refuse_atomics([module], device)
    depth = levels(module, 0, device.is_cpu)
    entry, shape = (_block if is_block else _single)(module, launch, items, depth)
    stored = {} if is_block else stored_arrays(module, items.function, shape.headers)
    bounds = None if is_block else loop_bounds(module, items.function)
    written, read = frozenset[int](), frozenset[int]()
    if shape.entry is not None:
        written, read = overwritten(module.functions[items.function], stored, shape.headers)
    shape = dataclasses.replace(
        shape,
        overwritten=written,
        read=read,
        arrays=None if is_block else known_arrays(items),
        stored=frozenset(stored.values()),
        marks_others=_changes_others(module, stored),
        bounds=bounds,
    )
    if len(shape.words) > MOST_ARGUMENTS:
        raise RefusalError(f"items share {len(shape.words)} words; the most is {MOST_ARGUMENTS}")
    if shape.frame > MOST_FRAME_WORDS:
        raise RefusalError(
            f"the frames of an item take {shape.frame} words; the most is {MOST_FRAME_WORDS}"
        )
    access = object_access(part)
    use = access if access.any else None
    d = items_dialect(
        entry,
        aligned=not device.is_cpu,
        apart=memory_mode == COPIED,
        objects=use is not None,
    )
    choices = Choices(
        guard_limit=options.guard_limit,
        forced=Forcing.DEOPT in options.forcing,
        polls=polls or (bounds is None and not (is_block and _is_short(module, items))),
        at_entry=shape.entry is not None,
        levels=depth,
        unmarked={o: "" if array.is_own else MARKS for o, array in stored.items()},
    )
    if not (is_block or choices.forced):
        foreseen = are_exits_foreseen(module, items.function, choices.polls)
        shape = dataclasses.replace(shape, is_foreseen=foreseen)
    declared = declarations(d) + constant_tables([module], launch.verified)
    text = module_text(module, d, declared, choices, describer(launch.verified))
    return KernelText(text, tuple(guard_pcs(module, {})), False, use), shape


def known_arrays(items: Region, makes_own: bool = False) -> frozenset[int] | None:
    """Numbers of the words that items share which are references, if these refer to all objects
    that items access, and the objects are arrays of numbers; None if there may be others.
    `makes_own`: those that items make are no objects of the machine."""
    program, access = items.verified.program, object_access(items)
    statics = (program.statics[n].type for n in region_effects(items).statics_read)
    parameters = program.signature(items.function).parameters[1:]
    if (access.makes and not makes_own) or not access.accessed <= _NUMBERS:
        return None
    if any(isinstance(type_, Reference) for type_ in statics):
        return None
    return frozenset(n for n, type_ in enumerate(parameters) if isinstance(type_, Reference))


def _items(items: Region, options: Options) -> Module:
    """The IR of the function of the items, which leave at its entry if they can."""
    function = items.verified.program.functions[items.function]
    locals_ = [t if isinstance(t, Type) else Type.I64 for t in function.locals]

    def prepare(module: Module) -> None:
        body = module.functions[items.function]
        state = entry_state(body, locals_)
        if options.optimize >= 2:
            inline_all(module, body)
        leave_at_entry(body, state)
        hoist_entry_checks(body, state)

    module = improved(items, options, items=True, prepare=prepare)
    remove_uncalled(module, items.function)
    return module


def _changes_others(module: Module, stored: Container[Operation]) -> bool:
    """True if functions of items change anything but by these stores."""
    operations = (o for body in module.functions.values() for o in body.operations)
    return any(SHAPES[o.name].role is Role.CHANGES and o not in stored for o in operations)


def _single(
    module: Module, launch: Region, items: Region, depth: int
) -> tuple[ItemEntry, ItemShape]:
    """A work-item calls the function of the items once."""
    types = shared_types(items)
    headers = passed_headers(module, items.function, MOST_ARGUMENTS - len(types))
    frame = frame_words(module, items.function, depth)
    given = (*types, *(Type.I64 for _ in headers))
    body = module.functions[items.function]
    is_at_entry = leaves_at_entry(body)
    name = function_name(items.function, 0)
    entry = one_item(name, len(types), given, None if is_at_entry else frame)
    words = tuple(range(-LAUNCH_WORDS - len(types), -LAUNCH_WORDS))
    at = body.entry if is_at_entry else None
    return entry, ItemShape(items.function, words, frame, False, at, headers)


def _is_short(module: Module, items: Region) -> bool:
    """True if a block ends soon: it has at most 1,024 items, and these no loops."""
    found = {items.function, *items.callees}
    return not module.functions and not any(graph(items.verified, f).loops for f in found)


def _block(
    module: Module, launch: Region, items: Region, depth: int
) -> tuple[ItemEntry, ItemShape]:
    """A work-item runs the loop of the launch."""
    words = {o.fact(0, int) for o in module.root.operations if o.name == "word"}
    frame = frame_words(module, None, depth)
    listed = tuple(sorted(words))
    entry = block_of_items(listed, launch.entry + CALL_DISTANCE, frame)
    return entry, ItemShape(items.function, listed, frame, is_block=True)
