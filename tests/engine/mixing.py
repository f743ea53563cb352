# SPDX-License-Identifier: Apache-2.0
"""What the tests of mixed execution share: programs, policies, what happened in a run."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable

import ferryvm
from ferryvm.backend import Forcing
from ferryvm.engine import Engine, Execution
from ferryvm.engine.journal import Event, Journal, Placement
from ferryvm.engine.mixed import Mixed, MixedArtifact
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Snapshot
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.program import Program
from ferryvm.registry import Registry

CALLED_NEST = ferryvm.compile("""
(define total 0)
(define (sum)
  (define i 0)
  (while (< i 5)
    (let ((j 0)) (while (< j 9) (set! total (+ total (* i j))) (set! j (+ j 1))))
    (set! i (+ i 1))))
(sum) (sum) (sum) (sum)
total""")
"""A nest in a function that is called four times; its inner loop gets hot first."""

NEST_OF_THREE = ferryvm.compile("""
(define total 0)
(define i 0)
(while (< i 200)
  (let ((j 0)) (while (< j 5) (set! total (+ total (* i j))) (set! j (+ j 1))))
  (let ((k 0)) (while (< k 2) (set! total (- total k)) (set! k (+ k 1))))
  (set! i (+ i 1)))
total""")
"""A nest whose head comes often, with two loops in it."""

LONG_AT_THE_END = ferryvm.compile("""
(define total 0)
(define i 0)
(while (< i 40)
  (let ((j 0))
    (while (< j (if (= i 39) 3000 2)) (set! total (+ total (* i j))) (set! j (+ j 1))))
  (set! i (+ i 1)))
total""")
"""A nest whose inner loop is long in the last iteration of the outer one, which hardly any
comes to."""

ENDLESS = ferryvm.assemble("""
.static n i64
.function main
:again
    static.get n
    i64.const 1
    i64.add
    static.set n
    jump again
""")
"""Counts for ever."""

TWO_WAYS_IN = """
    static.get n
    i64.eqz
    jump_if second
:first
    static.get n
    i64.const 1
    i64.add
    static.set n
:second
    static.get n
    i64.const 3
    i64.xor
    static.set n
"""
"""A cycle that is entered in two places, up to where it goes back to `first`: no natural loop."""


def policy(
    *names: str,
    threshold: int = 20,
    scope: int = 1,
    background: bool = False,
    **options: bool | int,
) -> Policy:
    """What has been reached that often goes to these compilers (llvm if none), in their order."""
    chosen = Options(background=background, **options)  # type: ignore[arg-type]  # by name
    chain = tuple(Choice(name, chosen) for name in names or ("llvm",))
    return Policy(profile=Profile(True, threshold, threshold, scope), rules=(Rule(backends=chain),))


def start(
    program: Program,
    chosen: Policy | str,
    found: Registry | None = None,
    limits: Limits | None = None,
) -> Execution:
    """A program at its start."""
    if isinstance(chosen, str):
        return Engine(chosen, registry=found, limits=limits).start(program)
    return Engine(policy=chosen, registry=found, limits=limits).start(program)


def listen(execution: Execution, told: Callable[[Event, Placement], None]) -> None:
    """Have a function told of what happens in a program that has not been prepared yet."""
    mixed = execution.engine.backend
    assert isinstance(mixed, Mixed)
    mixed.watch(lambda event, placement, _: told(event, placement), lambda interpreter: interpreter)


def noticed(execution: Execution, wanted: Event) -> threading.Event:
    """What is set when an event comes, in a program that has not been prepared yet."""
    has_come = threading.Event()

    def note(event: Event, _placement: Placement) -> None:
        if event is wanted:
            has_come.set()

    listen(execution, note)
    return has_come


def journal(execution: Execution, forcing: frozenset[Forcing] = frozenset()) -> Journal:
    """The journal of a program that has run on its engine's backend."""
    _, artifact = execution._prepared[execution.engine.backend.name, forcing]
    assert isinstance(artifact, MixedArtifact)
    return artifact.journal


def placements(execution: Execution) -> list[Placement]:
    """The places that got hot."""
    return journal(execution).placements


def entries(placement: Placement) -> int:
    """How often the codes of a place have been entered."""
    return sum(activity.entries for _, activity in placement.activity())


def state(execution: Execution) -> Snapshot:
    """The state, whatever ended the run."""
    return dataclasses.replace(execution.machine.snapshot(), status=Status.RUNNING)


def end(execution: Execution, count: bool = False, fuel: int | None = None) -> tuple[str, Snapshot]:
    """How a run ended, with what it wrote, and the state."""
    try:
        result = execution.run(fuel, count)
        how = f"{result.status.name} {result.value}"
    except ferryvm.TrapError as error:
        how = f"TRAP {error.kind.name}"
    return f"{how} {b''.join(execution._collected).decode()}", execution.machine.snapshot()


def same_as_reference(program: Program, execution: Execution, count: bool = False) -> None:
    """A run that ended as the reference's does, in the same state."""
    expected = Engine("reference", limits=execution.engine.limits).start(program)
    assert end(execution, count) == end(expected)
