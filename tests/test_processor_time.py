# SPDX-License-Identifier: Apache-2.0
"""What tests take of the processors: time of child processes that still run counts."""

from __future__ import annotations

import subprocess
import sys

from .processor_time import used

_BUSY = """
import time
while time.process_time() < 0.1:
    pass
print(flush=True)
input()
"""


def test_time_of_a_child_counts_once_while_it_runs_and_after_its_end() -> None:
    before = used()
    command = [sys.executable, "-S", "-c", _BUSY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        running = used()
        child.communicate(b"\n")
    ended = used()
    assert running - before > 0.05
    assert ended - running < 0.1
