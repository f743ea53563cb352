# SPDX-License-Identifier: Apache-2.0
"""Legal divergences: the permitted differences of a backend's final state, each with its reason.

A divergence is neither agreement nor disagreement: it is a separate verdict, shown with its reason.
A difference that is not in `LEGAL` is a disagreement.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ferryvm.backend import Capabilities
from ferryvm.isa import Trap
from ferryvm.machine.control import Status
from ferryvm.testing.state import StoppedState


@dataclasses.dataclass(frozen=True)
class Divergence:
    """One case in which a backend may end a program earlier than the others."""

    name: str
    reason: str
    declared: Callable[[Capabilities], bool]
    """True if a backend has declared the divergence."""
    shows: Callable[[StoppedState], bool]
    """True if the final state of such a backend is of this kind. It is legal if, apart
    from status and trap, it is also the state that others have after as many instructions."""


def _lacks_heap(state: StoppedState) -> bool:
    end = state.machine
    return end.status is Status.TRAP and end.trap is Trap.HEAP_EXHAUSTED


ABOVE = "items above the one that ended the program were done, or begun"
"""The reason of the divergence of backends that run items of launches out of order
(`Capabilities.out_of_order`); `ferryvm.testing.launch_end` compares the rest."""

LEGAL: tuple[Divergence, ...] = (
    Divergence(
        "heap",
        "the backend declares how much heap it can address, and the program needs more",
        lambda capabilities: capabilities.heap is not None,
        _lacks_heap,
    ),
)
"""All others."""
