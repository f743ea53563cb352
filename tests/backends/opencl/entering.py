# SPDX-License-Identifier: Apache-2.0
"""Programs, and entering the code of their regions without an engine."""

from __future__ import annotations

import ferryvm
from ferryvm.backend import Code, Interpreter
from ferryvm.engine.runnable import runnable
from ferryvm.machine.control import Status
from ferryvm.machine.entry import ENTRY
from ferryvm.machine.state import Machine
from ferryvm.region.region import Region, region
from ferryvm.registry import Registry
from ferryvm.verify import verify
from ferryvm_backends.opencl import OpenClBackend

from ...double.registry import registry
from ...heap_vector import on_heap

NAME = "kernels"
"""What the backend under test is called where an engine runs it."""


def whole(text: str) -> Region:
    """The whole of a Skiff program."""
    return region(verify(ferryvm.compile(on_heap(text))), "program")


def assembled(text: str) -> Region:
    """The whole of a program in assembly."""
    return region(verify(ferryvm.assemble(text)), "program")


def enter(code: Code, machine: Machine) -> Status:
    """Run code on a machine that stands at the region's entry."""
    return Status(ENTRY(code.address)(machine.address))


def named(backend: OpenClBackend) -> Registry:
    """Ours, with the backend under test beside them."""
    backend.name = NAME
    return registry(backend)


def ready(backend: OpenClBackend) -> Interpreter:
    """The backend, ready to run whole programs."""
    return runnable(named(backend), NAME)
