# SPDX-License-Identifier: Apache-2.0
"""Each handler of the switch interpreter ends in a jump of its own to the next one.

With one jump that all share, a processor that predicts an indirect jump by its address alone takes
twice as long, and nothing else shows it.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys

import pytest

from ferryvm.isa import INSTRUCTIONS

# A process of its own: options of LLVM's code generator hold for a process.
_ASSEMBLY = """
from ferryvm_backends._llvm import build
from ferryvm_backends._llvm.codegen import target_machine
from ferryvm_backends.switch import module
print(target_machine().emit_assembly(build.optimised(module.build()[0], merge_tails=False)))
"""


@pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="reads x86-64 assembly"
)
def test_each_handler_of_switch_dispatches_by_itself() -> None:
    command = [sys.executable, "-c", _ASSEMBLY]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert len(re.findall(r"jmpq\s+\*", text)) >= len(INSTRUCTIONS)
