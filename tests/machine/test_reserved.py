# SPDX-License-Identifier: Apache-2.0
"""Address space that executions reserve is no memory."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import ferryvm
from ferryvm.machine.memory import Limits

LIMIT = 3 << 30


@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts what may be written")
def test_linux_does_not_count_what_is_reserved_as_memory() -> None:
    """It refuses to fork a process with a mapping that counts and is larger than its memory;
    mappings side by side are one."""
    program = ferryvm.compile("(print! (array-length (make-array i64 3)))")
    engine = ferryvm.Engine("threaded", limits=Limits(objects=LIMIT), output=lambda _: None)
    execution = engine.start(program)
    execution.run()
    mappings = re.split(
        r"^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text(), flags=re.MULTILINE
    )
    sizes = [re.search(r"^Size: +(\d+) kB$", each, re.MULTILINE) for each in mappings]
    large = [
        each
        for each, size in zip(mappings, sizes, strict=True)
        if size is not None and int(size[1]) << 10 >= LIMIT and " rw-p " in each
    ]
    assert large
    assert not [each for each in large if re.search(r"^VmFlags:.* ac\b", each, re.MULTILINE)]
