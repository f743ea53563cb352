# SPDX-License-Identifier: Apache-2.0
"""Entering code without an engine."""

from __future__ import annotations

import ctypes

from ferryvm.backend import Code
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine, Snapshot


def enter(code: Code, machine: Machine) -> tuple[Status, Snapshot]:
    """Run code on a machine that stands at the region's entry."""
    function = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)(code.address)
    status = Status(function(machine.address))
    return status, machine.snapshot()
