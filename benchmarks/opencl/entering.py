# SPDX-License-Identifier: Apache-2.0
"""Entering a kernel that does next to nothing and leaving it: ours against pyopencl's own call.

    threaded ── loop ──> Code.address ──> kernel of an empty scope ──> threaded     ours
    Python   ── loop ──> cl.enqueue_nd_range_kernel(…).wait(), an empty kernel      pyopencl's

Both kernels have the same parameters and run on the same device and queue.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Callable
from typing import Any

from benchmarks import transfer
from benchmarks.benchmark import BenchmarkError
from benchmarks.measure import interleave, median
from benchmarks.opencl.part import Metrics
from benchmarks.opencl.peer import OPENCL, fatal
from benchmarks.report import Target
from ferryvm.backend import Code, Compiler, Interpreter, Options
from ferryvm.machine.control import REGISTER_BYTES, Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.policy.model import INTERPRETER
from ferryvm.region.region import Region, RegionKind, regions
from ferryvm.registry import Registry
from ferryvm_backends.opencl.device import Device

MOST = 1.10
TIMES = 5_000
"""Entries of one measurement."""
_HEAD = re.compile(r"__kernel\b[^{]*?\bvoid\s+(\w+)\s*\([^{]*\)\s*(?=\{)")
_STRUCTURES = re.compile(r"^struct ferry_(?:control|packet) \{.*?^\};\n", re.MULTILINE | re.DOTALL)
_BYTES = 4096


def header(source: str) -> str:
    """The kernel's declaration in a text: attributes, name and parameters."""
    found = _HEAD.search(source)
    if found is None:
        raise BenchmarkError("the text of a region has no kernel")
    return found[0].strip()


def empty_kernel(source: str) -> str:
    """The text of a kernel with the same declaration that does nothing."""
    structures = "".join(_STRUCTURES.findall(source))
    return f"{structures}{header(source)}\n{{\n}}\n"


def kernel_name(source: str) -> str:
    """The kernel's name in a text."""
    found = _HEAD.search(source)
    assert found is not None
    return found[1]


def scope(times: int) -> Region:
    """The empty scope in a loop that goes round so often."""
    (found,) = (r for r in regions(transfer.loop(times)) if r.kind is RegionKind.SCOPE)
    return found


def entering(device: Device, rounds: int, times: int, progress: Callable[[str], None]) -> Metrics:
    """Microseconds of an entry, ours and pyopencl's."""
    with fatal():
        tasks = {"ferryvm": _ours(times), "pyopencl": _theirs(device, times)}
        found: dict[str, list[float]] = {name: [] for name in tasks}
        for name, seconds in interleave(tasks, rounds, {}):
            found[name].append(1e6 * seconds / times)
            progress(f"entering, {name}: {found[name][-1]:.2f} us")
    ratio = over(found["ferryvm"], found["pyopencl"])
    goal = Target("entering and leaving over pyopencl's own call", ratio, MOST, True)
    return Metrics(
        "entering",
        "entering a kernel and leaving it",
        {
            "times": times,
            "ferryvm_us": median(found["ferryvm"]),
            "pyopencl_us": median(found["pyopencl"]),
            "ratio": ratio,
        },
        found,
        [goal] if times >= TIMES else [],
    )


def over(mine: list[float], theirs: list[float]) -> float:
    """The median of the rounds' ratios."""
    return median([one / other for one, other in zip(mine, theirs, strict=True)])


def _compiler() -> Compiler:
    backend = Registry().get(OPENCL)
    assert isinstance(backend, Compiler)
    return backend


def _ours(times: int) -> Callable[[], float]:
    """Seconds of the loop with the kernel at its head; all of it counts."""
    region = scope(times)
    code = _compiler().compile(region, Options())
    interpreter = Registry().get(INTERPRETER)
    assert isinstance(interpreter, Interpreter)
    artifact = interpreter.prepare(region.verified)
    artifact.install(transfer.HEAD, code.address, False)

    def run() -> float:
        machine = Machine(region.verified, Limits())
        introduce(code, machine, region.entry)
        before = code.activity().entries
        began = time.perf_counter()
        status = artifact.enter(machine, False)
        seconds = time.perf_counter() - began
        if status is not Status.HALT:
            raise BenchmarkError(f"the loop ended with {status.name}: {code.lost}")
        entries = code.activity().entries - before
        if entries != times:
            raise BenchmarkError(f"the kernel was entered {entries} times in {times} iterations")
        return seconds

    return run


def introduce(code: Code, machine: Machine, entry: int) -> None:
    """Enter code once, so that it knows the machine's memory, and leave the machine as it is."""
    control = machine.control
    registers = ctypes.string_at(ctypes.addressof(control), REGISTER_BYTES)
    control.pc = entry
    ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)(code.address)(ctypes.addressof(control))
    ctypes.memmove(ctypes.addressof(control), registers, REGISTER_BYTES)


def _theirs(device: Device, times: int) -> Callable[[], float]:
    import pyopencl as cl

    from ferryvm_backends.opencl.build import built_text, options, session

    source = _compiler().show(scope(times), Options(), OPENCL)
    opened = session(device)
    empty = empty_kernel(source)
    try:
        program = cl.Program(opened.context, built_text(device, empty))
        kernel = cl.Kernel(program.build(options(device)), kernel_name(source))
        buffer = cl.Buffer(opened.context, cl.mem_flags.READ_WRITE, _BYTES)
        arguments: list[Any] = [_argument(p, buffer) for p in parameters(empty)]
        for number, argument in enumerate(arguments):
            kernel.set_arg(number, argument)
        cl.enqueue_nd_range_kernel(opened.queue, kernel, (1,), (1,)).wait()
    except cl.Error as error:
        raise BenchmarkError(f"the empty kernel cannot be run: {error}") from None
    queue = opened.queue

    def run(_held: object = arguments) -> float:  # a kernel does not hold its arguments
        began = time.perf_counter()
        for _ in range(times):
            cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,)).wait()
        return time.perf_counter() - began

    return run


def _argument(parameter: str, buffer: Any) -> Any:
    import numpy as np

    from ferryvm_backends.opencl.packet import Packet

    if "*" in parameter:
        return buffer
    return Packet() if "ferry_packet" in parameter else np.uint64(0)


def parameters(source: str) -> list[str]:
    """The kernel's parameters in a text, as they are declared."""
    inside = header(source).rpartition("(")[2].rpartition(")")[0]
    return [" ".join(parameter.split()) for parameter in inside.split(",")]
