# SPDX-License-Identifier: Apache-2.0
"""The LLVM module of the switch interpreter: two loops, one of which pays fuel."""

from __future__ import annotations

from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.cell import define_publish
from ferryvm_backends._llvm.environment import define_call
from ferryvm_backends._llvm.resumption import define_resume
from ferryvm_backends._llvm.slot_runner import define_slot_runner
from ferryvm_backends.switch.handler import SwitchHandlerBuilder
from ferryvm_backends.switch.symbol import (
    CALL,
    COUNTING,
    COUNTING_CALL,
    COUNTING_RESUME,
    PLAIN,
    RESUME,
    SLOT,
)


def build() -> tuple[ir.Module, bytes]:
    """The module with both loops; there are no notes."""
    module = ir.Module("ferry_switch")
    loops = ((PLAIN, CALL, RESUME, False), (COUNTING, COUNTING_CALL, COUNTING_RESUME, True))
    for name, call, resume, counting in loops:
        SwitchHandlerBuilder(module, name, counting).build_all()
        run = module.globals[name]
        assert isinstance(run, ir.Function)
        define_call(module, call, run)
        define_resume(module, resume, run)
    run = module.globals[PLAIN]
    assert isinstance(run, ir.Function)
    define_slot_runner(module, SLOT, run)
    define_publish(module)
    return module, b""
