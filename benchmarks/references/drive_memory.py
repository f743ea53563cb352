# SPDX-License-Identifier: Apache-2.0
"""Measures the memory of a program with references, in this process:

    python -m benchmarks.references.drive_memory trees DEPTH       most bytes that a run adds
    python -m benchmarks.references.drive_memory arrays SECONDS [BACKEND]
                                                             resident bytes while arrays are made

Linux only: the kernel's high-water mark of the resident set is reset after what is not measured.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from array import array
from pathlib import Path

from benchmarks.benchmark import BenchmarkError
from benchmarks.peers.ferry import engine
from benchmarks.references.collecting import NODE_BYTES
from benchmarks.references.contender import WARM_UPS
from benchmarks.references.memory import STATUS
from benchmarks.references.program import assembled

FIRST_SECONDS = 3.0
"""After which the loop's resident memory has to stay as it is."""

CHUNK = 200
"""Arrays of 80 KB between two looks at the resident memory."""

LOOKS = 3
"""At the resident memory, at least."""


def resident(row: str) -> int:
    """Bytes of a row of the process's status: `VmRSS`, `VmHWM`."""
    lines = STATUS.read_text(encoding="ascii").splitlines()
    (found,) = (line.split()[1] for line in lines if line.startswith(f"{row}:"))
    return int(found) * 1024


def trees(depth: int) -> dict[str, int]:
    """`live`: bytes of the most trees that are alive at a time; `added`: the most bytes that the
    process has more than before. The code is compiled before, by another instance."""
    ready, program = engine("llvm"), assembled("trees")
    for _ in range(WARM_UPS):
        ready.instantiate(program).exports["work"](depth)
        gc.collect()
    work = ready.instantiate(program).exports["work"]
    work(4)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    work(depth)
    # The first tree is one deeper than the others; later the lasting one and one more are there.
    return {"live": NODE_BYTES * ((4 << depth) - 1), "added": resident("VmHWM") - before}


def arrays(seconds: float, backend: str = "llvm") -> dict[str, float]:
    """`arrays`: the number made in so many seconds; bytes that are resident after the `first`
    seconds, and the `most` after that. A short run settles in half of its time, and has at least
    three looks after that."""
    work = engine(backend).instantiate(assembled("arrays")).exports["work"]
    began = time.monotonic()
    settled = min(FIRST_SECONDS, seconds / 2)
    made, looks = 0, array("Q")
    while (passed := time.monotonic() - began) < seconds or len(looks) < LOOKS:
        if work(CHUNK) != CHUNK * 10_000:
            raise BenchmarkError("the arrays have a wrong length")
        made += CHUNK
        if passed >= settled:
            looks.append(resident("VmRSS"))
    return {"arrays": made, "first": looks[0], "most": max(looks)}


if __name__ == "__main__":
    chosen, size, *backend = sys.argv[1:]
    print(json.dumps(trees(int(size)) if chosen == "trees" else arrays(float(size), *backend)))
