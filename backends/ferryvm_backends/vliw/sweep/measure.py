# SPDX-License-Identifier: Apache-2.0
"""Measurements of machine variants: the cost of each, and the time of a program on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ferryvm.backend import BackendError, Code, Options
from ferryvm.engine import Engine
from ferryvm.errors import FerryError
from ferryvm.failure import one_line
from ferryvm.hooks import BackendEntry, hookimpl
from ferryvm.region.region import Region
from ferryvm.registry import Registry
from ferryvm.verify import Verified
from ferryvm_backends import ferryvm_backends
from ferryvm_backends.vliw import VliwBackend
from ferryvm_backends.vliw.entry import VliwCode
from ferryvm_backends.vliw.machine.model import Machine
from ferryvm_backends.vliw.machine.read import judge
from ferryvm_backends.vliw.sweep.variant import Value, Variant


@dataclasses.dataclass(frozen=True)
class Metrics:
    """Metrics of a run."""

    cycles: int
    """All cycles: those of programs of the machine, and of moving memory to them and back."""
    transfer_cycles: int
    """The latter of them."""
    milliseconds: float
    """Of these cycles, at the machine's clock."""


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a variant."""

    settings: Mapping[str, Value]
    cost: float | None
    """None where it is no machine."""
    metrics: Metrics | None
    """None where the program could not be run on it."""
    reason: str = ""
    """The reason that there are none."""


def measure(
    program: Verified, variants: Iterable[Variant], arguments: Sequence[str] = ()
) -> Iterator[Result]:
    """The result of each variant, when it has been tried; `arguments`: the program's.

    Raises FerryError where the program ends in a trap, or otherwise than on the variant before,
    which is no machine's fault.
    """
    ended: tuple[object, str] | None = None
    for variant in variants:
        machine, faults = judge(variant.document)
        if machine is None:
            reason = "; ".join(str(fault) for fault in faults if not fault.is_warning)
            yield Result(variant.settings, None, None, reason)
            continue
        try:
            metrics, end = _run(program, machine, arguments)
        except BackendError as error:
            reason = one_line(str(error)).removeprefix(f"backend {VliwBackend.name!r}: ")
            yield Result(variant.settings, machine.cost, None, reason)
            continue
        if ended is not None and end != ended:
            raise FerryError(
                f"with {variant} the program ends otherwise than before: a fault of vliw"
            )
        ended = end
        yield Result(variant.settings, machine.cost, metrics)


def _run(
    program: Verified, machine: Machine, arguments: Sequence[str]
) -> tuple[Metrics, tuple[object, str]]:
    """Metrics of a run, and its end: its result's bits and its output.

    Raises BackendError for refused or lost code: the backend is required, nothing replaces it.
    """
    backend = _Recorder(machine)
    registry = Registry(discover=False)
    registry.register(backend, "sweep")
    engine = Engine(VliwBackend.name, arguments=arguments, registry=registry)
    result = engine.start(program).run()
    transfer = sum(code.totals.transfer_cycles for code in backend.codes)
    cycles = transfer + sum(code.totals.cycles for code in backend.codes)
    metrics = Metrics(cycles, transfer, cycles / machine.clock / 1e3)
    return metrics, (result.bits, result.output)


class _Recorder(VliwBackend):
    """The backend for one machine, in place of the usual one; it records its codes."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.codes: list[VliwCode] = []

    def compile(self, region: Region, options: Options) -> Code:
        code = super().compile(region, options)
        assert isinstance(code, VliwCode)
        self.codes.append(code)
        return code

    @hookimpl
    def ferryvm_backends(self) -> list[BackendEntry]:
        others = [entry for entry in ferryvm_backends() if entry.name != self.name]
        return [*others, BackendEntry(self.name, lambda: self)]


def front(results: Sequence[Result]) -> list[Result]:
    """The Pareto front, cheapest first: results without another one that is cheaper and at least as
    fast, or faster and at most as expensive."""
    ran = [one for one in results if one.metrics is not None and one.cost is not None]

    def key(one: Result) -> tuple[float, int]:
        assert one.cost is not None
        assert one.metrics is not None
        return one.cost, one.metrics.cycles

    found: list[Result] = []
    for one in sorted(ran, key=key):
        if not found or key(one)[1] < key(found[-1])[1] or key(one) == key(found[-1]):
            found.append(one)
    return found
