# SPDX-License-Identifier: Apache-2.0
"""Programs, and entering the code of their regions without an engine."""

from __future__ import annotations

import ctypes

import ferryvm
from ferryvm.backend import Code, Interpreter
from ferryvm.engine.runnable import runnable
from ferryvm.hooks import BackendEntry, hookimpl
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.region.region import Region, region
from ferryvm.registry import Registry
from ferryvm.verify import verify
from ferryvm_backends.opencl import OpenClBackend

NAME = "kernels"
"""What the backend under test is called where an engine runs it."""


def whole(text: str) -> Region:
    """The whole of a Skiff program."""
    return region(verify(ferryvm.compile(text)), "program")


def assembled(text: str) -> Region:
    """The whole of a program in assembly."""
    return region(verify(ferryvm.assemble(text)), "program")


def enter(code: Code, machine: Machine) -> Status:
    """Run code on a machine that stands at the region's entry."""
    function = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)(code.address)
    return Status(function(machine.address))


def registry(backend: OpenClBackend) -> Registry:
    """Ours, with the backend under test beside them."""

    class Plugin:
        @hookimpl
        def ferryvm_backends(self) -> list[BackendEntry]:
            return [BackendEntry(NAME, lambda: backend)]

    made = Registry()
    backend.name = NAME
    made.register(Plugin(), NAME)
    return made


def ready(backend: OpenClBackend) -> Interpreter:
    """The backend, ready to run whole programs."""
    return runnable(registry(backend), NAME)
