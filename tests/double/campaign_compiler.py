# SPDX-License-Identifier: Apache-2.0
"""A plugin of compilers, all but one of which go wrong on some programs, for campaigns to find."""

from __future__ import annotations

import ctypes
import functools
import signal

from ferryvm.backend import Code, Compiler, Options, RefusalError
from ferryvm.hooks import BackendEntry, hookimpl
from ferryvm.ir.lift import lift
from ferryvm.ir.passes.pipeline import checker
from ferryvm.machine.control import ControlBlock
from ferryvm.region.region import Region

from .campaign import is_hit
from .code import PythonCode, leave

NAMES = ("leaving", "forging", "deadly", "clumsy", "careless", "shy")

TURN = 1
"""Compilers go wrong on other programs than interpreters."""


def _leaving(harm: str) -> Code:
    """Code that leaves at once, which is always right, but for what harm it does before."""

    def act(control: ControlBlock) -> int:
        if harm == "deadly":
            signal.raise_signal(signal.SIGSEGV)
        if harm == "forging":
            ctypes.c_uint64.from_address(control.stack + 16).value ^= 1  # a local of main
        return leave(control)

    return PythonCode(act)


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
        if not is_hit(region.verified, TURN):
            return _leaving("")
        if self.name == "clumsy":
            raise KeyError("a register")
        if self.name == "careless":
            _leave_malformed(region, options)
            return _leaving("")
        if self.name == "shy":
            raise RefusalError("not this one")
        return _leaving(self.name)


@hookimpl
def ferryvm_backends() -> list[BackendEntry]:
    return [BackendEntry(name, functools.partial(BadCompiler, name)) for name in NAMES]
