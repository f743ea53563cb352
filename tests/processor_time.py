# SPDX-License-Identifier: Apache-2.0
"""Processor time of this process and of all processes that it has started.

`os.times` has only those children that have ended and were waited for. Some children live as long
as the tests: the server of commands (`tests/command.py`), and the processes in which drivers build
kernels. Linux has the time of a running child in its files of `/proc`; elsewhere it is left out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

_TASKS = "/proc/self/task"
_FIRST = 11
"""The place of utime behind the name of the command in `/proc/PID/stat` (proc_pid_stat(5)); stime,
cutime and cstime follow."""


def used() -> float:
    """Processor seconds of this process and of its children, each with those that it has waited
    for."""
    times = os.times()
    ended = times.user + times.system + times.children_user + times.children_system
    ticks = sum(map(_ticks, _children()))
    return ended + ticks / os.sysconf("SC_CLK_TCK")


def _children() -> Iterator[str]:
    """The numbers of the children that have not been waited for."""
    with contextlib.suppress(OSError):
        for task in os.listdir(_TASKS):
            with contextlib.suppress(OSError):
                yield from _read(f"{_TASKS}/{task}/children").decode().split()


def _read(path: str) -> bytes:
    """The content of a small file: it is read twice a test, by a process with many threads."""
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _ticks(process: str) -> int:
    """Clock ticks of a process and of the children that it has waited for; 0 if it is gone."""
    try:
        stat = _read(f"/proc/{process}/stat")
    except OSError:
        return 0
    return sum(map(int, stat.rpartition(b")")[2].split()[_FIRST : _FIRST + 4]))
