# SPDX-License-Identifier: Apache-2.0
"""Looking for planted faults of collections with random programs, as `ferry fuzz` does: alone, then
with a collection at each boundary and each allocation.

    python -m tests.faults.collector_search [--programs N] [--json FILE]

prints how many are found and by which program; exit code 1 below 95 %.
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from ferryvm.backend import Artifact, Interpreter
from ferryvm.machine.collection import Collection, Request
from ferryvm.machine.control import Status
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.object_space import ObjectSpace
from ferryvm.machine.state import Machine
from ferryvm.registry import Registry
from ferryvm.testing import Schedule, Verdict
from ferryvm.testing.differential import Differ
from ferryvm.testing.generate import LIMITS, OBJECT_LIMITS, generate
from ferryvm.verify import Verified, verify
from ferryvm.wrapper import ArtifactWrapper, InterpreterWrapper

from ..double.registry import registry
from . import native_collector
from .collector import FAULTS, faulty
from .native_collector import NativeFault, address_of
from .object_space import SPACE_FAULTS
from .reference_map import MAP_FAULTS

SEED = 1
PROGRAMS = 2400
LEAST = 0.95
"""The part of the faults that is to be found."""

_INTERPRETER = "switch"
_MOST = 25_000
_LONGEST_MOVED, _MOVED = 3_000, 300
"""Instructions of the longest program that is moved at every boundary, and how many are."""

_FUNCTION = ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.POINTER(Request))


@dataclasses.dataclass(frozen=True, eq=False)
class CollectorFault:
    """A planted fault: in the collector, or in a class of the machine."""

    name: str
    about: str
    collector: Callable[[], int] | None = None
    """The address of the faulty collector."""
    space: type[ObjectSpace] | None = None
    memory: type[ObjectMemory] | None = None


def _in_python(fault: type[Collection]) -> CollectorFault:
    function = _FUNCTION(lambda request: faulty(fault, request.contents))
    _functions.append(function)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return CollectorFault(_name(fault), fault.__doc__ or "", lambda: address)


_functions: list[object] = []


def _name(fault: type) -> str:
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in fault.__name__)[1:]


def _in_space(fault: type[ObjectSpace | ObjectMemory]) -> CollectorFault:
    name, about = _name(fault), fault.__doc__ or ""
    if issubclass(fault, ObjectSpace):
        return CollectorFault(name, about, space=fault)
    return CollectorFault(name, about, memory=fault)


def _in_native_code(fault: NativeFault) -> CollectorFault:
    return CollectorFault(fault.name, fault.about, lambda: address_of(fault))


def faults() -> list[CollectorFault]:
    """All planted faults of collections."""
    found = [_in_python(fault) for fault in FAULTS]
    found += [_in_space(fault) for fault in (*SPACE_FAULTS, *MAP_FAULTS)]
    return found + [_in_native_code(fault) for fault in native_collector.FAULTS]


class Planted(InterpreterWrapper):
    """An interpreter whose machines are collected with a fault; without one it has no native
    collector."""

    def __init__(self, inner: Interpreter, name: str, fault: CollectorFault | None) -> None:
        super().__init__(inner)
        self.name, self._fault = name, fault

    def wrapped(self, program: Verified, artifact: Artifact) -> Artifact:
        return _Artifact(artifact, self._fault)


class _Artifact(ArtifactWrapper):
    def __init__(self, inner: Artifact, fault: CollectorFault | None) -> None:
        super().__init__(inner)
        self._fault = fault

    def collector(self) -> int | None:
        if self._fault is None or self._fault.collector is None:
            return None
        return self._fault.collector()

    def enter(self, machine: Machine, counting: bool) -> Status:
        fault, objects = self._fault, machine.objects
        if fault is not None and objects is not None:
            if fault.memory is not None:
                objects.__class__ = fault.memory
            if fault.space is not None:
                objects.space.__class__ = fault.space
        return super().enter(machine, counting)


class Find(NamedTuple):
    """How a fault was found."""

    program: int
    """Its number; the fault was looked for in as many before."""
    schedule: str
    field: str
    """The field that differs; `crash` where the process ended."""


class CollectorSearch:
    """Looks for faults with the programs of a seed; each in a child process, since it may crash."""

    def __init__(self, numbers: Iterable[int], seed: int = SEED) -> None:
        made = ((number, verify(generate(seed, number))) for number in numbers)
        self._programs = [(n, program) for n, program in made if program.program.types]
        inner = Registry().get(_INTERPRETER)
        assert isinstance(inner, Interpreter)
        self._inner = inner

    def search(self, fault: CollectorFault | None) -> Find | None:
        """The first find of a fault; None if no program shows it."""
        receiver, sender = multiprocessing.Pipe(duplex=False)
        context = multiprocessing.get_context("fork")
        child = context.Process(target=self._report, args=(fault, sender))
        child.start()
        sender.close()
        latest = None
        try:
            while True:
                message = receiver.recv()
                if isinstance(message, Find) or message is None:
                    return message
                latest = Find(*message, "crash")
        except EOFError:
            return latest
        finally:
            child.join()
            receiver.close()

    def _report(self, fault: CollectorFault | None, sender: Connection) -> None:
        sys.stderr.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        sender.send(self._find(fault, lambda number, schedule: sender.send((number, schedule))))
        os._exit(0)

    def _find(
        self, fault: CollectorFault | None, progress: Callable[[int, str], None]
    ) -> Find | None:
        planted = [Planted(self._inner, "planted", fault), Planted(self._inner, "sound", None)]
        backends = registry(*planted, name="planted faults")
        differs = [
            Differ(
                ["planted"], "sound", backends, dataclasses.replace(LIMITS, objects=limit), _MOST
            )
            for limit in OBJECT_LIMITS
        ]
        for number, program in self._programs:
            differ = differs[number % len(differs)]
            expected = differ.finish(differ.start(program))
            schedules = [Schedule.NONE]
            if expected.instructions <= _LONGEST_MOVED and number < _MOVED:
                schedules.append(Schedule.COLLECT)
            for schedule in schedules:
                progress(number, schedule.value)
                try:
                    found = differ.compare(program, schedule, number, expected=expected)
                except ValueError as error:  # a copy of a state whose objects are damaged
                    return Find(number, schedule.value, str(error))
                for one in found:
                    if one.verdict is not Verdict.AGREE:
                        field = one.difference.field if one.difference else one.verdict.value
                        return Find(number, schedule.value, field)
        return None


def main() -> int:
    """Search, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=PROGRAMS)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    wanted = faults()
    search = CollectorSearch(range(chosen.programs))
    finds = {}
    for fault in wanted:
        finds[fault.name] = find = search.search(fault)
        print(f"{fault.name:40} {find or 'not found'}", flush=True)
    count = sum(find is not None for find in finds.values())
    print(f"{count} of {len(wanted)} ({count / len(wanted):.1%}) in {chosen.programs} programs")
    if chosen.json is not None:
        entries = {
            fault.name: {"about": fault.about, "find": finds[fault.name]} for fault in wanted
        }
        chosen.json.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    return int(count < LEAST * len(wanted))


if __name__ == "__main__":
    raise SystemExit(main())
