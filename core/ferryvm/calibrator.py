# SPDX-License-Identifier: Apache-2.0
"""Calibrating a device: the costs of launches on it, measured by launches.

    program ─ threaded, step by step ─> its launch ─┬─ the backend's code, in order      ┐
                                                    └─ the same, many and few items      ┴─> seconds

Each class of instructions has a launch whose items do hardly anything else. A time is the least of
several, since other work of the machine can only add to it. Nothing is kept before all is measured.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import ferryvm
from ferryvm.backend import ArrayActivity, BackendError, Code, Compiler, Options
from ferryvm.engine import Engine
from ferryvm.engine.launch_place.calibration import CLASSES, Calibration, device_name, versions
from ferryvm.engine.launching import quiet_words
from ferryvm.engine.parallel import ThreadedCode
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.machine.entry import ENTRY
from ferryvm.machine.launch_operands import launch_operands
from ferryvm.machine.piece import elements
from ferryvm.policy.machine import cpus
from ferryvm.policy.model import INTERPRETER
from ferryvm.region.launch import launch_numbers
from ferryvm.region.region import Region, RegionKind, candidates
from ferryvm.thread import Bell, start

if TYPE_CHECKING:
    from ferryvm.item_range import RangeRunner

_ITEMS = {
    "float": """
  (define x (f64 i))
  (define j 0)
  (while (< j steps)
    (set! x (+ (* x 0.999{salt}) (* (- x 1.5) (* x 0.0001))))
    (set! j (+ j 1)))
  (array-set! to i x)""",
    "integer": """
  (define x i)
  (define j 0)
  (while (< j steps)
    (set! x (+ (^ x (>> x 7)) (^ (* x 5) (<< x 3))))
    (set! j (+ j 1)))
  (array-set! to i (f64 x))""",
    "memory": """
  (define x 0.{salt})
  (if (= steps 1)
    (set! x (+ (array-ref from i) (array-ref more i)))
    (begin
      (define j 0)
      (while (< j steps)
        (set! x (+ x (array-ref from (& (+ i j) {mask}))))
        (set! j (+ j 1)))))
  (array-set! to i x)""",
    "control": """
  (define all 0)
  (define j 0)
  (while (< j steps)
    (define x (& (+ i j) 255))
    (define left 200)
    (while (and (> x 1) (> left 0))
      (if (= (& x 1) 0)
        (set! x (>> x 1))
        (set! x (+ (* 3 x) 1)))
      (set! left (- left 1)))
    (set! all (+ all left))
    (set! j (+ j 1)))
  (array-set! to i (f64 all))""",
}
"""The body of an item for each class."""

_STEPS = {"float": 64, "integer": 64, "memory": 1, "control": 1}
"""Iterations of an item's loop, unless a device is so fast that it takes more to time them."""

_PROGRAM = """
(define (item (i i64) (to (array f64)) (from (array f64)) (more (array f64)) (steps i64)){body})
(define to (make-array f64 {most}))
(define from (make-array f64 {most}))
(define more (make-array f64 {most}))
(for-each-item {count} (item to from more {steps}))
"""

_MOST = 1 << 20
"""Items, and elements of arrays: three of 8 MiB, more than a core's own cache has."""

_FEW = 1 << 10
"""Elements of arrays where the time of a launch is measured on a device to which they are
copied."""

_LEAST_SECONDS = 2e-3
"""Least time of a launch from which the time of an item is taken."""

_TIMES = 5
"""Launches of a kind, of which the quickest counts."""

_NOISE = 0.05
"""The part of the time of a launch by which that varies: no work is taken to be shorter."""

_MOST_STEPS = 1 << 22
"""Iterations of an item at most."""

_COUNTED = 256
"""Items whose instructions are counted; their mean is that of all, in each class."""


