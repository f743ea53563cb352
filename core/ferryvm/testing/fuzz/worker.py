# SPDX-License-Identifier: Apache-2.0
"""A worker of a campaign: a process that tries programs, which may crash it.

Its standard input is a line of JSON, the plan; then a line `FIRST END` for each stretch of trials
that it is dealt, and an empty one when the campaign is over and it is to end after the trial that
it is at. On its standard output it writes lines of JSON: `ready`, each finding as it is made,
`done` after each stretch. Its progress is in the notes, memory shared with the parent. If its input
ends without that, the parent has ended or wants no more: then the worker ends, with little delay.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import json
import os
import queue
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from ferryvm.testing.fuzz.notes import Notes
from ferryvm.testing.fuzz.plan import GRACE, CampaignPlan
from ferryvm.testing.fuzz.store import StoreError
from ferryvm.testing.fuzz.trial import Judge

Stretch = tuple[int, int]
"""First trial, and the one after the last."""


def main() -> None:
    """Work until the input ends; the only argument is the descriptor of the notes."""
    faulthandler.enable()  # also tells where it hangs: the parent ends it with SIGABRT
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when it is over
    plan = CampaignPlan.from_json(sys.stdin.readline())
    notes = Notes(int(sys.argv[1]), plan, is_new=False)
    stretches: queue.SimpleQueue[Stretch] = queue.SimpleQueue()
    over = threading.Event()
    # Not in the main thread, where each run has to be made ready for Ctrl-C.
    output = os.dup(1)
    os.dup2(2, 1)  # output of backends is not for the parent
    arguments = (plan, notes, output, stretches, over)
    thread = threading.Thread(target=_work, args=arguments, daemon=True)
    thread.start()
    for line in sys.stdin:
        if line == "\n":
            _finish(stretches, over)
        else:
            first, end = line.split()
            stretches.put((int(first), int(end)))
    _finish(stretches, over)
    thread.join(GRACE)
    os._exit(0)  # a thread that is in native code would keep the process


def _finish(stretches: queue.SimpleQueue[Stretch], over: threading.Event) -> None:
    over.set()
    stretches.put((0, 0))  # wakes readers that wait for more


def _work(
    plan: CampaignPlan,
    notes: Notes,
    output: int,
    stretches: queue.SimpleQueue[Stretch],
    over: threading.Event,
) -> None:
    """Run the trials of the stretches, until the campaign has ended."""
    try:
        judge = Judge(plan, notes)
        # Compilers make graphs of many objects that live as long as a trial: looking for cycles in
        # them now and then is enough, and saves a twentieth of the time.
        gc.freeze()
        gc.set_threshold(100_000, 20, 100)
        _send(output, {"ready": True})
        while not over.is_set():
            first, end = stretches.get()
            for number in range(first, end):
                if over.is_set():
                    break
                for finding in judge.judge(number):
                    _send(output, {"finding": finding.to_json()})
            is_large = _memory() > plan.memory
            _send(output, {"done": end, "unsupported": judge.reasons, "is_large": is_large})
        os._exit(0)
    except StoreError as error:
        _send(output, {"failed": str(error)})
        os._exit(1)
    except BaseException:  # noqa: BLE001 - it ends this thread, and has to end the process
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)


def _memory() -> int:
    """Bytes of memory that this process has in use; its peak if the system reports only that."""
    with contextlib.suppress(OSError):
        resident = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(resident) * resource.getpagesize()
    # On Linux this would be no less than the parent's when it made the process.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _send(output: int, message: dict[str, Any]) -> None:
    """Write a line at once, whole: the next action may end the process."""
    line = json.dumps(message).encode() + b"\n"
    try:
        while line:
            line = line[os.write(output, line) :]
    except BrokenPipeError:
        os._exit(0)  # the parent has ended


if __name__ == "__main__":
    main()
