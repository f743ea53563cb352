# SPDX-License-Identifier: Apache-2.0
"""The table of faults planted in compilers."""

from __future__ import annotations

from ferryvm.errors import UnknownNameError

from .lowering import LOWERING
from .passes import PASSES
from .planting import CompilerFault

FAULTS: tuple[CompilerFault, ...] = (*PASSES, *LOWERING)


def by_name(names: list[str]) -> list[CompilerFault]:
    """The faults of these names, all of them if there are none. Raises UnknownNameError."""
    known = {fault.name: fault for fault in FAULTS}
    for name in names:
        if name not in known:
            raise UnknownNameError("fault", name, known)
    return [known[name] for name in names] if names else list(FAULTS)
