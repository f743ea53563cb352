# SPDX-License-Identifier: Apache-2.0
"""The contenders on maps: C with OpenMP, `ferryvm.map`, Numba's prange, CPython's `map`.

All have the same inputs and, to the last bit, the same results. CPython has lists in place of
arrays, which are faster there, and few of the items.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ferryvm
from benchmarks.benchmark import ROOT, BenchmarkError
from benchmarks.measure import median
from benchmarks.parallel.calibration import calibrated_devices
from benchmarks.parallel.contender import GCC, OPENCL_C, SETTLING, contenders
from benchmarks.parallel.kernel import hand_written
from benchmarks.parallel.program import BY_NAME, Twin, Work
from benchmarks.parallel.speed import Clock, Row
from benchmarks.parallel.speed import measure as measure_rows
from benchmarks.parallel.task import Make, Task
from benchmarks.peers.peer import MissingError
from benchmarks.python.item import OF, Items, loaded
from ferryvm.errors import FerryError

MAP, PRANGE, JAX, NUMEXPR = "ferryvm.map", "Numba prange", "JAX", "numexpr"
ON_DEVICE = "ferryvm.map on opencl"
DRIVER = ROOT / "python" / "drive_map.py"

CPYTHON_SECONDS = 0.3
"""How long CPython's `map` is measured, at least."""


def measure(
    names: Sequence[str],
    rounds: int,
    size: str,
    numba: str | None,
    progress: Callable[[str], None],
    is_processor: bool = False,
) -> list[Row]:
    """A row for each program, in interleaved rounds. `numba`: a Python that has it, and other
    peers; `is_processor`: measure the processor's time, of all threads together."""
    if is_processor:
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # waiting is no work
    with contextlib.ExitStack() as stack:
        known: Mapping[str, Make] = {
            GCC: contenders()[GCC],
            MAP: _map,
            PRANGE: lambda twin, work: peer("numba", twin, work, numba, stack),
            JAX: lambda twin, work: peer("jax", twin, work, numba, stack),
            NUMEXPR: lambda twin, work: peer("numexpr", twin, work, numba, stack),
        }
        clock: Clock = time.process_time if is_processor else time.perf_counter
        twins = [BY_NAME[name] for name in names]
        return measure_rows(twins, known, rounds, size, progress, clock)


def measure_on_device(
    names: Sequence[str], rounds: int, size: str, progress: Callable[[str], None]
) -> list[Row]:
    """A row for each program: kernels of OpenCL C, with the copies of arrays both ways where the
    device has memory of its own, maps on the same device, which copy what they need, and maps where
    the default policy places them; of full size, with devices calibrated."""
    if size == "full":
        calibrated_devices(progress)
    known: Mapping[str, Make] = {
        OPENCL_C: _by_hand,
        ON_DEVICE: lambda twin, work: _map(twin, work, ferryvm.function(backend="opencl")),
        MAP: _map,
    }
    return measure_rows([BY_NAME[name] for name in names], known, rounds, size, progress)


def cpython_seconds(name: str, size: str, rounds: int, clock: Clock = time.perf_counter) -> float:
    """Seconds that CPython's `map` would take for all items: the median of rounds over some."""
    twin = BY_NAME[name]
    work = twin.make(twin.size(size))
    items = OF[name](work.arguments)
    function = loaded(twin.path("py")).item
    arguments = {key: _listed(value) for key, value in items.arguments.items()}
    elements = [_listed(each) for each in items.elements]
    total = len(elements[0])

    def seconds(first: int, step: int) -> float:
        chosen = [each[first::step] for each in elements]
        began = clock()
        count = sum(1 for _ in map(lambda *given: function(*given, **arguments), *chosen))
        return (clock() - began) / count

    step, found = total, 0.0
    while step > 1:  # items from everywhere: some take longer than others
        began = clock()
        found = seconds(step // 2, step)
        if clock() - began > CPYTHON_SECONDS:
            break
        step = max(step // 4, 1)
    return total * median([found, *(seconds(step // 2, step) for _ in range(rounds - 1))])


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _items(twin: Twin, work: Work) -> tuple[Items, tuple[Any, ...]]:
    items = OF[twin.name](work.arguments)
    return items, tuple(work.arguments[position] for position in items.outs)


def _by_hand(twin: Twin, work: Work) -> Task:
    try:
        return hand_written(twin, work, copies=True)
    except MissingError:  # the device has the host's memory, or there is none
        return hand_written(twin, work)


def map_task(twin: Twin, work: Work, compiled: Callable[..., Any] | None = None) -> Task:
    """A map of the work's items, which has run once. `compiled`: makes the function that is mapped
    of the plain one."""
    items, outs = _items(twin, work)
    function = loaded(twin.path("py")).item
    if compiled is not None:
        function = compiled(function)
    out = outs[0] if len(outs) == 1 else outs or None

    def run() -> None:
        ferryvm.map(function, *items.elements, out=out, **items.arguments)

    try:
        run()
    except FerryError as error:
        raise BenchmarkError(str(error)) from error
    return Task(run)


def _map(twin: Twin, work: Work, compiled: Callable[..., Any] | None = None) -> Task:
    """The same, settled."""
    task = map_task(twin, work, compiled)
    try:
        began = time.perf_counter()
        while time.perf_counter() - began < SETTLING:  # compiled in the background meanwhile
            task.run()
            time.sleep(0.02)
    except FerryError as error:
        raise BenchmarkError(str(error)) from error
    return task


class _Server:
    """A process with a peer, which has the arrays of a program."""

    def __init__(self, python: str, peer: str, twin: Twin, work: Work) -> None:
        size = next(one for one in (twin.full, twin.small, twin.tiny) if one == work.arguments[0])
        command = [python, str(DRIVER), peer, twin.name, str(size)]
        try:
            self._process = subprocess.Popen(  # a Python that the caller names
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise MissingError(f"{python} cannot be run: {error}") from None
        self._peer, self._work, self._outs = peer, work, work.results
        assert self._process.stdout is not None
        reason = self._process.stdout.readline().strip()
        if reason != "ready":
            self.close()
            raise MissingError(reason or f"{python} has no {peer}")

    def ask(self, line: str) -> str:
        """The answer to a line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise BenchmarkError(f"the process of {self._peer} has ended")
        return answer

    def fetch(self) -> None:
        """Copy its results to this process."""
        with tempfile.TemporaryDirectory(prefix="ferry-bench-") as folder:
            self.ask(f"results {folder}/")
            for number, position in enumerate(self._outs):
                self._work.array(position)[...] = np.load(Path(folder) / f"{number}.npy")

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def peer(
    name: str,
    twin: Twin,
    work: Work,
    python: str | None,
    stack: contextlib.ExitStack | None = None,
) -> Task:
    """The work in a process with a peer, which ends with the stack. Raises MissingError."""
    if python is None:
        raise MissingError(f"name a Python that has {name} with --numba")
    server = _Server(python, name, twin, work)
    if stack is not None:
        stack.callback(server.close)
    return Task(
        lambda: server.ask("run"),
        fetch=server.fetch,
        processor=lambda: float(server.ask("processor")),
    )
