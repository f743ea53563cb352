# SPDX-License-Identifier: Apache-2.0
"""Planted faults in native code: the switch interpreter, woven with one fault.

    python -m tests.faults.native FAULT FILE [--quickly]      builds it, in a process of its own

A build takes seconds; whoever wants one names the folder in which it is kept. Quick code takes a
tenth of that to build, and several times as long to run.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path

from ferryvm.atomic_file import replace_file
from ferryvm.backend import Artifact, Interpreter
from ferryvm.errors import FerryError
from ferryvm.isa import Instruction
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.verify import Verified
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.build import compile_module, compile_quickly
from ferryvm_backends._llvm.handler import Registers
from ferryvm_backends._llvm.loader import NativeCode
from ferryvm_backends._llvm.native import load
from ferryvm_backends.switch.handler import SwitchHandlerBuilder
from ferryvm_backends.switch.symbol import COUNTING, PLAIN

from .fault import Fault

NATIVE = (
    "i64-shift-count-not-masked",
    "extend-32-by-zeros",
    "i32-high-half-not-zero",
    "remainder-with-the-divisors-sign",
    "nan-of-an-operand-kept",
    "half-rounded-away",
    "address-wraps",
    "index-at-the-length",
    "jump-table-of-signed-index",
    "locals-not-cleared",
    "fuel-paid-twice-at-host",
    "static-kept-between-entries",
)
"""Faults that the slow job plants natively too."""

ROOT = Path(__file__).resolve().parents[2]

_QUICKLY = "--quickly"


class _Weaver(SwitchHandlerBuilder):
    """Weaves faulty meanings."""

    fault: Fault

    def build_handler(self, group: Sequence[Instruction], registers: Registers) -> None:
        super().build_handler([self.fault.row(row) for row in group], registers)


def build(fault: Fault, quickly: bool) -> bytes:
    """Object code of the switch interpreter with a fault."""
    weaver = fault.emitter(_Weaver)
    weaver.fault = fault
    module = ir.Module("ferry_switch_faulty")
    weaver(module, PLAIN, counting=False).build_all()
    weaver(module, COUNTING, counting=True).build_all()
    return compile_quickly(module) if quickly else compile_module(module, merge_tails=False)


@functools.cache
def _code(name: str, folder: Path, quickly: bool) -> NativeCode:
    file = folder / name
    if not file.exists():
        command = [sys.executable, "-m", "tests.faults.native", name, str(file)]
        command += [_QUICKLY] * quickly
        subprocess.run(command, cwd=ROOT, check=True)
    return load(file.read_bytes())


class _NativeArtifact(Artifact):
    """The program's own code array, as the switch backend has it."""

    def __init__(self, code: NativeCode, verified: Verified) -> None:
        self._code = array("Q", verified.program.code.tobytes())
        self._plain, self._counting = code.function(PLAIN), code.function(COUNTING)

    def enter(self, machine: Machine, counting: bool) -> Status:
        machine.control.code, _ = self._code.buffer_info()
        run: Callable[[int], None] = self._counting if counting else self._plain
        run(machine.address)
        return machine.status


class NativeFaultyBackend(Interpreter):
    """The switch backend with a fault."""

    version = "1"

    def __init__(self, fault: Fault, folder: Path, quickly: bool = False) -> None:
        """`folder`: where its native code is, or is put when it is first needed."""
        if not fault.native:
            raise FerryError(f"fault {fault.name!r} cannot be planted in native code")
        self.name, self._fault, self._folder = fault.name, fault, folder
        self._quickly = quickly

    def prepare(self, program: Verified) -> Artifact:
        return self._fault.artifact(_NativeArtifact(self.build(), program))

    def build(self) -> NativeCode:
        """The interpreter with the fault, built if it is not there."""
        return _code(self.name, self._folder, self._quickly)


if __name__ == "__main__":
    from .table import by_name

    (named,) = by_name([sys.argv[1]])
    replace_file(Path(sys.argv[2]), build(named, _QUICKLY in sys.argv[3:]))
