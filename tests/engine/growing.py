# SPDX-License-Identifier: Apache-2.0
"""What a process grows by for each distinct program that a backend runs, in bytes.

    python -m tests.engine.growing BACKEND PROGRAMS [MOST]

With MOST it fails where that is more. A third as many programs are run before it is measured.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from pathlib import Path

import ferryvm
from ferryvm.engine import Engine

PAGE = 4096


def resident() -> int:
    """Bytes of memory that this process holds, when all is freed that can be."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE


def program(number: int) -> ferryvm.Program:
    """A program unlike all others."""
    return ferryvm.compile(f"""
(define i 0) (define s {number})
(while (< i {number % 50 + 3}) (set! s (+ s (* i {number}))) (set! i (+ i 1)))
s""")


def growth(backend: str, programs: int) -> float:
    """Bytes that a program costs for good."""
    warm = programs // 3
    for number in range(warm):
        Engine(backend).start(program(number)).run()
    before = resident()
    for number in range(warm, warm + programs):
        Engine(backend).start(program(number)).run()
    return (resident() - before) / programs


if __name__ == "__main__":
    found = growth(sys.argv[1], int(sys.argv[2]))
    print(f"{sys.argv[1]}: {found:.0f} bytes a program")
    if len(sys.argv) > 3 and found > int(sys.argv[3]):
        sys.exit(f"at most {sys.argv[3]} wanted")
