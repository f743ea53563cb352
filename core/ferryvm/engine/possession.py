# SPDX-License-Identifier: Apache-2.0
"""The ownership of an execution: one thread has it at a time, and other threads fail instead of
waiting.

    try:
        del possession.free          taken, or AttributeError: it has an owner
    except AttributeError: ...
    try: ...
    finally:
        possession.free = True       given back

It is not a lock of `threading`: those are acquired by a call, and Python runs signal handlers when
a call returns. A KeyboardInterrupt there, before the `try`, would leave the lock held for ever.
Invariant: between either statement on `free` and the block, no signal handler can run. So both are
in the function that has the block, never in a context manager.
"""

from __future__ import annotations


class Possession:
    """Free, or owned."""

    __slots__ = ("free",)

    free: bool
    """Present while there is no owner."""

    def __init__(self) -> None:
        self.free = True
