# SPDX-License-Identifier: Apache-2.0
"""Mixed execution: an interpreter's artifact with compiled regions in it, as one artifact.

    enter ──> interpreter ──> HOT, GUARD, SLICED, LOST, LONG ──> a step of the sites' states (`tiering`)
                 ▲    │  ▲                                                      │
                 │    │  └────────────────── continue meanwhile ───────────────────┘
                 │    └───> anything else: give it to the engine
                 └── compiled code leaves with LEAVE, without coming through here

The engine sees one artifact: it enters it, and handles its status.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ferryvm import record
from ferryvm.backend import (
    Artifact,
    Capabilities,
    Compiler,
    DirectEntry,
    Forcing,
    Interpreter,
    RefusalError,
)
from ferryvm.engine.attempt import Compilers, Find
from ferryvm.engine.decision import Decider
from ferryvm.engine.hook import ExtraFacts
from ferryvm.engine.journal import Journal, Listener
from ferryvm.engine.requirement import Requirements
from ferryvm.engine.tiering import Tiering
from ferryvm.errors import FerryError
from ferryvm.machine.control import Status
from ferryvm.machine.python_call import CallForm
from ferryvm.machine.state import Machine
from ferryvm.policy import Choice, Policy
from ferryvm.policy.machine import cpus
from ferryvm.program import Signature
from ferryvm.region.loop_head import may_launch
from ferryvm.verify import Verified

if TYPE_CHECKING:
    from ferryvm.engine.launching import Launches
    from ferryvm.engine.shadow import Shadow
    from ferryvm.machine.control import ControlBlock
    from ferryvm.machine.slot_code import SlotCode


class Mixed(Interpreter):
    """An interpreter and the compilers of a policy, under one name."""

    def __init__(
        self,
        name: str,
        policy: Policy,
        interpreter: Interpreter,
        find: Find,
        observe: bool = False,
        listeners: tuple[Listener, ...] = (),
        extra_facts: ExtraFacts | None = None,
        strict: bool = False,
    ) -> None:
        """`find`: the backend of a name, as `Registry.get`; `observe`: record metrics of
        `Activity`; `listeners`: receivers of events; `extra_facts`: facts about a region from
        plugins; `strict`: for tests, a compiler's failure ends the program, and IR is verified
        between passes."""
        self._strict = strict
        self.name, self.policy, self._interpreter, self._find = name, policy, interpreter, find
        self.version = interpreter.version
        self.observe, self.listeners, self.extra_facts = observe, listeners, extra_facts
        own = interpreter.capabilities
        forcing = own.forcing | {Forcing.HOT, Forcing.DEOPT, Forcing.PARALLEL}
        self.capabilities: Capabilities = record.replace(
            own, forcing=frozenset(forcing), out_of_order=True
        )
        self._shadow: Interpreter | None = None
        if policy.shadow is not None:
            from ferryvm.engine.shadow import shadow_backend  # hardly any policy has one

            self._shadow = shadow_backend(find(policy.shadow.against), interpreter)
            heaps = [h for h in (own.heap, self._shadow.capabilities.heap) if h is not None]
            self.capabilities = record.replace(self.capabilities, heap=min(heaps, default=None))

    def accepts(self, program: Verified) -> str | None:
        return self._interpreter.accepts(program)

    def watch(self, listener: Listener, around: Callable[[Interpreter], Interpreter]) -> None:
        """Add a listener, record metrics of `Activity`, and wrap the interpreter; programs prepared
        before are unaffected."""
        self.observe, self.listeners = True, (*self.listeners, listener)
        self._interpreter = around(self._interpreter)

    def prepare(self, program: Verified) -> Artifact:
        return self.prepare_forced(program, frozenset())

    def prepare_forced(self, program: Verified, forcing: frozenset[Forcing]) -> Artifact:
        inner = self._interpreter.prepare_soon(program)
        if not self._interpreter.capabilities.cells:
            raise RefusalError(f"backend {self._interpreter.name!r} has no cells to enter code at")
        if Forcing.DEOPT in forcing:
            self._check_can_be_forced()
        policy = self.policy if Forcing.HOT not in forcing else _forced(self.policy)
        journal, shadow = Journal(self.listeners), None
        if self._shadow is not None:
            from ferryvm.engine.shadow import Shadow

            shadow = Shadow(program, self._shadow)
        launches = None
        if may_launch(program.program):
            from ferryvm.engine.launching import launches_in

            launches = launches_in(program, Forcing.PARALLEL in forcing)
            if launches is not None and shadow is None:
                launches.bind_slots = inner.bind_slots
        decider = Decider(program, policy, journal, self.extra_facts, self._has_ranges)
        compilers = Compilers(
            self._find, journal, self.observe, forcing, shadow, launches, self._strict
        )
        requirements = Requirements(policy, journal, forcing, self._strict)
        tiering = Tiering(program, policy, inner, journal, decider, compilers, requirements)
        if launches is not None and self._interpreter.capabilities.fuel:
            from ferryvm.engine.launch_interlude import Interlude

            forms = tiering.counted_forms
            launches.interlude = Interlude(program, inner.enter, lambda: True not in forms)
        return MixedArtifact(
            inner, journal, compilers, requirements, tiering, shadow, self._is_native
        )

    def _has_ranges(self, choice: Choice) -> bool:
        """True if code of a launch's loop runs items out of order, under a choice."""
        with contextlib.suppress(FerryError):
            found = self._find(choice.backend).capabilities
            is_parallel = (choice.options.threads or cpus()) > 1
            in_lanes = found.lanes and choice.options.lanes != 1
            return found.ranges or (found.native and (is_parallel or in_lanes))
        return False

    def _is_native(self) -> bool:
        """True if no compiler of the policy has code that runs Python; code of an unknown kind may
        run Python."""
        with contextlib.suppress(FerryError):
            return all(self._find(name).capabilities.native for name in self._compiler_names())
        return False

    def warm_up(self) -> None:
        """Import the modules of the policy's compilers before a program runs. A fault here is
        reported when the compiler is used."""
        for name in self._compiler_names():
            with contextlib.suppress(FerryError):
                found = self._find(name)
                if isinstance(found, Compiler):
                    found.warm_up()

    def _compiler_names(self) -> list[str]:
        return list({choice.backend: None for rule in self.policy.rules for choice in rule.chain})

    def _check_can_be_forced(self) -> None:
        """Raise RefusalError if a compiler of the policy cannot be forced to leave."""
        for name in self._compiler_names():
            if Forcing.DEOPT not in self._find(name).capabilities.forcing:
                raise RefusalError(f"backend {name!r} has nothing to force: deopt")


