# SPDX-License-Identifier: Apache-2.0
"""Each handler of the switch interpreter ends in a jump of its own to the next one.

With one jump that all share, a processor that predicts an indirect jump by its address alone takes
twice as long, and nothing else shows it.
"""

from __future__ import annotations

import platform
import re

import pytest

from ferryvm import cache
from ferryvm.isa import INSTRUCTIONS
from ferryvm_backends._llvm import cache_entry, native

PACKAGE = "ferryvm_backends.switch"

JUMP = re.compile(rb"\xff[\x24\x64\xa4]|\xff[\xe0-\xe7]")
"""`jmp *table(base, index, 8)`, or `jmp *register`. Two bytes that are something else by chance are
one in ten thousand."""

LOOPS = 2
"""Functions with all handlers: one counts instructions."""


@pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="reads x86-64 code"
)
def test_each_handler_of_switch_dispatches_by_itself() -> None:
    # The code that runs: the process that starts first has built it.
    entry = cache.Entry("switch", native.key(PACKAGE))
    content = entry.get(lambda: native.build_in_process(PACKAGE, False), cache_entry.fault)
    _, code = cache_entry.unpacked(content)
    # The few handlers that end a program dispatch nothing.
    assert len(JUMP.findall(code)) >= 0.95 * LOOPS * len(INSTRUCTIONS)
