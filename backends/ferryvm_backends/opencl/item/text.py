# SPDX-License-Identifier: Apache-2.0
"""The text of the kernel that runs the items of a launch."""

from __future__ import annotations

from ferryvm.backend import Forcing, Options, RefusalError
from ferryvm.ir.c import Choices, guard_pcs, module_text
from ferryvm.ir.c.comment import describer
from ferryvm.ir.c.context import function_name
from ferryvm.ir.c.opencl_item import MOST_ARGUMENTS, items_dialect
from ferryvm.machine.declaration import declarations
from ferryvm.region.object_access import object_access
from ferryvm.region.region import Region
from ferryvm_backends.opencl.device import Device
from ferryvm_backends.opencl.item import (
    MOST_FRAME_WORDS,
    ItemShape,
    frame_words,
    shared_types,
)
from ferryvm_backends.opencl.recursion import levels
from ferryvm_backends.opencl.text import (
    COPIED,
    KernelText,
    constant_tables,
    improved,
    refuse_atomics,
    refuse_floats,
)


def item_text(
    items: Region, options: Options, device: Device, memory_mode: str
) -> tuple[KernelText, ItemShape]:
    """The kernel of the items that call a function. Raises RefusalError for what the device does
    not support, and for frames that are too large."""
    module = improved(items, options)
    refuse_floats([module], device)
    refuse_atomics([module], device)
    types = shared_types(items)
    if len(types) > MOST_ARGUMENTS:
        raise RefusalError(f"items share {len(types)} arguments; the most is {MOST_ARGUMENTS}")
    access = object_access(items)
    use = access if access.any else None
    depth = levels(module, 0, device.is_cpu)
    frame = frame_words(module, items.function, depth)
    if frame > MOST_FRAME_WORDS:
        raise RefusalError(
            f"the frames of an item take {frame} words; the most is {MOST_FRAME_WORDS}"
        )
    d = items_dialect(
        function_name(items.function, 0),
        types,
        frame,
        aligned=not device.is_cpu,
        apart=memory_mode == COPIED,
        objects=use is not None,
    )
    choices = Choices(
        guard_limit=options.guard_limit, forced=Forcing.DEOPT in options.forcing, levels=depth
    )
    declared = declarations(d) + constant_tables([module], items.verified)
    text = module_text(module, d, declared, choices, describer(items.verified))
    shape = ItemShape(items.function, len(types), frame)
    return KernelText(text, tuple(guard_pcs(module, {})), False, use), shape
