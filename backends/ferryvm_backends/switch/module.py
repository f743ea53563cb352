# SPDX-License-Identifier: Apache-2.0
"""The LLVM module of the switch interpreter: two loops, one of which pays fuel."""

from __future__ import annotations

from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.cell import define_publish
from ferryvm_backends.switch.handler import SwitchHandlerBuilder
from ferryvm_backends.switch.symbol import COUNTING, PLAIN


def build() -> tuple[ir.Module, bytes]:
    """The module with both loops; there are no notes."""
    module = ir.Module("ferry_switch")
    SwitchHandlerBuilder(module, PLAIN, counting=False).build_all()
    SwitchHandlerBuilder(module, COUNTING, counting=True).build_all()
    define_publish(module)
    return module, b""
