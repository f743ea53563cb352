# SPDX-License-Identifier: Apache-2.0
"""Python's cyclic garbage collector, suspended while many objects are made that all stay.

The collector traverses them again and again as their number grows, and finds nothing: a third of
the time of reading a large document, of assembling, of lifting and lowering a region.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_suspended() -> Iterator[None]:
    """Suspend the cyclic garbage collector; afterwards it is enabled if it was before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
