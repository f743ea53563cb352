# SPDX-License-Identifier: Apache-2.0
"""Running one program on several backends, moving it between them, and comparing.

Under every schedule the end is compared with the end of the same program on the baseline backend,
which runs it alone. Agreement of each with the baseline is agreement of all pairs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections.abc import Callable, Sequence

from ferryvm import asm
from ferryvm.backend import Compiler, Forcing, Interpreter, RefusalError
from ferryvm.deadline import Deadline
from ferryvm.engine import Engine
from ferryvm.engine.host_declaration import Hosts
from ferryvm.engine.host_log import HostLog
from ferryvm.errors import FerryError
from ferryvm.isa import Trap
from ferryvm.machine.control import Status
from ferryvm.machine.difference import Difference
from ferryvm.machine.host import STANDARD, Context, Determinism
from ferryvm.machine.memory import Limits
from ferryvm.registry import Registry
from ferryvm.testing.divergence import ABOVE, LEGAL
from ferryvm.testing.environment import ENVIRONMENTS
from ferryvm.testing.launch_end import launch_difference
from ferryvm.testing.schedule import Schedule, environments, moves
from ferryvm.testing.state import StoppedState, difference
from ferryvm.testing.trial import MOST_INSTRUCTIONS, Trial
from ferryvm.testing.watchdog import PATIENCE
from ferryvm.verify import Verified, verify

_CHUNK = 10_000_000
"""Instructions after which progress is reported."""

_EXPECTED_CHUNK = 1_000_000
"""The same for the baseline."""

Progress = Callable[[], object]

_NEVER = Deadline(None)

COMPLETING = "threaded"
"""The interpreter that completes launches of runs that ended in one; it has cells."""

_HELD = "the check keeps objects alive, for which the limit leaves no room"
"""The reason for which a program whose launches are checked may end earlier."""

_WARM_UP = """
.host print_i64 (i64)
.host print_f32 (f32)
.function main
.local n i64
    i64.const 64
    heap.alloc
    drop
    i64.const 3
    local.set n
:top
    local.get n
    host print_i64
    f32.const 0.5
    host print_f32
    local.get n
    i64.const 1
    i64.sub
    local.set n
    local.get n
    i64.eqz
    jump_unless top
    halt
"""


class Verdict(enum.Enum):
    """The verdict of a comparison. Unsupported is never agreement."""

    AGREE = "agree"
    DISAGREE = "disagree"
    DIVERGE = "diverge"
    """It ends elsewhere, in a way that `ferryvm.testing.divergence` lists as legal."""
    UNSUPPORTED = "unsupported"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One program under one set of backends, against one."""

    backends: tuple[str, ...]
    """One backend, or those between which the program moved; a short program may not reach all."""
    verdict: Verdict
    moves: int
    """Times that the program continued in another backend."""
    instructions: int
    """Instructions completed by the end."""
    seconds: float = dataclasses.field(default=0.0, compare=False)
    """Duration of the counted run, without preparation."""
    against_seconds: float = dataclasses.field(default=0.0, compare=False)
    """The same for the baseline."""
    difference: Difference | None = None
    is_counted: bool = True
    """True if it describes the run that counts instructions; if only the other run differs, it
    describes that one."""
    reason: str | None = None
    """The reason that it is unsupported, or diverges legally."""


def judge(expected: Trial, trial: Trial, failure: str | None = None) -> Difference | None:
    """The first difference of a trial from the expected one; its failure, if any, is one."""
    if trial.other_call is not None:
        return trial.other_call
    if failure is None:
        try:
            found = difference(expected.execution.machine, expected.state(), trial.state())
            return found or _host_difference(expected, trial)
        except ValueError as error:
            failure = str(error)
    return Difference("failure", "none", failure)


def _host_difference(expected: Trial, trial: Trial) -> Difference | None:
    if expected.calls != trial.calls:
        return Difference("host calls", str(expected.calls), str(trial.calls))
    if expected.raised != trial.raised:
        return Difference("exception", expected.raised or "none", trial.raised or "none")
    return None


