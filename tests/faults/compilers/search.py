# SPDX-License-Identifier: Apache-2.0
"""Looking for one planted fault of a compiler with what the project has to find it.

For each program the compiler's code is made with the fault and without it, with the IR verifier
between passes and the prover of schedules on. Where it is the same text nothing can show, and the
next program is tried. Else the program is run as `ferry diff` runs it, the whole of it compiled,
counting and not. What is found first is noted: a fault told by the verifier or the prover, a
compiler that raises, or a state that differs. What is made without a fault is kept for the next
one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ferryvm.backend import Compiler, Forcing, Options
from ferryvm.engine.runnable import MIXED
from ferryvm.hooks import hookimpl
from ferryvm.ir.passes.pipeline import ENVIRONMENT as CHECK_IR
from ferryvm.policy import Choice, Policy, Rule
from ferryvm.policy import Options as Chosen
from ferryvm.region.region import region
from ferryvm.registry import Registry
from ferryvm.testing import Comparison, Differ, Verdict
from ferryvm.testing.generate import LIMITS
from ferryvm.testing.mixed import MixedRegistry
from ferryvm.verify import Verified
from ferryvm_backends.vliw.prove import ENVIRONMENT as PROVE

from .planting import CompilerFault, planted
from .programs import MOST, Origin, count, program

MOST_INSTRUCTIONS = 25_000
"""After which a program is compared as it stands."""

PATIENCE = 20.0
"""Seconds after which compiled code that still runs is stopped: then the fault is found. Without
one the code of each of these programs runs for milliseconds."""

_FEW = 10
"""Faults: most are found in one of the first programs, and code of the others would never be looked
at."""

CC = Path(__file__).resolve().parents[3] / "plugins" / "ferryvm-cc" / "src"

TOOLS = (
    "IR verifier",
    "prover of schedules",
    "state differs",
    "compiler raises",
    "does not end",
    "process dies",
)


@dataclasses.dataclass(frozen=True)
class Find:
    """How a fault was found."""

    number: int
    """The program's number, from 0."""
    program: str
    tool: str
    """One of `TOOLS`."""
    said: str
    """The first field that differs, or what was raised."""


def register(registry: Registry) -> Registry:
    """A registry that has the backend `cc`, be its plugin installed or not."""
    if "cc" not in registry.names:
        sys.path.insert(0, str(CC))
        plugin = importlib.import_module("ferryvm_cc")
        if not hasattr(plugin, "ferryvm_backends"):
            raise AssertionError(f"{hookimpl} is in no plugin there")
        registry.register(plugin, "ferryvm-cc")
    return registry


def differ_of(backend: str, patience: float = PATIENCE, in_loops: bool = False) -> Differ:
    """Compares code of one compiler, kept nowhere, with the reference: of whole programs, or of
    loops, each entered where it is reached first."""
    options = Chosen(optimize=3, background=False, required=True, cache=False)
    rules = (Rule(backends=(Choice(backend, options),)),)
    policy = Policy(rules=rules, whole_program=not in_loops)
    registry = MixedRegistry(policy)
    if backend == "cc":
        register(registry)
    forcing = frozenset({Forcing.HOT} if in_loops else ())
    return Differ(
        [MIXED], "reference", registry, LIMITS, MOST_INSTRUCTIONS, forcing, patience=patience
    )