def calibrate(compiler: Compiler, device: str) -> Calibration:
    """The calibration of a device, which takes some seconds. `device`: as `Options.device`.

    Raises BackendError if the backend runs no items of launches out of order, has no such device,
    or fails.
    """
    able = compiler.capabilities
    if not (able.ranges or able.native):
        raise BackendError(f"{compiler.name}: it runs no items of launches out of order")
    name = device_name(compiler, device)
    launches = {kind: _Launch(compiler, name, kind) for kind in CLASSES}
    all_seconds = {kind: launch.out_of_order() for kind, launch in launches.items()}
    in_order = {kind: launch.in_order() for kind, launch in launches.items()}
    to_device, to_host = launches["memory"].bandwidths()
    # Finding what has changed in large arrays takes long where they are copied.
    few = {kind: _Launch(compiler, name, kind, _FEW) for kind in CLASSES} if to_device else launches
    return Calibration(
        backend=compiler.name,
        device=name,
        versions=versions(compiler, name),
        launch_seconds=few["float"].launch_seconds,
        thread_seconds=_thread_seconds() if able.native else 0.0,
        to_device=to_device,
        to_host=to_host,
        # The first one may have loaded the driver.
        compile_seconds=min(launch.compile_seconds for launch in launches.values()),
        seconds=all_seconds,
        in_order=in_order if able.native else {},
        alone={} if able.native else {kind: launch.alone() for kind, launch in few.items()},
    )


_Run = Callable[[int, int], None]
"""Runs so many items with so many iterations each."""


class _Launch:
    """A program at the launch of one class of items, and a backend's code of the launch."""

    def __init__(self, compiler: Compiler, device: str, kind: str, length: int = _MOST) -> None:
        """`length`: of each array."""
        self._steps = _STEPS[kind]
        self._instructions = _instructions(kind, self._steps)
        """Of one item, on average."""
        self._of_step = _instructions(kind, self._steps + 64) - self._instructions
        self._of_step /= 64
        """Instructions of one more iteration."""
        program = ferryvm.compile(_text(kind, length, self._steps, length))
        execution = Engine(INTERPRETER).start(program)
        self._machine = machine = execution.machine
        (self._pc,) = launch_numbers(machine.verified)
        while machine.control.pc != self._pc:
            execution.run(fuel=1)
        self._execution = execution
        control = machine.control
        self._at = control.sp, control.fp
        self._quiet = quiet_words(machine.verified)
        region = next(
            one for one in candidates(machine.verified, self._pc) if one.kind is RegionKind.LAUNCH
        )
        began = time.perf_counter()
        self.code = self._compiled(compiler, device, region)
        self.compile_seconds = time.perf_counter() - began
        ranges = self.code.ranges
        if ranges is None:
            raise BackendError(f"{compiler.name}: it runs the items of a launch in order")
        self._ranges: RangeRunner = ranges
        self.launch_seconds = _least(self._run, 2, self._steps)

    def _compiled(self, compiler: Compiler, device: str, region: Region) -> Code:
        options = Options(cache=False, device=device)
        reason = compiler.accepts(region)
        if reason is not None:
            raise BackendError(f"{compiler.name}: {reason}")
        code = compiler.compile(region, options)
        loop = compiler.chunk_loop() if compiler.capabilities.native else None
        return code if loop is None else ThreadedCode(code, region, cpus(), loop)

    def out_of_order(self) -> float:
        """Seconds of an instruction where items run out of order."""
        return self._of_instruction(self._run, self.launch_seconds)

    def in_order(self) -> float:
        """Seconds of an instruction where items run one after another."""
        return self._of_instruction(self._run_in_order, 0.0)

    def alone(self) -> float:
        """Seconds of an instruction of an item that nothing runs beside but another one."""
        steps, least = self._steps, _LEAST_SECONDS + 4 * self.launch_seconds
        while steps < _MOST_STEPS and _least(self._run, 2, steps, 2) < least:
            steps *= 4
        return self._each(_least(self._run, 2, steps), self.launch_seconds) / self._count(steps)

    def bandwidths(self) -> tuple[float, float]:
        """Bytes a second to the device and back, of arrays that have changed, with what finding
        that takes; zeros if the device works in the host's memory. The best of several copies
        counts: the first one makes the buffers."""
        found = [self._copied(float(number)) for number in range(_TIMES)]
        return max(to for to, _ in found), max(back for _, back in found)

    def _copied(self, salt: float) -> tuple[float, float]:
        machine = self._machine
        objects = machine.objects
        assert objects is not None  # the program has arrays
        sp = self._at[0] - LAUNCH_WORDS - 1
        for reference in machine.memory.stack[sp - 2 : sp]:
            words = elements(objects, reference)
            values = array("d", [salt]) * len(words)
            words[:] = memoryview(values).cast("B").cast("Q")
        before = self.code.activity()
        self._run(_MOST, self._steps)
        after = self.code.activity()
        sent = _spent(after.arrays, "seconds_to_device") - _spent(
            before.arrays, "seconds_to_device"
        )
        back = _spent(after.arrays, "seconds_to_host") - _spent(before.arrays, "seconds_to_host")
        to_device = (after.to_device - before.to_device) / sent if sent > 0 else 0.0
        return to_device, (after.to_host - before.to_host) / back if back > 0 else 0.0

    def _of_instruction(self, run: _Run, overhead: float) -> float:
        items, steps = 1024, self._steps
        least = _LEAST_SECONDS + 4 * overhead
        while items < _MOST and _least(run, items, steps, 2) < least:
            items *= 4
        items = min(items, _MOST)
        is_paced = self._ranges.is_paced
        while is_paced and steps < _MOST_STEPS and _least(run, items, steps, 2) < least:
            steps *= 4
        return self._each(_least(run, items, steps), overhead) / items / self._count(steps)

    def _each(self, seconds: float, overhead: float) -> float:
        """Seconds besides a launch, which varies itself."""
        return max(seconds - overhead, _NOISE * overhead, 1e-9)

    def _count(self, steps: int) -> float:
        """Instructions of an item with so many iterations."""
        return self._instructions + (steps - self._steps) * self._of_step

    def _run(self, items: int, steps: int) -> None:
        self._stand(items, steps)
        outcome = self._ranges.run(self._machine, 0, items)
        if outcome.completed != items:
            raise BackendError("a launch was interrupted while it was measured")

    def _run_in_order(self, items: int, steps: int) -> None:
        self._stand(items, steps)
        ENTRY(self.code.address)(self._machine.address)

    def _stand(self, items: int, steps: int) -> None:
        """Make the machine stand in front of so many items."""
        control = self._machine.control
        control.pc = self._pc
        control.sp, control.fp = self._at
        control.launches = self._quiet.buffer_info()[0]
        launch = launch_operands(control)
        launch.limit, launch.next, launch.record = items, 0, 0
        self._machine.memory.stack[self._at[0] - LAUNCH_WORDS - 1] = steps


