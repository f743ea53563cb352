# SPDX-License-Identifier: Apache-2.0
"""Looking for one planted fault of a compiler with what the project has to find it.

For each program the compiler's code is made with the fault and without it. Where it is the same text
nothing can show, and the next program is tried. Else the program is run as `ferry diff` runs it, the
whole of it compiled, counting and not, with the IR verifier between passes and the prover of schedules
on. What is found first is noted: a fault told by the verifier or the prover, a compiler that raises, or
a state that differs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ferryvm.backend import Backend, Compiler, Options
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
from .programs import MOST, program

MOST_INSTRUCTIONS = 25_000
"""After which a program is compared as it stands."""

PATIENCE = 60.0
"""Seconds that code may run; without a fault it takes milliseconds."""

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
    runs: int
    """Programs that were run for it: those whose code the fault changes."""


def register(registry: Registry) -> Registry:
    """A registry that has the backend `cc`, be its plugin installed or not."""
    if "cc" not in registry.names:
        sys.path.insert(0, str(CC))
        plugin = importlib.import_module("ferryvm_cc")
        if not hasattr(plugin, "ferryvm_backends"):
            raise AssertionError(f"{hookimpl} is in no plugin there")
        registry.register(plugin, "ferryvm-cc")
    return registry


def differ_of(backend: str) -> Differ:
    """Compares code of one compiler, of whole programs and kept nowhere, with the reference."""
    options = Chosen(optimize=3, background=False, required=True, cache=False)
    policy = Policy(rules=(Rule(backends=(Choice(backend, options),)),), whole_program=True)
    registry = MixedRegistry(policy)
    if backend == "cc":
        register(registry)
    return Differ([MIXED], "reference", registry, LIMITS, MOST_INSTRUCTIONS, patience=PATIENCE)


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


def _texts(backend: Backend, verified: Verified) -> list[str]:
    """What a compiler makes of a program, counting and not; what it raises stands for that."""
    assert isinstance(backend, Compiler)
    stage = {"llvm": "llvm", "vliw": "vliw", "opencl": "opencl", "cc": "c"}[backend.name]
    found = []
    for counting in (False, True):
        options = Options(optimize=3, counting=counting, cache=False)
        try:
            found.append(backend.show(region(verified, "program"), options, stage))
        except Exception as error:  # noqa: BLE001 - a faulty compiler may raise anything
            found.append(f"{type(error).__name__}: {error}")
    return found


def warm_up(backends: Iterable[str]) -> None:
    """Have everything built that compilers and interpreters build once."""
    for backend in backends:
        told = _told(differ_of(backend).compare(program(0)[1])[0])
        if told is not None:
            raise AssertionError(f"{backend} without a fault: {told}")


def search(fault: CompilerFault, most: int = MOST, first: int = 0) -> Find | None:
    """Look for a fault in programs from a number on; None if none of them shows it."""
    with checks():
        differ = differ_of(fault.backend)
        backend = differ.registry.get(fault.backend)
        runs = 0
        for number in range(first, most):
            name, verified = program(number)
            is_flag = fault.module.endswith(".compiler")
            right = [] if is_flag else _texts(backend, verified)
            with planted(fault):
                if not is_flag and _texts(backend, verified) == right:
                    continue
                runs += 1
                (comparison,) = differ.compare(verified)
            told = _told(comparison)
            if told is not None:
                return Find(number, name, *told, runs)
    return None


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
