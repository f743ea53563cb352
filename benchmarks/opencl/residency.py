# SPDX-License-Identifier: Apache-2.0
"""Bytes that calls with the same two NumPy arrays copy to a device.

    first     both arrays, as a whole
    second    nothing of them
    stored    the chunk of one element that Python has stored in between

The bytes are counted. On a processor that shares the host's memory, where nothing is copied, the
backend is told to copy.
"""

from __future__ import annotations

import dataclasses
import time
import types
from collections.abc import Callable

import numpy as np

import ferryvm
from benchmarks.benchmark import BenchmarkError
from benchmarks.opencl.part import Metrics
from benchmarks.opencl.peer import fatal
from benchmarks.opencl.watched import Watched
from benchmarks.report import Target
from ferryvm.engine import Engine
from ferryvm.hooks import BackendEntry, hookimpl
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.registry import Registry
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.host_memory import CHUNK

BYTES = 64 << 20
"""Bytes of each of the two arrays."""
QUICK_BYTES = 1 << 20
_NAME = "copying"
_STEP = 8
"""Elements from one that is read to the next: one work-item is slow."""
_TEXT = f"""
.export dot
.function start
    halt
.function dot (f64[] f64[]) -> (f64)
.local index i64
.local total f64
:next
    local.get index
    local.get 0
    array.length
    i64.ge_u
    jump_if done
    local.get 0
    local.get index
    array.get_f64
    local.get 1
    local.get index
    array.get_f64
    f64.mul
    local.get total
    f64.add
    local.set total
    local.get index
    i64.const {_STEP}
    i64.add
    local.set index
    jump next
:done
    local.get total
    return
"""


@dataclasses.dataclass(frozen=True)
class _Copied:
    """Copies so far."""

    arrays: int
    """Bytes of the two arrays that went to the device."""
    all: int
    """Bytes of everything that did."""
    back: int
    """Bytes of everything that came back."""
    seconds: float
    """Spent on copying, and on comparing arrays."""


class _Calls:
    """An instance whose code copies, and its metrics."""

    def __init__(self) -> None:
        backend = OpenClBackend(wraps=False)
        backend.name = _NAME
        registry = Registry()
        entries = hookimpl(lambda: [BackendEntry(_NAME, lambda: backend)])
        registry.register(types.SimpleNamespace(ferryvm_backends=entries), _NAME)
        rules = (Rule(backends=(Choice(_NAME, Options(background=False)),)),)
        policy = Policy(rules=rules, profile=Profile(loop_threshold=1, function_threshold=1))
        self._watched = Watched(Engine(policy=policy, registry=registry), _NAME)
        self.instance = self._watched.engine.instantiate(ferryvm.assemble(_TEXT))

    def copied(self) -> _Copied:
        """Copies so far. Raises BenchmarkError if there is no code, or it is lost."""
        codes = [attempt.code for attempt in self._watched.attempts if attempt.code is not None]
        reasons = [code.lost for code in codes if code.lost] + self._watched.refusals()
        if reasons or not codes:
            raise BenchmarkError("; ".join(reasons) or "nothing was compiled")
        done = [code.activity() for code in codes]
        return _Copied(
            sum(one.to_device for each in done for one in each.arrays if "[" in one.name),
            sum(each.to_device for each in done),
            sum(each.to_host for each in done),
            sum(each.transfer_seconds for each in done),
        )


def residency(bytes_: int, progress: Callable[[str], None]) -> Metrics:
    """Bytes and seconds of three calls; `bytes_`: of each array."""
    with fatal():
        calls = _Calls()
    one, other = np.arange(1, bytes_ // 8 + 1, dtype=np.float64), np.full(bytes_ // 8, 0.5)
    metrics: dict[str, float | int | str] = {"array_bytes": 2 * bytes_}
    before = _Copied(0, 0, 0, 0.0)
    for name in ("first", "second", "stored"):
        if name == "stored":
            other[0] = 2.0
        expected = float(sum((one[::_STEP] * other[::_STEP]).tolist()))
        began = time.perf_counter()
        with fatal():
            result = calls.instance.dot(one, other)
        seconds = time.perf_counter() - began
        if result != expected:
            raise BenchmarkError(f"the {name} call returns {result}, not {expected}")
        now = calls.copied()
        metrics |= {
            f"{name}_array_bytes": now.arrays - before.arrays,
            f"{name}_bytes_to_device": now.all - before.all,
            f"{name}_bytes_to_host": now.back - before.back,
            f"{name}_copy_ms": 1e3 * (now.seconds - before.seconds),
            f"{name}_ms": 1e3 * seconds,
        }
        progress(f"residency, {name}: {now.arrays - before.arrays} bytes of arrays")
        before = now
    second, stored = metrics["second_array_bytes"], metrics["stored_array_bytes"]
    assert isinstance(second, int)
    assert isinstance(stored, int)
    goals = [
        Target("bytes of arrays copied by a second call", second, 0, True, " bytes"),
        Target("the same after one element was stored", stored, CHUNK, True, " bytes"),
    ]
    return Metrics("residency", "calls with the same arrays", metrics, {}, goals)