def _text(kind: str, count: int, steps: int, length: int = _MOST) -> str:
    """The program of a class, with so many items. Its code differs each time: drivers keep builds,
    and the time of one is measured."""
    body = _ITEMS[kind].replace("{salt}", f"{time.time_ns() % 10**9:09}")
    body = body.replace("{mask}", str(length - 1))
    return _PROGRAM.format(body=body, most=length, count=count, steps=steps)


def _spent(arrays: Sequence[ArrayActivity], field: str) -> float:
    return sum(float(getattr(one, field)) for one in arrays)


def _least(run: _Run, items: int, steps: int, times: int = _TIMES) -> float:
    return min(_seconds(run, items, steps) for _ in range(times))


def _seconds(run: _Run, items: int, steps: int) -> float:
    began = time.perf_counter()
    run(items, steps)
    return time.perf_counter() - began


def _instructions(kind: str, steps: int) -> float:
    """Instructions of an item of a class, on average."""
    found = []
    for count in (_COUNTED, 2 * _COUNTED):
        program = ferryvm.compile(_text(kind, count, steps))
        counted = Engine(INTERPRETER).start(program).run(count=True).statistics.instructions
        assert counted is not None
        found.append(counted)
    return (found[1] - found[0]) / _COUNTED


def _thread_seconds() -> float:
    """Seconds until a new thread runs."""
    found = []
    for _ in range(4 * _TIMES):
        bell, began = Bell(), time.perf_counter()
        start(bell.ring)
        while not bell.wait(1.0):
            pass
        found.append(time.perf_counter() - began)
    return min(found)
