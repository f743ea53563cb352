# SPDX-License-Identifier: Apache-2.0
"""How often each bundle of a program was issued: what the simulator counts and then sums up."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ferryvm_backends.vliw.enter import VliwCode
from ferryvm_backends.vliw.simulate import native


class Issues:
    """Counts of the bundles of a code, from now on."""

    def __init__(self, code: VliwCode) -> None:
        self.code = code
        self.counts = np.zeros(len(code.program.bundles), np.uint64)
        program: Any = code._native
        simulate, kind = program._run, ctypes.c_uint64 * len(self.counts)

        def counted(address: int) -> int:
            ended: int = simulate(address)
            frame = native._Frame.from_address(address)
            self.counts += np.ctypeslib.as_array(kind.from_address(frame.counts))
            return ended

        program._run = counted

    def clear(self) -> None:
        """Begin again."""
        self.counts[:] = 0

    def between(self, begin: int, end: int) -> int:
        """Cycles in the bundles from one up to another."""
        return int(self.counts[begin:end].sum())
