# SPDX-License-Identifier: Apache-2.0
"""ferryvm: a virtual machine that ferries a running program between execution engines.

>>> import ferryvm
>>> ferryvm.run(ferryvm.compile("(* 6 7)")).value
42

Names are imported lazily, so that a command that needs few of them starts fast.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's, which takes milliseconds to load: `ferry` has no handlers yet
if TYPE_CHECKING:
    from pathlib import Path

    from ferryvm.engine import (
        Engine,
        Execution,
        ProgramInterrupted,
        RunResult,
        TrapError,
        UncaughtError,
    )
    from ferryvm.engine.host_declaration import f32, f64, host, i32, i64
    from ferryvm.engine.host_log import HostLog
    from ferryvm.engine.host_tape import ReplayError
    from ferryvm.engine.instance import CallError, Instance, OutOfFuelError
    from ferryvm.engine.native_declaration import native_host
    from ferryvm.engine.object_view import ArrayView, StructView, type_name
    from ferryvm.errors import FerryError, SourceError
    from ferryvm.machine.host import HostFunction
    from ferryvm.portable.imported.kernel import import_kernel
    from ferryvm.portable.python import export
    from ferryvm.program import Program
    from ferryvm.python.call.function import function
    from ferryvm.python.call.interruption import MapInterrupted
    from ferryvm.python.fault import UnsupportedError
    from ferryvm.python.group.kernel import kernel, launch
    from ferryvm.python.hosted.atomic_update import (
        atomic_add,
        atomic_and,
        atomic_compare_exchange,
        atomic_exchange,
        atomic_max,
        atomic_min,
        atomic_or,
    )
    from ferryvm.python.hosted.work_item import (
        KernelError,
        barrier,
        group_array,
        group_broadcast,
        group_count,
        group_max,
        group_min,
        group_number,
        group_scan,
        group_scan_before,
        group_size,
        group_sum,
        item,
        item_count,
        local_item,
    )
    from ferryvm.python.map.mapped_function import explain
    from ferryvm.python.map.mapping import map, map_into
    from ferryvm.python.map.progress import progress
    from ferryvm.python.map.reduction import reduce, scan
    from ferryvm.python.value.device_array import DeviceArray, resident
    from ferryvm.verify import Verified, VerifyError

__version__ = "0.1.0"

_HOMES = {
    "ArrayView": "engine.object_view",
    "CallError": "engine.instance",
    "DeviceArray": "python.value.device_array",
    "Engine": "engine",
    "Execution": "engine",
    "FerryError": "errors",
    "HostFunction": "machine.host",
    "HostLog": "engine.host_log",
    "Instance": "engine.instance",
    "Program": "program",
    "ProgramInterrupted": "engine",
    "RunResult": "engine",
    "ReplayError": "engine.host_tape",
    "SourceError": "errors",
    "OutOfFuelError": "engine.instance",
    "StructView": "engine.object_view",
    "TrapError": "engine",
    "UncaughtError": "engine",
    "UnsupportedError": "python.fault",
    "Verified": "verify",
    "VerifyError": "verify",
    "explain": "python.map.mapped_function",
    "export": "portable.python",
    "f32": "engine.host_declaration",
    "f64": "engine.host_declaration",
    "function": "python.call.function",
    "host": "engine.host_declaration",
    "import_kernel": "portable.imported.kernel",
    "i32": "engine.host_declaration",
    "i64": "engine.host_declaration",
    "MapInterrupted": "python.call.interruption",
    "map": "python.map.mapping",
    "map_into": "python.map.mapping",
    "native_host": "engine.native_declaration",
    "progress": "python.map.progress",
    "reduce": "python.map.reduction",
    "resident": "python.value.device_array",
    "scan": "python.map.reduction",
    "type_name": "engine.object_view",
    "KernelError": "python.hosted.work_item",
    "barrier": "python.hosted.work_item",
    "group_array": "python.hosted.work_item",
    "group_count": "python.hosted.work_item",
    "group_number": "python.hosted.work_item",
    "group_size": "python.hosted.work_item",
    "item": "python.hosted.work_item",
    "item_count": "python.hosted.work_item",
    "local_item": "python.hosted.work_item",
    "kernel": "python.group.kernel",
    "launch": "python.group.kernel",
    "atomic_add": "python.hosted.atomic_update",
    "atomic_and": "python.hosted.atomic_update",
    "atomic_compare_exchange": "python.hosted.atomic_update",
    "atomic_exchange": "python.hosted.atomic_update",
    "atomic_max": "python.hosted.atomic_update",
    "atomic_min": "python.hosted.atomic_update",
    "atomic_or": "python.hosted.atomic_update",
    "group_broadcast": "python.hosted.work_item",
    "group_max": "python.hosted.work_item",
    "group_min": "python.hosted.work_item",
    "group_scan": "python.hosted.work_item",
    "group_scan_before": "python.hosted.work_item",
    "group_sum": "python.hosted.work_item",
}
"""The module of each name that is not defined here."""

_OTHERS = ("jit", "njit", "vectorize", "guvectorize", "prange", "vmap", "pmap")
"""Names that other compilers of Python have."""

__all__ = [
    "ArrayView",
    "CallError",
    "DeviceArray",
    "Engine",
    "Execution",
    "FerryError",
    "HostFunction",
    "HostLog",
    "Instance",
    "KernelError",
    "MapInterrupted",
    "OutOfFuelError",
    "Program",
    "ProgramInterrupted",
    "ReplayError",
    "RunResult",
    "SourceError",
    "StructView",
    "TrapError",
    "UncaughtError",
    "UnsupportedError",
    "Verified",
    "VerifyError",
    "assemble",
    "atomic_add",
    "atomic_and",
    "atomic_compare_exchange",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "barrier",
    "compile",
    "disassemble",
    "explain",
    "export",
    "f32",
    "f64",
    "function",
    "group_array",
    "group_broadcast",
    "group_count",
    "group_max",
    "group_min",
    "group_number",
    "group_scan",
    "group_scan_before",
    "group_size",
    "group_sum",
    "host",
    "i32",
    "i64",
    "import_kernel",
    "item",
    "item_count",
    "kernel",
    "launch",
    "load",
    "local_item",
    "map",
    "map_into",
    "native_host",
    "progress",
    "read",
    "reduce",
    "resident",
    "run",
    "save",
    "scan",
    "type_name",
]


def __getattr__(name: str) -> object:
    """A public name, on its first use (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        advice = "; ferryvm.function compiles a Python function" if name in _OTHERS else ""
        raise AttributeError(f"module 'ferryvm' has no attribute {name!r}{advice}")
    import importlib

    value: object = getattr(importlib.import_module(f"ferryvm.{home}"), name)
    globals()[name] = value
    return value


def compile(
    text: str, file: str = "<string>", optimize: bool | None = None, language: str = "skiff"
) -> Program:
    """The program of a text, not verified yet; `file`: its name in messages.

    `optimize`: run the peephole; by default as the language does (Skiff does). Raises SourceError
    with every fault found, UnknownNameError for an unknown language.
    """
    if callable(text):
        raise TypeError(
            "compile takes the text of a program; ferryvm.function compiles a Python function"
        )
    from ferryvm.language import installed

    return installed().named(language).program(text, file, optimize)


def assemble(text: str, file: str = "<string>", optimize: bool = False) -> Program:
    """The program of an assembly text. Raises SourceError with every fault found."""
    return compile(text, file, optimize, "assembly")


def disassemble(program: Program) -> str:
    """Assembly text that assembles to the same program."""
    from ferryvm import asm

    return asm.disassemble(program)


def load(path: str | Path) -> Program:
    """The program in an image file (.fvm), not verified yet. Raises ImageError."""
    from ferryvm import image

    return image.load(path)


def save(program: Program, path: str | Path) -> None:
    """Write the image of a program. Raises ImageError where the file cannot be written."""
    from ferryvm import image

    image.save(program, path)


def read(path: str | Path, optimize: bool | None = None, language: str | None = None) -> Program:
    """The program in a file: an image (.fvm), or a text in a language, which its suffix determines.

    `optimize`: run the peephole over the code of a text; by default as the language does: for
    Skiff, and not for assembly, which should run as it is written. `language`: the language of the
    text, whatever the suffix. Raises FerryError if the file cannot be read or its text has faults.
    """
    from pathlib import Path

    from ferryvm.language import installed

    return installed().read(Path(path), optimize, language)


def run(program: Program, backend: str | None = None, fuel: int | None = None) -> RunResult:
    """Run a program from its start until it halts or `fuel` instructions have completed.

    `backend`: its name; without it the default policy selects backends.

    Raises VerifyError, TrapError, BackendError; ProgramInterrupted on Ctrl-C.
    """
    from ferryvm.engine import Engine

    return Engine(backend).start(program).run(fuel)
