# SPDX-License-Identifier: Apache-2.0
"""The vliw backend: regions as programs of a statically scheduled processor, which is simulated.

region ─ lift, passes ─> IR ─ lower, schedule, allocate ─> bundles ─ simulate ─> status, cycles
                                            ▲
                                   machine, from a file
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import ferryvm
from ferryvm.backend import BackendError, Capabilities, Options, Tiers
from ferryvm.compiler import RegionCompiler, Target
from ferryvm.cost import Cost
from ferryvm.errors import FerryError

if TYPE_CHECKING:
    from ferryvm_backends.vliw.machine.model import Machine

ENVIRONMENT = "FERRYVM_VLIW_MACHINE"
"""Names the machine, or its file, where nothing else does."""

_USUAL = "multi16"

LIMITS = Cost(instructions=2_000, words=10_000, frame=250)
"""Limits of a region; compiling a larger one takes minutes."""


TIERS = Tiers(quick=1, recompile_after=50_000_000)
"""Quick code is replaced after half a second of a machine at 100 MHz; good code of a kernel takes a
few seconds to make, beside the program."""


class VliwBackend(RegionCompiler):
    """A simulated processor."""

    name = "vliw"
    version = ferryvm.__version__
    capabilities = Capabilities(
        limits=LIMITS, devices=True, tiers=TIERS, references=True, known=True
    )
    stages = ("ir", "vliw")
    pictures = ("vliw",)

    def __init__(self, machine: Machine | None = None) -> None:
        """`machine`: the processor; if omitted, the one that the options or `ENVIRONMENT` name."""
        self._machine = machine

    def probe(self) -> str | None:
        from ferryvm_backends._llvm.native import processor_problem

        try:
            self._chosen("")
        except BackendError as error:
            return str(error).removeprefix("vliw: ")
        return processor_problem()

    def check_device(self, device: str) -> None:
        _found(device)

    def targets(self, options: Options) -> Sequence[Target[Any]]:
        from ferryvm_backends.vliw.target import MachineTarget

        named = options.device or ("" if self._machine is not None else usual())
        return [MachineTarget(self._chosen(options.device), named)]

    def report(self, all_metrics: Sequence[object]) -> Mapping[str, object]:
        from ferryvm_backends.vliw.report import report
        from ferryvm_backends.vliw.statistics import ProgramMetrics

        return report([each for each in all_metrics if isinstance(each, ProgramMetrics)])

    def _chosen(self, name: str) -> Machine:
        """Raises BackendError for a machine that is not there, or cannot be used."""
        if self._machine is not None and not name:
            return self._machine
        try:
            return _found(name or usual())
        except FerryError as error:
            first, *more = str(error).splitlines()
            rest = f" (and {len(more)} more)" if more else ""
            source = f" ({ENVIRONMENT})" if os.environ.get(ENVIRONMENT) and not name else ""
            raise BackendError(f"vliw: {first}{rest}{source}") from None


def usual() -> str:
    """The name or file of the machine that is taken where options name none."""
    return os.environ.get(ENVIRONMENT, "") or _USUAL


@functools.cache
def _found(name: str) -> Machine:
    from ferryvm_backends.vliw.machine.read import find

    return find(name)


BACKEND = VliwBackend()
