# SPDX-License-Identifier: Apache-2.0
"""Short launches from Python, against what is written by hand with pyopencl, and in C.

    chain   six launches in turn between two arrays on the device, in groups of 64; by hand the same
            kernel with local memory, six launches and one wait
    items   1,000 trivial items over arrays of NumPy, over a call without a launch; by hand both
            copies, the kernel and one wait
    resident
            a launch of these items from Python over arrays on the device, and a wait; by hand the
            kernel with its arguments, and a wait

Turns alternate, and the least time of each counts. On a processor that shares the host's memory,
too, it is copied.
"""

from __future__ import annotations

import ctypes
import time
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyopencl as cl

import ferryvm
from benchmarks.benchmark import BenchmarkError
from benchmarks.build import build, written
from benchmarks.opencl.part import Metrics
from benchmarks.opencl.peer import fatal
from benchmarks.report import Target
from ferryvm.engine import Engine
from ferryvm.hooks import BackendEntry, hookimpl
from ferryvm.policy.model import build_ours
from ferryvm.python.control_flow.kernel_source import Layout
from ferryvm.registry import Registry
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.build import session
from ferryvm_backends.opencl.device import Device
from ferryvm_backends.opencl.kernel import library

SIZES, QUICK_SIZES = (1 << 16, 1 << 20, 1 << 24), (1 << 12,)
"""Doubles of each array of a chain."""

