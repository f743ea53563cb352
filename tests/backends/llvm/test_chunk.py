# SPDX-License-Identifier: Apache-2.0
"""The native functions that threads of launches run."""

from __future__ import annotations

import ctypes

from ferryvm.machine.chunk import FINISH, ItemRange, ParkedThread, RangeWorker
from ferryvm_backends._llvm.chunk import chunk_loop


def test_a_launch_takes_back_no_worker_of_another_launch() -> None:
    """The thread that helped has ended its part, and is to help with another launch."""
    workers, other = (RangeWorker * 2)(), RangeWorker()
    parked = ParkedThread(worker=ctypes.addressof(other))
    helpers = (ctypes.c_void_p * 1)(ctypes.addressof(parked))
    range_ = ItemRange(running=2, helper_count=1)
    range_.workers, range_.helpers = ctypes.addressof(workers), ctypes.addressof(helpers)
    for number, worker in enumerate(workers):
        worker.range, worker.number = ctypes.addressof(range_), number
    FINISH(chunk_loop().end)(ctypes.addressof(workers[0]))
    assert parked.worker == ctypes.addressof(other)
    assert range_.running == 1
    assert other.status == 0
