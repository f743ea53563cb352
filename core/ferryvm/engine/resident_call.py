# SPDX-License-Identifier: Apache-2.0
"""Calls of a function that does nothing but one launch, whose arrays may be on a device alone.

    frame ──> interlude ──> launch.test ──> all items on the device ──> a return, which is left out
                  │              │ no code for that, or an item left
                  └──────────────┴──> nothing has happened: False, and `Residency.refusal`

Interpreters and native code would read arrays whose elements the host lacks. So they run nothing
here but straight lines that access no element (`ferryvm.engine.launch_interlude`). A call that is
repeated runs none of it: its launch has what it had.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ferryvm.engine.interrupt import interruptible
from ferryvm.float_environment import call_in_ours
from ferryvm.machine.control import Status
from ferryvm.residency import DeviceElements, RepeatedRange, Residency

if TYPE_CHECKING:
    from ferryvm.engine.call import Calls
    from ferryvm.engine.installed_launch import InstalledLaunch
    from ferryvm.engine.launching import Launches
    from ferryvm.engine.target import Target


class RepeatedCall:
    """A call whose launch a device has run, prepared to run again without the frame of a call."""

    def __init__(
        self, calls: Calls, launches: Launches, launch: InstalledLaunch, range_: RepeatedRange
    ) -> None:
        self._calls, self._launches, self._launch, self._range = calls, launches, launch, range_

    @property
    def arrays(self) -> Sequence[int]:
        """As of its range."""
        return self._range.arrays

    def run(self, elements: Sequence[DeviceElements]) -> bool:
        """As of its range; False, too, if other code is installed now, or the machine is in use."""
        execution, busy, launch = self._calls.execution, self._calls.busy, self._launch
        try:
            del busy.free
        except AttributeError:  # another thread, or what a signal has interrupted
            return False
        try:
            execution.owner = threading.get_ident()
            execution.check_usable()
            if self._calls.stopped or execution.launches is not self._launches:
                return False
            if not self._launches.is_installed(launch):
                return False
            began = time.perf_counter()
            if not self._range.run(self._calls.machine, elements):
                return False
            launch.has_remained(self._range.items, time.perf_counter() - began)
            return True
        finally:
            execution.owner = 0
            busy.free = True


def call_resident(
    calls: Calls, target: Target, arguments: Sequence[object], residency: Residency
) -> bool:
    """True if all items of the launch in a function ran on a device, and what they stored is there,
    or in the machine's memory; False if it is as if the call had not been. The function has no
    result, and returns behind the launch. Raises CallError, and the exceptions of signal
    handlers."""

    def run() -> bool:
        machine, launches = calls.machine, calls.execution.launches
        residency.refusal = "its backend runs no launches on a device"
        if launches is None or launches.interlude is None or not launches.interlude.is_plain():
            return False
        launches.bind(machine.control)
        interlude = launches.interlude
        residency.refusal = "it does more than one launch"
        if interlude.run(machine) is not Status.PARALLEL:
            return False
        if not interlude.returns_behind(machine.control.pc):
            return False
        launch = launches.run_resident(machine, residency)
        if launch is not None and residency.again is not None:
            residency.call = RepeatedCall(calls, launches, launch, residency.again)
        return launch is not None

    def ended() -> bool:
        try:
            return call_in_ours(run)
        finally:  # or as if it had not been: a signal that has come is raised again
            calls.machine.control.status = Status.HALT

    def guarded() -> bool:
        return interruptible(calls.machine.control, ended)

    return calls.stand(target, arguments, guarded, otherwise=False)
