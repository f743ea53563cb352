# SPDX-License-Identifier: Apache-2.0
"""Work that a contender has made ready."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from benchmarks.parallel.program import Twin, Work


@dataclasses.dataclass(frozen=True)
class Task:
    """Work that can be done again and again."""

    run: Callable[[], object]
    """What is timed."""
    send: Callable[[], object] = lambda: None
    """Have it see the arrays as they are now."""
    fetch: Callable[[], object] = lambda: None
    """Have the arrays of results be what it has stored."""
    processor: Callable[[], float] = time.process_time
    """The processor's time of the process that does it."""


Make = Callable[[Twin, Work], Task]
"""What makes the work ready; it raises MissingError where it cannot."""
