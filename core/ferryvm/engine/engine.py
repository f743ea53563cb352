# SPDX-License-Identifier: Apache-2.0
"""Engines: a backend or a policy with limits and host functions, which start programs."""

from __future__ import annotations

import copy
import functools
import time
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ferryvm.engine.execution import Execution
from ferryvm.engine.runnable import mixed, runnable
from ferryvm.errors import FerryError
from ferryvm.failure import shown
from ferryvm.float_environment import in_ours
from ferryvm.host_registry import Layered
from ferryvm.isa import INSTRUCTIONS
from ferryvm.machine.control import Status
from ferryvm.machine.host import Context, HostFunction, Input, Output
from ferryvm.machine.host_stack import with_headroom
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.machine.system import STANDARD_READER, Reader
from ferryvm.policy import Policy, default
from ferryvm.policy.model import check_chosen
from ferryvm.program import Program
from ferryvm.registry import Registry
from ferryvm.verify import Verified, verify

if TYPE_CHECKING:
    from ferryvm.engine.host_declaration import Hosts
    from ferryvm.engine.host_log import HostLog
    from ferryvm.engine.host_tape import HostTape
    from ferryvm.engine.instance import Instance


class Engine:
    """Runs programs on one backend, under one set of limits."""

    @in_ours
    def __init__(
        self,
        backend: str | None = None,
        *,
        policy: Policy | None = None,
        device: str = "",
        limits: Limits | None = None,
        hosts: Hosts | None = None,
        output: Output | None = None,
        input: Input | None = None,
        arguments: Sequence[str] = (),
        registry: Registry | None = None,
    ) -> None:
        """`backend`: the name of one; without it `policy`, or the default policy, selects backends.
        `device`: the target of the backend of that name; empty: its default. `hosts`: host
        functions offered beside those of the registry, which they override; `output`: the receiver
        of programs' output, collected for the result if None; `input`: the source of their input,
        standard input if None; `arguments`: the arguments of programs.

        Raises UnknownNameError or BackendError if there is no such usable backend, and FerryError
        for a device that it cannot compile for.
        """
        self.registry = registry or Registry()
        check_chosen(backend, policy)
        if backend is not None and policy is not None:
            raise FerryError(f"backend {backend!r} and a policy: an engine takes one of them")
        if device and backend is None:
            raise FerryError(f"device {device!r}: a backend has to be named that compiles for it")
        if backend is not None:
            self.backend = with_headroom(lambda: runnable(self.registry, backend, device))
        else:
            self.backend = with_headroom(lambda: mixed(self.registry, policy or default()))
        self.limits = limits or Limits()
        self.hosts = _layered(hosts, self.registry.hosts)
        self.output = output
        self.reader = STANDARD_READER if input is None else Reader(input)
        self.arguments = tuple(arguments)

    @in_ours
    def start(
        self,
        program: Program | Verified,
        after: Execution | None = None,
        *,
        record: HostLog | None = None,
        replay: HostLog | None = None,
    ) -> Execution:
        """A program at its start. Raises VerifyError, AddressSpaceError if the limits exceed the
        available memory, or for host functions as `bind`.

        `after`: an earlier execution whose heap, and whose statics by number, this one inherits; an
        interactive session continues in this way. `record`: a log to which host calls are added;
        `replay`: a log whose outcomes are used instead of calls, with a ReplayError for any other
        call. One log may be both: its calls are replayed, and calls after its end are recorded.
        """
        _check_program(program, Program | Verified)
        began = time.perf_counter()
        verified = self._verified(program)
        machine = Machine(verified, self.limits)
        if after is not None:
            after.alone(functools.partial(machine.inherit, after.machine))
        return Execution(self, machine, time.perf_counter() - began, _tape(record, replay))

    def _verified(self, program: Program | Verified) -> Verified:
        """The program, verified; with entry stubs if a host function may call it."""
        plain = program.program if isinstance(program, Verified) else program
        offers = (self.hosts.get(wanted.name) for wanted in plain.hosts)
        if any(host is not None and host.context is Context.INSTANCE for host in offers):
            from ferryvm.engine.entry_stub import with_entry_stubs

            changed = with_entry_stubs(plain)
            if changed is not plain:
                return verify(changed)
        return program if isinstance(program, Verified) else verify(program)

    def instantiate(
        self,
        program: Program,
        hosts: Hosts | None = None,
        *,
        after: Instance | None = None,
        record: HostLog | None = None,
        replay: HostLog | None = None,
    ) -> Instance:
        """The program with its start function run, for calls of its exported functions.

        `hosts`: host functions for this program, beside the engine's. `after`: an earlier, idle
        instance whose heap and statics this one inherits; `record`, `replay`: as `start`. Raises as
        `start` and `Execution.run`, CallError if `after` is running.
        """
        if after is not None and not getattr(after, "is_instance", False):
            raise TypeError(f"after is {shown(after)}; an Instance is expected")
        earlier = None if after is None else cast("Execution", after.idle_execution())
        execution = self._with_stubs(program, hosts, earlier, record, replay)
        execution.run()
        return execution.instance

    def instantiate_at_rest(self, program: Program, hosts: Hosts | None = None) -> Instance:
        """As `instantiate`, of a program whose start function is `halt` alone: it stands there
        already. No backend prepares it before the first call, and none at all if functions are
        added to it before that. Raises ValueError for another start function; otherwise as
        `start`."""
        execution = self._with_stubs(program, hosts)
        machine = execution.machine
        first = machine.program.code.opcodes[machine.control.pc]
        if INSTRUCTIONS[first].mnemonic != "halt":
            raise ValueError("the start function has instructions before its halt")
        machine.control.status = Status.HALT
        return execution.instance

    def _with_stubs(
        self,
        program: Program,
        hosts: Hosts | None,
        after: Execution | None = None,
        record: HostLog | None = None,
        replay: HostLog | None = None,
    ) -> Execution:
        """A program with entry stubs at its start."""
        from ferryvm.engine.entry_stub import with_entry_stubs

        _check_program(program, Program)
        engine = self
        if hosts is not None:
            engine = copy.copy(self)
            engine.hosts = _layered(hosts, self.hosts)
        return engine.start(with_entry_stubs(program), after, record=record, replay=replay)

    @in_ours
    def resume(
        self,
        path: str | Path,
        *,
        record: HostLog | None = None,
        replay: HostLog | None = None,
    ) -> Execution:
        """The execution that was saved in a file. `record`, `replay`: as `start`, for the following
        calls.

        Raises ImageError for a file that is not a state of its program or exceeds the limits;
        otherwise as `start`.
        """
        began = time.perf_counter()
        from ferryvm.engine import saved  # most runs neither save nor resume

        machine, instructions = saved.load(Path(path), self.limits)
        machine.control.instructions = instructions or 0
        tape = _tape(record, replay)
        seconds = time.perf_counter() - began
        return Execution(self, machine, seconds, tape, all_counted=instructions is not None)

    def resume_instance(self, path: str | Path) -> Instance:
        """The instance that was saved in a file; its `suspended` is the call that had stopped.

        Raises as `resume`, and CallError for the state of a program that was not instantiated or
        has not run its start function to the end.
        """
        execution = self.resume(path)
        instance = execution.instance
        instance.take_up()
        return instance


def _check_program(program: object, kinds: type | types.UnionType) -> None:
    """Raise TypeError for an object that is no program."""
    if not isinstance(program, kinds):
        kind = type(program).__name__
        raise TypeError(f"a Program expected, found {kind}; ferryvm.compile makes one of text")


def _layered(hosts: Hosts | None, others: Mapping[str, HostFunction]) -> Mapping[str, HostFunction]:
    if not hosts:
        return others
    from ferryvm.engine.host_declaration import offered  # few runs have host functions of their own

    return Layered(offered(hosts), others)


def _tape(record: HostLog | None, replay: HostLog | None) -> HostTape | None:
    if record is None and replay is None:
        return None
    from ferryvm.engine.host_tape import HostTape  # few runs are recorded

    log = record if replay is None else replay
    assert log is not None
    if record is not None and record is not log:
        raise FerryError("record and replay are two logs; one is allowed, or the same for both")
    return HostTape(log, plays=replay is not None, records=record is not None)