def _forced(policy: Policy) -> Policy:
    """The policy with every threshold at 1."""
    profile = record.replace(
        policy.profile,
        enabled=True,
        loop_threshold=1,
        function_threshold=1,
        scope_threshold=1,
    )
    return record.replace(policy, profile=profile)


class MixedArtifact(Artifact):
    """A program's artifact of an interpreter, with cells."""

    def __init__(
        self,
        inner: Artifact,
        journal: Journal,
        compilers: Compilers,
        requirements: Requirements,
        tiering: Tiering,
        shadow: Shadow | None,
        is_native: Callable[[], bool],
    ) -> None:
        """`inner`: the interpreter's; `shadow`: repeats runs of compiled code; `is_native`: True if
        no code that may be installed runs Python."""
        self._is_native = functools.cache(is_native)  # the policy does not change
        self.journal, self.tiering = journal, tiering
        self._inner, self._compilers = inner, compilers
        self._requirements, self._shadow = requirements, shadow
        self.launches = compilers.launches

    @property
    def ready_launches(self) -> Launches | None:
        """The launches; None if a shadow repeats what runs, or programs wait for compilers."""
        if self._shadow is not None or self._requirements.may_stop:
            return None
        return self.launches if self._requirements.is_free else None

    @property
    def waited(self) -> float:  # type: ignore[override]  # counted where programs wait
        return self._requirements.waited

    @property
    def compiled(self) -> float:  # type: ignore[override]  # counted where backends are asked
        return self._compilers.seconds

    def native_callers(self, imports: Mapping[int, Signature]) -> Mapping[int, int] | None:
        if self._shadow is not None:
            return None  # it would call them a second time
        callers = self._inner.native_callers(imports)
        self._compilers.natives = frozenset(callers or ())
        return callers

    def collector(self) -> int | None:
        return self._inner.collector()

    def item_writer(self) -> int | None:
        return self._inner.item_writer()

    def host_loop(self) -> int | None:
        return self._inner.host_loop()

    def bind_slots(self, control: ControlBlock) -> SlotCode | None:
        return self._inner.bind_slots(control)

    def python_caller(self, form: CallForm) -> int | None:
        return self._inner.python_caller(form)

    def enter(self, machine: Machine, counting: bool) -> Status:
        if self._shadow is not None:
            return self._shadow.run(machine, counting, self._enter, self.tiering.differed)
        return self._enter(machine, counting)

    def direct(self, machine: Machine, counting: bool) -> DirectEntry | None:
        if self._shadow is not None or self._requirements.may_stop:
            return None
        if counting not in self.tiering.counted_forms:
            self.tiering.start(counting)
        if not self._requirements.is_free:
            return None
        inner = self._inner.direct(machine, counting)
        if inner is None:
            return None
        if self.launches is not None:
            self.launches.bind(machine.control)

        def finish(machine: Machine, counting: bool, left: int) -> Status:
            return self._enter(machine, counting, inner.finish(machine, counting, left))

        def launch(machine: Machine) -> Status | None:
            left = self._launched(machine)
            is_free = self._requirements.is_free and not self._requirements.may_stop
            return None if left is Status.LEAVE and is_free else left

        is_native = functools.partial(self._is_native_with, inner)
        return DirectEntry(
            inner.run,
            finish,
            is_native,
            launch if self.launches else None,
            inner.resume,
            inner.address,
            inner.resumption,
        )

    def _is_native_with(self, inner: DirectEntry) -> bool:
        return inner.is_native() and self._is_native()

    def _launched(self, machine: Machine) -> Status:
        """The result of `Launches.run` for the launch for which code has left."""
        assert self.launches is not None
        left = self.launches.run(machine)
        for launch, wrong in self.launches.failed():
            self.tiering.guess_failed(launch, wrong)
        return left

    def _enter(self, machine: Machine, counting: bool, left: Status | None = None) -> Status:
        """`left`: the status with which the interpreter was left already, if it was."""
        tiering, requirements = self.tiering, self._requirements
        inner, control, launches = self._inner, machine.control, self.launches
        if launches is not None:
            launches.bind(control)
        if counting not in tiering.counted_forms:
            tiering.start(counting)
        while True:
            if left is not None:
                status, left = left, None
            else:
                # Every host call may come through here, so calls without an effect are omitted.
                if not requirements.is_free and not requirements.wait(control):
                    control.status = Status.INTERRUPTED
                    return Status.INTERRUPTED
                if requirements.may_stop:
                    status = requirements.enter(inner, machine, counting)
                else:
                    status = inner.enter(machine, counting)
            if status is Status.HOT:
                is_part = launches is not None and not counting and tiering.hot_in_launch(machine)
                if not is_part or not tiering.count_on(control.pc):
                    tiering.hot(control.pc, counting)
            elif status is Status.GUARD:
                tiering.guard_failed(control.pc, counting)
            elif status is Status.SLICED:
                tiering.sliced(control.pc, counting)
            elif status is Status.LOST:
                tiering.lost(counting)
            elif status is Status.LONG:
                tiering.ran_long(control.pc, counting)
            elif status is Status.PARALLEL and launches is not None:
                left = self._launched(machine)
                if left is Status.LEAVE:
                    left = None
            elif status is not Status.INTERRUPTED or requirements.refused is None:
                if requirements.may_stop:
                    requirements.settle(status, control, list(tiering.sites.values()))
                return status

    def metrics(self) -> Mapping[str, Mapping[str, object]]:
        from ferryvm.engine.metric import metrics  # few runs report metrics

        found = metrics(self.journal.placements, self._compilers.find)
        return {**self._inner.metrics(), **found}
