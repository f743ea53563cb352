# SPDX-License-Identifier: Apache-2.0
"""The possession of an execution: one thread has it at a time, and nobody waits for it.

    try:
        del possession.free          taken, or AttributeError: somebody has it
    except AttributeError: ...
    try: ...
    finally:
        possession.free = True       given back

It is not a lock of `threading`: those are taken by a call, and Python runs signal handlers when a
call returns. A KeyboardInterrupt there, in front of the `try`, would leave the lock held for ever.
Invariant: between either statement on `free` and the block, no signal handler can run. So both
stand in the function that has the block, never in a context manager.
"""

from __future__ import annotations


class Possession:
    """Free, or somebody's."""

    __slots__ = ("free",)

    free: bool
    """There while nobody has it."""

    def __init__(self) -> None:
        self.free = True
