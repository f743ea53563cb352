# SPDX-License-Identifier: Apache-2.0
"""What a process grows by for each program that it runs, in bytes.

    python -m tests.engine.growing BACKEND WAY PROGRAMS [MOST]

With MOST it fails where more than that is still allocated. A third as many programs are run before
it is measured. Two metrics are shown, which a leak raises alike:

- allocated: what was asked of the allocators of C and Python and not given back; exact, but without
  pages that code was mapped to. It is the median of several parts of the run: Python's table of
  interned strings, of which programs make and free some, is doubled once, by 0.5 MiB.
- resident: pages of the process, after the allocators gave back what they could. Over a hundred
  programs and less it swings by 10 KB, since Python takes memory by the MiB.
"""

from __future__ import annotations

import ctypes
import dataclasses
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ferryvm
from ferryvm.cli.repl import Repl
from ferryvm.engine import Engine
from ferryvm.policy import Choice, Policy, Profile, Rule
from ferryvm.policy.model import Options
from ferryvm_backends._llvm import passes

PAGE = 4096

PARTS = 5
"""Parts of a run that are measured one by one."""

_BLOCK = 64
"""Bytes of a block of Python's, about."""

_SALT = time.time_ns() // 1000 % 1_000_000_000
"""So that no cache has code of a program from an earlier process."""


class _Allocated(ctypes.Structure):
    """`struct mallinfo2` of glibc: of all arenas together."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


@dataclasses.dataclass(frozen=True)
class Growth:
    """Bytes that a program costs for good."""

    allocated: float
    resident: float


def _allocated() -> int:
    """Bytes that C and Python have not given back, when all is that can be."""
    gc.collect()
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _Allocated
    found = libc.mallinfo2()
    return int(found.uordblks + found.hblkhd + _BLOCK * sys.getallocatedblocks())


def _resident() -> int:
    """Bytes of memory that this process holds, when all is freed that can be."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE


def program(number: int, factor: int = 1) -> ferryvm.Program:
    """A program unlike all others; its loop runs some `factor` to 50 times as often."""
    return ferryvm.compile(f"""
(define i 0) (define s {number + _SALT})
(while (< i {(number % 50 + 3) * factor})
  (set! s (+ s (* i {number + _SALT}))) (set! i (+ i 1)))
s""")


def _distinct(backend: str) -> Callable[[int], object]:
    return lambda number: Engine(backend).start(program(number)).run()


def _same(backend: str) -> Callable[[int], object]:
    one = program(0)
    return lambda _: Engine(backend).start(one).run()


def _mixed(backend: str) -> Callable[[int], object]:
    """Loops are compiled in the background; some programs end before that."""
    choice = Choice(backend, Options(optimize=1, background=True))
    policy = Policy(profile=Profile(loop_threshold=10), rules=(Rule(backends=(choice,)),))
    engine = Engine(policy=policy)
    return lambda number: engine.start(program(number, 200_000)).run()


def _saved(backend: str) -> Callable[[int], object]:
    engine = Engine(backend)
    folder = tempfile.TemporaryDirectory()

    def step(number: int) -> None:
        state = Path(folder.name) / "state.ferry"
        execution = engine.start(program(number))
        execution.run(fuel=20)
        execution.save(state)
        engine.resume(state).run()

    return step


def _forked(backend: str) -> Callable[[int], object]:
    engine = Engine(backend)

    def step(number: int) -> None:
        execution = engine.start(program(number))
        execution.run(fuel=20)
        execution.fork().run()

    return step


def _session(backend: str) -> Callable[[int], object]:
    """Inputs of one REPL, which define what was defined before."""

    def nowhere(text: str) -> None:
        """Take what it says."""

    repl = Repl(backend, nowhere, nowhere)
    return lambda number: repl.enter(
        f"(define x {number + _SALT}) (define (f a) (+ a {number + _SALT})) (f x)"
    )


WAYS = {
    "distinct": _distinct,
    "same": _same,
    "mixed": _mixed,
    "saved": _saved,
    "forked": _forked,
    "session": _session,
}


def growth(backend: str, way: str, programs: int) -> Growth:
    """What each of so many programs costs, run in one of `WAYS`."""
    step = WAYS[way](backend)
    warm = max(programs // 3, 5)
    for number in range(warm):
        step(number)
    passes.HERE = 0  # as in a process that has run many
    step(warm)
    resident, part = _resident(), -(-programs // PARTS)
    found = []
    for first in range(warm + 1, warm + 1 + PARTS * part, part):
        allocated = _allocated()
        for number in range(first, first + part):
            step(number)
        found.append((_allocated() - allocated) / part)
    return Growth(statistics.median(found), (_resident() - resident) / (PARTS * part))


if __name__ == "__main__":
    name, kind, count, *most = sys.argv[1:]
    found = growth(name, kind, int(count))
    print(f"{name} {kind}: {found.allocated:.0f} allocated, {found.resident:.0f} resident")
    if most and found.allocated > int(most[0]):
        sys.exit(f"at most {most[0]} wanted")
