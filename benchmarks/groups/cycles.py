# SPDX-License-Identifier: Apache-2.0
"""Cycles of the cosine transform of 64 x 64 pixels in groups of 8 x 8 on simulated machines.

An item is two loops of eight multiply-adds, with barriers around. Cycles count only where code of
the machine does all of the launch: an interpreter runs what it leaves.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from benchmarks.benchmark import BenchmarkError
from benchmarks.groups.compiling import outer_launches
from benchmarks.groups.table import BY_NAME
from benchmarks.parallel.contender import launching
from benchmarks.peers.peer import MissingError
from benchmarks.vliw.simulation import VLIW, code_for, fatal, machine_of
from ferryvm.engine.journal import Attempt
from ferryvm.engine.observer import Observer

KERNEL = "dct"
SIZES = {"side": 64}
BOUND = 16_384
"""Cycles by the float units of multi16: 4,096 items, 16 multiplications each, four multipliers."""


@dataclasses.dataclass(frozen=True)
class Cycles:
    """What the kernel takes on a machine."""

    machine: str
    cycles: int | None = None
    missing: str = ""
    """The reason that there is no number."""

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        return {"cycles": self.cycles, "missing": self.missing}


def measure(machine: str) -> Cycles:
    """The cycles of one launch, which are the same each time."""
    try:
        with fatal():
            return Cycles(machine, _cycles(machine))
    except (BenchmarkError, MissingError) as error:
        return Cycles(machine, missing=str(error))


def _cycles(machine: str) -> int:
    sample = BY_NAME[KERNEL]
    observer, engine = Observer(transfers=True), launching(VLIW, threads=1, device=machine)
    observer.watch(engine)
    call = engine.instantiate(sample.program(SIZES)).exports["work"]
    work = sample.make(SIZES)
    expected = sample.oracle(work, SIZES)
    call(*work.fresh().arguments)  # compiles it
    details = [happening.detail for happening in observer.happenings]
    attempts = [each for each in details if isinstance(each, Attempt)]
    outer = [region.name for region in outer_launches(sample, SIZES)]
    code = code_for([each for each in attempts if each.region in outer], machine_of(machine))
    observer.transfers.clear()
    before, mine = code.totals.cycles, work.fresh()
    call(*mine.arguments)
    wrong = sample.difference([mine.array(position) for position in mine.results], expected)
    if wrong:
        raise BenchmarkError(wrong)
    stays = len(observer.transfers) + observer.dropped[VLIW]
    if stays != 1:
        raise MissingError(
            f"code for {machine} leaves its work to the interpreter: it is entered {stays:,} times"
        )
    return code.totals.cycles - before
