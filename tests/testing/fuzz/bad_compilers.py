# SPDX-License-Identifier: Apache-2.0
"""A plugin of compilers, all but one of which go wrong on some programs, for campaigns to find."""

from __future__ import annotations

import ctypes
import functools
import signal
import zlib

from ferryvm.backend import Activity, Code, Compiler, Options, RefusalError
from ferryvm.hooks import BackendEntry, hookimpl
from ferryvm.ir.lift import lift
from ferryvm.ir.passes.pipeline import checker
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.region.region import Region
from ferryvm.verify import Verified

NAMES = ("leaving", "forging", "deadly", "clumsy", "careless", "shy")

_NATIVE = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.POINTER(ControlBlock))


def is_hit_compiled(program: Verified) -> bool:
    """Whether a compiler goes wrong on a program: a few do, here and there."""
    return zlib.crc32(program.program.code.tobytes()) % 4 == 1


class LeavingCode(Code):
    """Code that leaves at once, which is always right, but for what harm it does before."""

    is_from_cache = False
    notes: dict[str, float] = {}  # noqa: RUF012 - nobody writes to it

    def __init__(self, harm: str) -> None:
        def run(pointer: ctypes._Pointer[ControlBlock]) -> int:
            control = pointer.contents
            if harm == "deadly":
                signal.raise_signal(signal.SIGSEGV)
            if harm == "forging":
                ctypes.c_uint64.from_address(control.stack + 16).value ^= 1  # a local of main
            control.status = Status.LEAVE
            return int(Status.LEAVE)

        self._function = _NATIVE(run)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def activity(self) -> Activity:
        return Activity()


def _leave_malformed(region: Region, options: Options) -> None:
    """Do what a faulty pass does: nothing is raised unless somebody verifies the IR."""
    module = lift(region, options.counting)
    module.root.blocks[-1].terminator = None
    checker(module, region.verified, options.check)()


class BadCompiler(Compiler):
    """Makes code that leaves at once; of the programs that are hit, other code or none."""

    version = "1"

    def __init__(self, name: str) -> None:
        self.name = name

    def compile(self, region: Region, options: Options) -> Code:
        if options.cache and options.check:
            raise ValueError("it would be kept on disk")
        if not is_hit_compiled(region.verified):
            return LeavingCode("")
        if self.name == "clumsy":
            raise KeyError("a register")
        if self.name == "careless":
            _leave_malformed(region, options)
            return LeavingCode("")
        if self.name == "shy":
            raise RefusalError("not this one")
        return LeavingCode(self.name)


@hookimpl
def ferryvm_backends() -> list[BackendEntry]:
    return [BackendEntry(name, functools.partial(BadCompiler, name)) for name in NAMES]
