# SPDX-License-Identifier: Apache-2.0
"""Memory that ends at guard pages shows accesses past its end; native backends make none."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import subprocess
import sys

import pytest

import ferryvm
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.verify import verify

TIGHT = Limits(stack=1032, heap=4000, first_heap=0, is_tight=True)


@pytest.mark.parametrize("segment", ["statics", "stack", "heap"])
def test_the_first_byte_past_a_segment_cannot_be_read(segment: str) -> None:
    memory = Machine(verify(ferryvm.compile("(define x 1) (set! x 2) x")), TIGHT).memory
    view = getattr(memory, segment)
    end = getattr(memory, f"{segment}_address") + view.nbytes
    assert ctypes.string_at(end - 1, 1)
    child = os.fork()
    if child == 0:
        faulthandler.disable()  # its report would look like a crash of the tests
        ctypes.string_at(end, 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGSEGV


def test_native_backends_access_nothing_past_the_end_of_a_segment() -> None:
    command = [sys.executable, "-m", "tests.fuzz.tight", "--programs=12"]
    done = subprocess.run(
        [*command, "--backends=switch,threaded"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("12 programs in 2 layouts: agree 48, ")