@contextlib.contextmanager
def checks() -> Iterator[None]:
    """Have compilers check what they make between steps."""
    before = {name: os.environ.get(name) for name in (CHECK_IR, PROVE)}
    os.environ.update(dict.fromkeys(before, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@functools.cache
def _registry() -> Registry:
    return register(Registry())


def _stage(fault: CompilerFault) -> str | None:
    """What of a compiler shows whether a fault changes its code; None if nothing does."""
    if fault.module.endswith(".compiler"):
        return None  # flags of a C compiler
    if fault.module.startswith("ferryvm.ir.") and not fault.module.startswith("ferryvm.ir.c."):
        return "ir"  # what is made of that need not be looked at
    return {"cc": "c"}.get(fault.backend, fault.backend)


@functools.lru_cache(maxsize=4096)
def _right(backend: str, stage: str, origin: Origin, number: int) -> list[str]:
    """What a compiler makes of a program without a fault."""
    return texts(backend, stage, program(origin, number)[1])


def texts(backend: str, stage: str, verified: Verified) -> list[str]:
    """What a compiler makes of a program, not counting and counting; what it raises stands for
    that."""
    compiler = _registry().get(backend)
    assert isinstance(compiler, Compiler)
    found = []
    for counting in (False, True):
        options = Options(optimize=3, counting=counting, cache=False)
        try:
            found.append(compiler.show(region(verified, "program"), options, stage))
        except Exception as error:  # noqa: BLE001 - a faulty compiler may raise anything
            found.append(f"{type(error).__name__}: {error}")
    return found


def make_right(faults: Iterable[CompilerFault], origin: Origin, most: int) -> None:
    """Have the code without a fault at hand, in this process and those forked from it, for each
    compiler and stage that more than a few faults are in."""
    wanted = Counter((fault.backend, _stage(fault)) for fault in faults)
    with checks():
        for (backend, stage), faulty in wanted.items():
            if stage is not None and faulty > _FEW:
                for number in range(count(origin, backend, most)):
                    _right(backend, stage, origin, number)


def warm_up(backends: Iterable[str]) -> None:
    """Have everything built that compilers and interpreters build once."""
    for backend in backends:
        differ = differ_of(backend, patience=300.0)  # it may build a simulator in C
        told = _told(differ.compare(program(Origin.BY_HAND, 0)[1])[0])
        if told is not None:
            raise AssertionError(f"{backend} without a fault: {told}")


def search(
    fault: CompilerFault,
    origin: Origin,
    most: int = MOST,
    first: int = 0,
    progress: Callable[[], object] = lambda: None,
) -> tuple[Find | None, int]:
    """What shows a fault, of the programs from a number on, and how many were run for it.

    `progress` is called before each program.
    """
    with checks():
        differ, stage = differ_of(fault.backend, in_loops=fault.in_loops), _stage(fault)
        runs = 0
        for number in range(first, count(origin, fault.backend, most)):
            progress()
            name, verified = program(origin, number)
            right = stage and _right(fault.backend, stage, origin, number)
            with planted(fault):
                if stage and right:
                    wrong = texts(fault.backend, stage, verified)
                    changed = [a != b for a, b in zip(right, wrong, strict=True)]
                    if not any(changed):
                        continue
                    differ.form = None if all(changed) else changed[1]
                runs += 1
                (comparison,) = differ.compare(verified)
            told = _told(comparison)
            if told is not None:
                return Find(number, name, *told), runs
    return None, runs


def _told(comparison: Comparison) -> tuple[str, str] | None:
    """Which tool tells of a fault, and what; None if none does."""
    difference = comparison.difference
    if comparison.verdict is Verdict.DISAGREE and difference is not None:
        if difference.field != "failure":
            return "state differs", difference.field
        failure = difference.right
    elif comparison.verdict is Verdict.UNSUPPORTED and "it raised" in (comparison.reason or ""):
        failure = str(comparison.reason).split("it raised", 1)[1]
    else:
        return None
    if "still running" in failure:
        return "does not end", ""
    if "malformed IR" in failure:
        return "IR verifier", failure.split(" (")[0].rsplit(": ", 1)[-1][:70]
    name = next((word.strip(":,()") for word in failure.split() if "Error" in word), failure[:60])
    said = failure.split(f"{name}: ", 1)[-1].split(" (")[0].rsplit(": ", 1)[-1][:70]
    match name:
        case "IrError":
            return "IR verifier", said
        case "ScheduleError":
            return "prover of schedules", said
    return "compiler raises", name
