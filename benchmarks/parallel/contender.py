# SPDX-License-Identifier: Apache-2.0
"""The contenders on data-parallel work: each makes a task, which does the work.

All run in this process, on the same inputs, with arrays of results of their own: C by ctypes,
ferryvm on an instance whose launches have been compiled before.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

import ferryvm
from benchmarks.build import build
from benchmarks.parallel.kernel import hand_written
from benchmarks.parallel.program import Argument, Twin, Work
from benchmarks.parallel.task import Make, Task
from benchmarks.peers.ferry import MIXED, engine
from benchmarks.peers.native import C_FLAGS, HOST
from benchmarks.peers.peer import MissingError, first_line, tool
from ferryvm.engine import Engine
from ferryvm.policy import Policy
from ferryvm.policy.model import build_ours

GCC, LLVM, CC = "gcc", "llvm", "cc"
"""On all cores."""
PLACED = "default policy"
"""Wherever the default policy places the launches."""
OPENCL, OPENCL_C, OPENCL_COPIES = "opencl", "OpenCL C", "OpenCL C with copies"
"""On an OpenCL device: launches, and kernels written by hand."""
IN_ORDER = " (in order)"
"""Ends the names of contenders that use one core."""

BY_ELEMENT = "items.skiff"
"""The suffix of twins with an item an element, for devices with memory of their own, where others
have an item a row."""

SETTLING = 2.0
"""Seconds of runs under the default policy before the first one that counts."""

FLAGS = (*C_FLAGS, HOST)


def contenders() -> Mapping[str, Make]:
    """All contenders by name; what makes a task raises MissingError where there is none."""
    return {
        GCC: lambda twin, work: _gcc(twin, work, "-fopenmp"),
        LLVM: lambda twin, work: _ferry(twin, work, LLVM, threads=0),
        GCC + IN_ORDER: lambda twin, work: _gcc(twin, work),
        LLVM + IN_ORDER: lambda twin, work: _ferry(twin, work, LLVM, threads=1),
        CC: lambda twin, work: _ferry(twin, work, CC, threads=0),
        PLACED: _placed,
        OPENCL_C: hand_written,
        OPENCL_COPIES: lambda twin, work: hand_written(twin, work, copies=True),
        OPENCL: _on_device,
    }


def versions() -> dict[str, str]:
    """The versions of the peers that are installed."""
    found = {"ferryvm": ferryvm.__version__}
    with contextlib.suppress(MissingError):  # each program says what is missing
        compiler = first_line([tool("gcc"), "--version"])
        found[GCC] = f"{compiler}, {' '.join(FLAGS)} -fopenmp"
    return found


def launching(backend: str, threads: int, lanes: int = 0, device: str = "") -> Engine:
    """An engine that has a backend run the loops of launches from their first item on, and an
    interpreter everything else. Raises MissingError where the backend cannot run."""
    engine(backend)
    return Engine(policy=launching_policy(backend, threads, lanes, device))


def launching_policy(backend: str, threads: int, lanes: int = 0, device: str = "") -> Policy:
    """The policy of `launching`."""
    choice = {"name": backend, "threads": threads, "background": False, "required": True}
    choice |= {"lanes": lanes, "device": device}
    rule = {"when": {"kind": "launch"}, "backends": [choice]}
    return build_ours({"profile": {"loop_threshold": 1}, "rule": [rule]})


def _ferry(twin: Twin, work: Work, backend: str, threads: int) -> Task:
    return launch_task(twin, work, launching(backend, threads))


def _on_device(twin: Twin, work: Work) -> Task:
    return launch_task(twin, work, launching(OPENCL, threads=1), device_suffix(twin))


def device_suffix(twin: Twin) -> str:
    """The suffix of the twin for the default OpenCL device, which there has to be."""
    from ferryvm_backends.opencl.device import find

    is_by_element = twin.path(BY_ELEMENT).exists() and not find().shares_memory
    return BY_ELEMENT if is_by_element else "skiff"


def _placed(twin: Twin, work: Work) -> Task:
    task = launch_task(twin, work, engine(MIXED))
    began = time.perf_counter()
    while time.perf_counter() - began < SETTLING:  # code is compiled in the background meanwhile
        task.run()
        time.sleep(0.02)
    return task


def launch_task(twin: Twin, work: Work, on: Engine, suffix: str = "skiff") -> Task:
    """The work in Skiff on an engine."""
    path = twin.path(suffix)
    program = ferryvm.compile(path.read_text(encoding="utf-8"), file=str(path))
    call = on.instantiate(program).exports["work"]
    if twin.makes:
        return Task(lambda: work.made.append(call(*work.arguments)))
    return Task(lambda: call(*work.arguments))


def _gcc(twin: Twin, work: Work, *extra: str) -> Task:
    command = [tool("gcc"), *FLAGS, *extra, "-shared", "-fPIC"]
    library = build(f"{twin.name}{''.join(extra)}.so", command, [twin.path("c")])
    function = ctypes.CDLL(str(library)).work
    arguments = [_native(argument) for argument in work.arguments]
    if twin.makes:
        return _Making(function, arguments, work).task()
    function.restype = None
    return Task(lambda: function(*arguments))


class _Making:
    """A C function that returns an array of as many f64 as its first argument says."""

    def __init__(self, function: Any, arguments: Sequence[Any], work: Work) -> None:
        self._function, self._arguments, self._work = function, arguments, work
        function.restype = ctypes.c_void_p
        self._free = ctypes.CDLL(None).free
        self._made: int | None = None

    def task(self) -> Task:
        """Calls of it."""
        return Task(self._run, self._release, self._fetch)

    def _run(self) -> None:
        self._made = self._function(*self._arguments)

    def _release(self) -> None:
        self._free(ctypes.c_void_p(self._made))
        self._made = None

    def _fetch(self) -> None:
        assert self._made is not None
        count = self._work.arguments[0]
        assert isinstance(count, int)
        elements = (ctypes.c_double * count).from_address(self._made)
        self._work.made.append(numpy.frombuffer(elements))


def _native(argument: Argument) -> ctypes.c_int64 | ctypes.c_double | ctypes.c_void_p:
    if isinstance(argument, numpy.ndarray):
        return ctypes.c_void_p(argument.ctypes.data)
    return ctypes.c_int64(argument) if isinstance(argument, int) else ctypes.c_double(argument)
