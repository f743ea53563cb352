# SPDX-License-Identifier: Apache-2.0
"""Milliseconds of processor time in which a backend compiles the launches of a kernel, each with
the groups inside."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.groups.sample import Sample, Sizes
from benchmarks.measure import interleave, median
from benchmarks.peers.peer import MissingError
from ferryvm.backend import BackendError, Compiler, Options
from ferryvm.region.call import call_graph
from ferryvm.region.launch import CALL_DISTANCE
from ferryvm.region.region import Region, RegionKind, regions
from ferryvm.registry import Registry
from ferryvm.verify import verify

BACKENDS = ("llvm", "vliw")

_LARGE = re.compile(r"launch .* in [23] dimensions/launch\.2")


@dataclasses.dataclass
class Compilation:
    """What compiling a kernel for a backend takes."""

    backend: str
    kernel: str
    milliseconds: list[float] = dataclasses.field(default_factory=list)
    """Of each round: of the launch that takes longest."""
    missing: str = ""
    """The reason that it is not compiled."""

    @property
    def median(self) -> float | None:
        """The median of the rounds."""
        return median(self.milliseconds) if self.milliseconds else None

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        return {"milliseconds": self.milliseconds, "missing": self.missing}


def outer_launches(sample: Sample, sizes: Sizes) -> list[Region]:
    """The launches of a kernel that are not inside of items of others, of a program that was just
    verified: nothing about it is known yet. Of those of several dimensions without the loop for more
    than 2^31 items."""
    verified = verify(sample.program(sizes))
    launches = [each for each in regions(verified) if each.kind is RegionKind.LAUNCH]
    code = verified.program.code
    items = [code.immediates[each.entry + CALL_DISTANCE] for each in launches]
    inside = set(call_graph(verified).reached(items))
    outer = [each for each in launches if each.function not in inside]
    return [each for each in outer if not _LARGE.fullmatch(each.name)]


def measure(
    samples: Sequence[Sample], rounds: int, progress: Callable[[str], None]
) -> list[Compilation]:
    """A row for each kernel and backend, in interleaved rounds. What a process does once, when a
    backend compiles first, is no part of it."""
    found: dict[tuple[str, str], Compilation] = {}
    tasks: dict[tuple[str, str], Callable[[], float]] = {}
    for backend in BACKENDS:
        for sample in samples:
            found[backend, sample.name] = row = Compilation(backend, sample.name)
            try:
                compiler = _compiler(backend)
                _slowest(compiler, sample)
            except (MissingError, BackendError) as error:
                row.missing = str(error)
                progress(f"{sample.name}: {backend} does not compile it: {error}")
                continue
            tasks[backend, sample.name] = lambda c=compiler, s=sample: _slowest(c, s)
    for key, milliseconds in interleave(tasks, rounds, {}):
        found[key].milliseconds.append(milliseconds)
        progress(f"{key[1]}: {key[0]} compiles it in {milliseconds:.1f} ms")
    return list(found.values())


def _compiler(name: str) -> Compiler:
    compiler = Registry().get(name)
    assert isinstance(compiler, Compiler)
    reason = compiler.probe()
    if reason is not None:
        raise MissingError(reason)
    return compiler


def _slowest(compiler: Compiler, sample: Sample) -> float:
    spent = []
    for region in outer_launches(sample, sample.full):
        began = time.process_time()
        compiler.compile(region, Options(cache=False))
        spent.append(1e3 * (time.process_time() - began))
    return max(spent)
