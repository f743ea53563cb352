# SPDX-License-Identifier: Apache-2.0
"""The table of faults planted in compilers."""

from __future__ import annotations

from ferryvm.errors import UnknownNameError

from .lowering import LOWERING
from .object import OBJECTS
from .passes import PASSES
from .planting import CompilerFault
from .programs import Origin

FAULTS: tuple[CompilerFault, ...] = (*PASSES, *LOWERING, *OBJECTS)


def origins(fault: CompilerFault) -> tuple[Origin, ...]:
    """Where programs in which a fault is looked for come from, the random ones first."""
    return Origin.OBJECTS if fault in OBJECTS else Origin.GENERATED, Origin.BY_HAND


def by_name(names: list[str]) -> list[CompilerFault]:
    """The faults of these names, all of them if there are none. Raises UnknownNameError."""
    known = {fault.name: fault for fault in FAULTS}
    for name in names:
        if name not in known:
            raise UnknownNameError("fault", name, known)
    return [known[name] for name in names] if names else list(FAULTS)