class Differ:
    """Compares backends on programs."""

    def __init__(
        self,
        backends: Sequence[str],
        against: str = "reference",
        registry: Registry | None = None,
        limits: Limits | None = None,
        most: int = MOST_INSTRUCTIONS,
        forcing: frozenset[Forcing] = frozenset(),
        patience: float = PATIENCE,
        hosts: Hosts | None = None,
        log: HostLog | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        """`most`: instructions after which a running program is compared in its present state;
        `forcing`: behaviour forced in all backends except `against`, the baseline; `patience`:
        seconds that a backend may take for 10 million instructions, or for the rest of a program,
        before it is stopped; `hosts`: host functions beside those of the registry; `log`: results
        that replace calls of host functions, which then need not exist.

        Raises UnknownNameError or BackendError if one of the backends is not available.
        """
        self.registry = registry or Registry()
        self.limits = limits
        self.most = most
        self.patience = patience
        self.chunk = _EXPECTED_CHUNK
        """Instructions that the baseline runs at a time."""
        self.in_progress = against, 0
        """The running backend, and the instructions of the program that it has completed."""
        self.form: bool | None = None
        """True to run a backend that supports both only in the counting form, False to do so only
        in the other if the program ends; None: both."""
        self.against = against
        self.backends = tuple(name for name in dict.fromkeys(backends) if name != against)
        self.forcing = forcing
        self._forcing = dict.fromkeys(self.backends, forcing)
        for name in (against, *self.backends):
            self.registry.get(name)
        self.hosts, self.log, self.arguments = hosts, log, tuple(arguments)
        self._engine = Engine(
            against, limits=limits, hosts=hosts, arguments=arguments, registry=self.registry
        )
        self._recorded: tuple[Verified, HostLog] | None = None
        """The most recent program, and its host calls on the good backend."""
        if not self.backends:
            raise FerryError(f"nothing to compare with {against!r}: name another backend")

    def with_backends(self, backends: Sequence[str], patience: float | None = None) -> Differ:
        """A Differ that compares other backends in the same way, with the host calls of the last
        program as results. `patience`: as for a Differ; None: the same. Raises as Differ."""
        return Differ(
            backends,
            self.against,
            self.registry,
            self.limits,
            self.most,
            self.forcing,
            self.patience if patience is None else patience,
            self.hosts,
            self.results,
            self.arguments,
        )

    def compare(
        self,
        program: Verified,
        schedule: Schedule = Schedule.NONE,
        seed: int = 0,
        progress: Progress = lambda: None,
        expected: Trial | None = None,
        deadline: Deadline = _NEVER,
    ) -> list[Comparison]:
        """One comparison for each backend without a schedule, else one of all of them with moves.

        `progress` is called occasionally during long work (see `in_progress`); `expected`: the
        result of `finish` for this program, if it has been called already, also from a start in the
        middle. After `deadline` no other backend is started: missing results have not been
        compared.
        """
        expected = expected or self.finish(self.start(program), progress)
        found: list[Comparison] = []
        if schedule is not Schedule.NONE:
            found.append(self._moved(schedule, seed, expected, progress))
        for name in self.backends if schedule is Schedule.NONE else ():
            if found and deadline.is_over:
                break
            found.append(self._alone(name, expected, progress))
        return [dataclasses.replace(one, against_seconds=expected.seconds) for one in found]

    def finish(
        self, trial: Trial, progress: Progress = lambda: None, deadline: Deadline = _NEVER
    ) -> Trial:
        """The trial, continued to its end on the baseline.

        If `deadline` comes first, its end is its present state: others are compared there.
        """
        while trial.run(self.against, self.chunk):
            self._report_progress(self.against, trial, progress)
            if deadline.is_over:
                trial.end_here()
                break
        return trial

    def warm_up(self) -> None:
        """Run a small program on every backend, so that one-time work (threads, imports, the first
        call of a driver) is charged to no program."""
        program = verify(asm.assemble(_WARM_UP, "<warm-up>"))
        for name in (self.against, *self.backends):
            for fuel in (1_000, None):
                with contextlib.suppress(RefusalError):
                    self.start(program).attempt(name, fuel, self.patience)

    def _report_progress(self, name: str, trial: Trial, progress: Progress) -> None:
        self.in_progress = name, trial.instructions
        progress()

    def start(self, program: Verified) -> Trial:
        """A trial of the program at its start, which records its host calls; trials made from it
        replay them. Raises FerryError for a host function that cannot be compared."""
        log = self.log_of(program)
        trial = Trial(self._engine.start(program, record=log, replay=log), self.most)
        trial.forcing = self._forcing
        return trial

    def log_of(self, program: Verified) -> HostLog | None:
        """The host calls of a program; None for one that only writes, which is compared as output.

        Raises FerryError for a host function with effects of its own whose result, or effect on the
        program's memory, may differ between runs.
        """
        found = [(one, self._engine.hosts.get(one.name)) for one in program.program.hosts]
        if all(host is not None and host.context is Context.OUTPUT for _, host in found):
            return None
        for imported, host in found:
            if host is None or host.determinism is not Determinism.PLAIN:
                continue
            has_memory = host.context in (Context.INSTANCE, Context.SYSTEM)
            if imported.signature.results or (has_memory and host is not STANDARD.get(host.name)):
                raise FerryError(
                    f"host function {imported.name} is not comparable: it may have effects of its "
                    "own; declare it pure=True or replayable=True if it has none"
                )
        if self._recorded is None or self._recorded[0] is not program:
            self._recorded = program, HostLog(self.log)
        return self._recorded[1]

    @property
    def results(self) -> HostLog | None:
        """Results that can replace host calls of programs that derive from the last one."""
        return self.log or (self._recorded and self._recorded[1])

    def _alone(self, name: str, expected: Trial, progress: Progress) -> Comparison:
        trial, failure = expected.again(), None
        comparison = None
        try:
            can_count = self.registry.get(name).capabilities.fuel and self.form is not False
            if can_count or not expected.remaining:
                while failure is None and not trial.has_ended:
                    failure = trial.attempt(name, _CHUNK, self.patience)
                    self._report_progress(name, trial, progress)
                comparison = self._judge((name,), trial, failure, expected, 0)
                is_over = self.form is True or not expected.remaining
                if comparison.verdict is not Verdict.AGREE or is_over:
                    return comparison
            # Native backends run other code without counting, which has to agree as well.
            uncounted = expected.again()
            failure = uncounted.attempt(name, None, self.patience)
        except RefusalError as error:
            return self._unsupported((name,), trial, 0, error)
        if comparison is None:  # it cannot count, or must not
            uncounted.remaining = expected.remaining
            comparison = self._judge((name,), uncounted, failure, expected, 0)
            return dataclasses.replace(comparison, is_counted=False)
        found = judge(expected, uncounted, failure)
        if found is None:
            return comparison
        reason = self._legal_above((name,), uncounted, expected) if failure is None else None
        if reason is not None:
            return dataclasses.replace(
                comparison, verdict=Verdict.DIVERGE, reason=reason, is_counted=False
            )
        return dataclasses.replace(
            comparison, verdict=Verdict.DISAGREE, difference=found, is_counted=False
        )

    def _independent(self, trial: Trial, expected: Trial) -> Comparison:
        """The baseline, with the items of launches checked."""
        trial.forcing = {self.against: frozenset({Forcing.INDEPENDENCE})}
        try:
            failure = trial.attempt(self.against, trial.remaining, self.patience)
        except RefusalError as error:
            return self._unsupported((self.against,), trial, 0, error)
        found = self._judge((self.against,), trial, failure, expected, 0)
        is_earlier = failure is None and trial.instructions < expected.instructions
        lacks_memory = trial.execution.machine.control.trap == Trap.HEAP_EXHAUSTED
        if is_earlier and trial.status is Status.TRAP and lacks_memory:
            return dataclasses.replace(
                found, verdict=Verdict.DIVERGE, difference=None, reason=_HELD
            )
        return found

    def _moved(
        self, schedule: Schedule, seed: int, expected: Trial, progress: Progress
    ) -> Comparison:
        names = (self.against, *self.backends)
        trial, failure = expected.again(), None
        if schedule is Schedule.INDEPENDENCE:
            return self._independent(trial, expected)
        number, entered = 0, set[str]()
        try:
            plan = moves(schedule, names, seed, expected.instructions, expected.remaining > 0)
            around = environments(schedule, seed)
            for number, (name, step) in enumerate(plan):
                entered.add(name)
                trial.environment = ENVIRONMENTS[next(around)]
                if schedule is Schedule.COLLECT:
                    trial.collect()
                elif schedule is Schedule.SUSPEND:
                    trial.suspend()
                failure = trial.attempt(name, step, self.patience)
                if failure is not None or trial.has_ended:
                    break
                if number % 1000 == 0:
                    self._report_progress(name, trial, progress)
        except RefusalError as error:
            return self._unsupported(names, trial, number, error)
        except ValueError as error:  # a collection of damaged objects
            failure = str(error)
        if entered == {self.against}:  # it ended before it moved: nothing has been compared
            return self._moved(schedule, seed + 1, expected, progress)
        names = tuple(name for name in names if name in entered)
        return self._judge(names, trial, failure, expected, number)

    @staticmethod
    def _unsupported(
        names: tuple[str, ...], trial: Trial, moves: int, error: RefusalError
    ) -> Comparison:
        done = trial.instructions
        return Comparison(names, Verdict.UNSUPPORTED, moves, done, reason=str(error))

    def _judge(
        self, names: tuple[str, ...], trial: Trial, failure: str | None, expected: Trial, moves: int
    ) -> Comparison:
        found = judge(expected, trial, failure)
        verdict = Verdict.AGREE if found is None else Verdict.DISAGREE
        reason = None
        if found is not None and found.field != "failure":
            reason = self._legal(names, trial, expected)
            reason = reason or self._legal_above(names, trial, expected)
            if reason is not None:
                verdict, found = Verdict.DIVERGE, None
        return Comparison(
            names,
            verdict,
            moves,
            trial.instructions,
            trial.seconds,
            difference=found,
            reason=reason,
        )

    def _legal(self, names: tuple[str, ...], trial: Trial, expected: Trial) -> str | None:
        """The reason for which a difference is legal, None if it is not."""
        try:
            state = trial.state()
        except ValueError:  # an earlier collection has left damaged objects
            return None
        capabilities = {name: self.registry.get(name).capabilities for name in names}
        for divergence in LEGAL:
            who = [name for name in names if divergence.declared(capabilities[name])]
            if not who or not divergence.shows(state):
                continue
            before = expected.again()
            before.run(self.against, trial.instructions)
            stopped = before.state()
            end = state.machine
            as_stopped = dataclasses.replace(stopped.machine, status=end.status, trap=end.trap)
            stopped = StoppedState(as_stopped, state.fuel, stopped.output)
            if difference(before.execution.machine, stopped, state) is None:
                return f"{divergence.reason} ({', '.join(who)})"
        return None

    def _legal_above(self, names: tuple[str, ...], trial: Trial, expected: Trial) -> str | None:
        """The reason for which a difference is legal that only items of a launch make above the one
        that ended the program; None if it is not."""
        backends = {name: self.registry.get(name) for name in names}
        who = [
            name
            for name, backend in backends.items()
            if isinstance(backend, Compiler) or backend.capabilities.out_of_order
        ]  # a compiler by itself runs in mixed execution
        is_same = (trial.raised, trial.calls) == (expected.raised, expected.calls)
        if not who or trial.is_counted or not is_same or trial.other_call is not None:
            return None
        machines = expected.execution.machine, trial.execution.machine
        if any(machine.objects is None for machine in machines):
            return None
        try:
            states = expected.state(), trial.state()
            artifact = self.registry.get(COMPLETING)
            assert isinstance(artifact, Interpreter)
            prepared = artifact.prepare(machines[0].verified)
            found = launch_difference(*states, machines, prepared)
        except (ValueError, IndexError, FerryError):  # it stands in no launch, or is damaged
            return None
        return f"{ABOVE} ({', '.join(who)})" if found is None else None