_ITEMS = 1000
_NAME = "copying"
_CALLS = 100
"""Calls with items in a turn."""
_SKIFF = """
(define (item (i i64) (k i64) (from (array i64)) (to (array i64)))
  (array-set! to i (* k (array-ref from i))))
(define (items (n i64) (k i64) (from (array i64)) (to (array i64)))
  (for-each-item n (item k from to)))
(define (none (n i64) (k i64) (from (array i64)) (to (array i64)))
  (array-set! to 0 (* k (array-ref from 0))))
"""
_OPENCL = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void reverse(global double *to, global const double *from)
{
    local double tile[64];
    size_t i = get_global_id(0), me = get_local_id(0);
    tile[me] = from[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    to[i] = tile[63 - me] + 1.0;
}
kernel void items(global long *to, global const long *from, long k)
{
    size_t i = get_global_id(0);
    to[i] = k * from[i];
}
"""
_C = """
#include <stddef.h>
typedef int enqueue_type(void *, void *, unsigned, const size_t *, const size_t *, const size_t *,
                         unsigned, void *, void *);
typedef int copy_type(void *, void *, unsigned, size_t, size_t, void *, unsigned, void *, void *);
int items(enqueue_type *enqueue, copy_type *write, copy_type *read, int (*finish)(void *),
          void *queue, void *kernel, size_t n, void *from, void *to, void *given, void *result)
{
    int error = write(queue, from, 0, 0, 8 * n, given, 0, NULL, NULL);
    error |= enqueue(queue, kernel, 1, NULL, &n, NULL, 0, NULL, NULL);
    error |= read(queue, to, 0, 0, 8 * n, result, 0, NULL, NULL);
    return error | finish(queue);
}
"""


@ferryvm.kernel
def reverse(out, x):  # type: ignore[no-untyped-def]  # a kernel is compiled for its arguments
    """Each group of 64 elements in reverse order, plus one."""
    i, me = ferryvm.item(), ferryvm.local_item()
    tile = ferryvm.group_array(64, "f64")
    tile[me] = x[i]
    ferryvm.barrier()
    out[i] = tile[63 - me] + 1.0


@ferryvm.kernel
def scaled(out, x, k):  # type: ignore[no-untyped-def]  # likewise
    """Each element times k."""
    i = ferryvm.item()
    out[i] = k * x[i]


class _ByHand:
    """Kernels that are written by hand, on a queue of their own."""

    def __init__(self, device: Device) -> None:
        self.context = cl.Context([device.handle])
        self.queue = cl.CommandQueue(self.context)
        program = cl.Program(self.context, _OPENCL).build()
        self.reverse, self.items = cl.Kernel(program, "reverse"), cl.Kernel(program, "items")

    def buffer(self, array: np.ndarray[Any, Any]) -> Any:
        """A buffer with the elements of an array."""
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(self.context, flags, hostbuf=array)

    def chain(self, array: np.ndarray[Any, Any]) -> Callable[[], None]:
        """Six launches in turn between two copies of an array."""
        one, other = self.buffer(array), self.buffer(array)

        def run() -> None:
            for to, source in ((other, one), (one, other)) * 3:
                self.reverse.set_args(to, source)
                cl.enqueue_nd_range_kernel(self.queue, self.reverse, (array.size,), (64,))
            self.queue.finish()

        return run

    def copied(
        self, given: np.ndarray[Any, Any], result: np.ndarray[Any, Any]
    ) -> Mapping[str, Callable[[], Any]]:
        """A launch of items between two copies, from Python and from C; one without copies, and one
        that sets its arguments, too."""
        source, to = self.buffer(given), self.buffer(result)
        kernel, queue, size = self.items, self.queue, (given.size,)
        kernel.set_args(to, source, np.int64(3))

        def whole() -> None:
            cl.enqueue_copy(queue, source, given, is_blocking=False)
            cl.enqueue_nd_range_kernel(queue, kernel, size, None)
            cl.enqueue_copy(queue, result, to)

        def launch() -> None:
            cl.enqueue_nd_range_kernel(queue, kernel, size, None)
            queue.finish()

        def given_arguments() -> None:
            kernel.set_args(to, source, np.int64(3))
            launch()

        command = ["gcc", "-O2", "-shared", "-fPIC"]
        native = ctypes.CDLL(str(build("short", command, [written("short.c", _C.encode())]))).items
        names = ("NDRangeKernel", "WriteBuffer", "ReadBuffer")
        functions = [getattr(library(), f"clEnqueue{name}") for name in names]
        addresses = [queue.int_ptr, kernel.int_ptr, given.size, source.int_ptr, to.int_ptr]
        words = [*addresses, given.ctypes.data, result.ctypes.data]
        native.argtypes = [ctypes.c_void_p] * (len(functions) + 1 + len(words))
        pointers = [ctypes.cast(one, ctypes.c_void_p) for one in (*functions, library().clFinish)]
        return {
            "pyopencl_us": whole,
            "c_us": lambda: native(*pointers, *words),
            "launch_us": launch,
            "given_us": given_arguments,
        }


def copying_engine() -> Engine:
    """An engine that runs launches on the device, to which memory is copied."""
    registry, backend = Registry(), OpenClBackend(wraps=False)
    backend.name = _NAME
    entries = hookimpl(lambda: [BackendEntry(_NAME, lambda: backend)])
    registry.register(types.SimpleNamespace(ferryvm_backends=entries), _NAME)
    choice = {"name": _NAME, "background": False, "required": True}
    rule = {"when": {"kind": "launch"}, "backends": [choice]}
    policy = build_ours({"profile": {"loop_threshold": 1}, "rule": [rule]})
    return Engine(policy=policy, registry=registry)


def _chain(
    engine: Engine, array: np.ndarray[Any, Any], wait: Callable[[], Any]
) -> Callable[[], None]:
    """Six launches in turn between two arrays on the device; `wait`: for all that it has to do."""
    reverse.launched(Layout(1, (64,)), None, None)._engine = engine
    one, other = ferryvm.DeviceArray(array), ferryvm.DeviceArray(array)

    def run() -> None:
        for to, source in ((other, one), (one, other)) * 3:
            ferryvm.launch(reverse, array.size, to, source, group=64)
        if one.where == "host":
            raise BenchmarkError("elements of a chain are not on the device")
        wait()

    for _ in range(3):
        run()
    before = np.array(one)
    run()
    if not np.array_equal(one, before + 6):
        raise BenchmarkError("the results of a chain are wrong")
    run()
    return run


def _resident(engine: Engine, given: np.ndarray[Any, Any], wait: Callable[[], Any]) -> Any:
    """A launch of items over arrays on the device, and a wait for its end."""
    scaled.launched(Layout(1, None), None, None)._engine = engine
    x, out = ferryvm.DeviceArray(given), ferryvm.DeviceArray(given)

    def run() -> None:
        ferryvm.launch(scaled, given.size, out, x, 3)
        wait()

    for _ in range(30):
        run()
    if out.where == "host" or not np.array_equal(out, 3 * given):
        raise BenchmarkError("the results of items are wrong, or not on the device")
    run()
    return run


def _least(runs: Mapping[str, Callable[[], Any]], turns: int, calls: int) -> dict[str, float]:
    """The least seconds of each, in turns of so many calls."""
    found = dict.fromkeys(runs, float("inf"))
    for _ in range(turns):
        for name, run in runs.items():
            for _ in range(calls):
                began = time.perf_counter()
                run()
                found[name] = min(found[name], time.perf_counter() - began)
    return found


def short(
    device: Device, sizes: Sequence[int], rounds: int, progress: Callable[[str], None]
) -> Metrics:
    """Milliseconds of chains with arrays of `sizes` doubles, microseconds of a launch of items."""
    engine, by_hand = copying_engine(), _ByHand(device)
    metrics, goals = dict[str, float | int | str](), list[Target]()
    for size in sizes:
        with fatal():
            array = np.arange(float(size))
            runs = {
                "pyopencl": by_hand.chain(array),
                "ours": _chain(engine, array, session(device).queue.finish),
            }
            found = _least(runs, 2 * rounds, 3)
        for name, seconds in found.items():
            metrics[f"chain_{size}_{name}_ms"] = 1e3 * seconds
        progress(
            f"short, {size} doubles: "
            + ", ".join(f"{n} {1e3 * s:.3f} ms" for n, s in found.items())
        )
        ratio = found["ours"] / found["pyopencl"]
        goals.append(Target(f"six launches of {size} doubles over pyopencl", ratio, 1.1, True))
    given, result = np.arange(_ITEMS), np.zeros(_ITEMS, np.int64)
    exports = engine.instantiate(ferryvm.compile(_SKIFF)).exports
    items, none = exports["items"], exports["none"]
    with fatal():
        for _ in range(50):
            items(_ITEMS, 3, given, result), none(_ITEMS, 3, given, result)
        ours = {
            "items_us": lambda: items(_ITEMS, 3, given, result),
            "call_us": lambda: none(_ITEMS, 3, given, result),
            "resident_us": _resident(engine, given, session(device).queue.finish),
        }
        found = _least({**ours, **by_hand.copied(given, result)}, 2 * rounds, _CALLS)
    if not np.array_equal(result, 3 * given):
        raise BenchmarkError("the results of items are wrong")
    over = found["items_us"] - found["call_us"]
    metrics |= {name: 1e6 * seconds for name, seconds in found.items()} | {"over_us": 1e6 * over}
    for name, of in (("pyopencl", "pyopencl_us"), ("C", "c_us"), ("a launch alone", "launch_us")):
        goals.append(
            Target(f"1,000 items over a plain call, of {name}", over / found[of], 1.1, True)
        )
    for name, of in (("pyopencl", "given_us"), ("a launch alone", "launch_us")):
        ratio = found["resident_us"] / found[of]
        goals.append(Target(f"1,000 items over DeviceArrays, of {name}", ratio, 1.1, True))
    return Metrics("short", "short launches", metrics, {}, goals)
