# SPDX-License-Identifier: Apache-2.0
"""The native loop that performs a driver's host calls, bound to its machine.

The driver performs the first calls by itself: each call site is known to the loop once the driver
has checked and seen it. See `ferryvm.machine.host_loop`.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from array import array
from collections.abc import Callable

from ferryvm.backend import DirectEntry
from ferryvm.machine.control import EXIT_ID, FP, PC, SP
from ferryvm.machine.host_loop import HOST_LOOP, NO_PC, ROWS, CallRow, HostLoopRequest
from ferryvm.machine.state import Machine


@functools.cache
def is_possible() -> bool:
    """True if native code may call Python: in CPython with an interpreter lock."""
    return sys.implementation.name == "cpython" and "t" not in sys.abiflags


class HostLoop:
    """The loop of a driver."""

    def __init__(
        self,
        address: int,
        machine: Machine,
        performing: list[Callable[[], None]],
        drives: array[int],
    ) -> None:
        """`address`: a `HOST_LOOP`; `performing`: functions that perform calls, by import; `drives`:
        a word that each drive of the machine changes."""
        self._function = HOST_LOOP(address)
        self._machine, self._owned = machine, (performing, drives)
        self._words = machine.memory.control_words
        self._halves = machine.memory.control_halves
        self._rows = array("Q", [NO_PC, 0, 0] * ROWS)
        self._request = HostLoopRequest(
            control=machine.address,
            performing=id(performing),
            rows=self._rows.buffer_info()[0],
            stack_words=machine.memory.stack_words,
            drives=drives.buffer_info()[0],
        )
        self._address = ctypes.addressof(self._request)

    def bind(self, direct: DirectEntry, counting: bool) -> Callable[[], int]:
        """The function that runs the machine by a direct entry and performs its calls; it returns
        the status, as `HOST_LOOP`. Valid until the machine is entered otherwise."""
        request, objects = self._request, self._machine.objects
        request.run, request.counting = direct.address, counting
        request.resume = 0 if objects is None else direct.resumption
        if objects is not None:
            request.map = ctypes.addressof(objects.items.addresses)
        return functools.partial(self._function, self._address)

    @property
    def has_failed(self) -> bool:
        """True if the exception that the function raised is that of a host call."""
        return bool(self._request.failed)

    def learn(self) -> None:
        """Perform the call at which the machine is in the loop next time; its state was checked."""
        words = self._words
        pc, number = words[PC], self._halves[EXIT_ID]
        at = pc % ROWS * len(CallRow)
        self._rows[at : at + len(CallRow)] = array("Q", [pc, words[SP] - words[FP], number])
