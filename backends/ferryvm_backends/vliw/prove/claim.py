# SPDX-License-Identifier: Apache-2.0
"""Claims of a schedule about itself, and the error of a wrong schedule."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ferryvm.errors import FerryError
from ferryvm_backends.vliw.code.operation import MachineBlock, Register
from ferryvm_backends.vliw.code.program import Read


@dataclasses.dataclass(frozen=True)
class Claim:
    """The places in the program of the blocks and registers of the code."""

    places: dict[MachineBlock, int]
    """The first bundle of each block."""
    numbers: dict[Register, Read]
    """The place of each register that is live at the start of a block; others may be claimed,
    too."""

    def of(self, copies: Mapping[MachineBlock, MachineBlock]) -> Claim:
        """Of the copies of blocks alone."""
        return Claim({copy: self.places[block] for block, copy in copies.items()}, self.numbers)


class ScheduleError(FerryError):
    """A program is not equivalent to its code, or exceeds the machine's resources."""

    def __init__(self, program: str, bundle: int, said: str, *, block: str = "", cycle: int = -1):
        """`bundle`: its number, or -1; `block` and `cycle`: where it was found from, if from
        one."""
        self.program, self.bundle, self.block, self.cycle = program, bundle, block, cycle
        block_exit = f", cycle {cycle} of block {block}" if block else ""
        super().__init__(f"{program}: bundle {bundle}{block_exit}: {said}")
