# SPDX-License-Identifier: Apache-2.0
"""The table of planted faults."""

from __future__ import annotations

# Importing these modules declares their faults; the order is the table's.
from . import integer, floating, memory, control, speed, transfer  # isort: skip  # noqa: F401
from .fault import FAULTS, Fault

__all__ = ["FAULTS", "by_name"]


def by_name(names: list[str]) -> list[Fault]:
    """The faults of these names, all of them if there are none. Raises UnknownNameError."""
    from ferryvm.errors import UnknownNameError

    known = {fault.name: fault for fault in FAULTS}
    for name in names:
        if name not in known:
            raise UnknownNameError("fault", name, known)
    return [known[name] for name in names] if names else list(FAULTS)
