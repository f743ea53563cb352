# SPDX-License-Identifier: Apache-2.0
"""Runs of programs from the command line: loading, driving, saving, metrics."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import ferryvm
from ferryvm.atomic_file import replace_file
from ferryvm.backend import Forcing
from ferryvm.cli import termination
from ferryvm.cli.engine import make_engine
from ferryvm.cli.file import check_writable, naming, refuse_same_file
from ferryvm.cli.message import say
from ferryvm.cli.output import ProgramOutput, waiting_output
from ferryvm.cli.run_option import Options
from ferryvm.engine import Engine, Execution, ProgramInterrupted, RunResult, TrapError
from ferryvm.errors import FerryError
from ferryvm.machine.control import Status

if TYPE_CHECKING:
    from ferryvm.engine.host_log import HostLog


_CHECKING = "reference"
"""The backend that checks launches."""


def run(
    file: Path, options: Options, peephole: bool | None = None, language: str | None = None
) -> None:
    """Run a program from its start."""
    began = time.perf_counter()
    if options.save is not None:  # a state may replace the state that it came from
        refuse_same_file(file, options.save)

    def start(engine: Engine, record: HostLog | None, replay: HostLog | None) -> Execution:
        program = ferryvm.read(file, peephole, language)
        return engine.start(program, record=record, replay=replay)

    _run(file, start, _engine(options), began, options)


def resume(state: Path, options: Options) -> None:
    """Continue a saved state, on any backend."""
    began = time.perf_counter()
    engine = _engine(options)

    def start(engine: Engine, record: HostLog | None, replay: HostLog | None) -> Execution:
        try:
            return engine.resume(state, record=record, replay=replay)
        except FerryError:
            from ferryvm.language import installed  # a hint costs only those who need it

            if state.is_file() and installed().is_program(state):
                message = f"{state}: is a program, no saved state; `ferry run` starts it"
                raise FerryError(message) from None
            raise

    _run(state, start, engine, began, options)


def _engine(options: Options) -> Engine:
    has_to_end = any(path is not None for path in (options.save, options.trace, options.record))
    output = waiting_output(1) if has_to_end else ProgramOutput()
    backend = options.backend
    if options.check is not None:
        backend = _checking_backend(options)
    return make_engine(
        backend,
        options.policy,
        options.device,
        limits=options.limits,
        output=output,
        hosts=options.hosts,
        arguments=options.arguments,
    )


def _checking_backend(options: Options) -> str:
    """The backend that can check what `--check` names."""
    if options.backend not in (None, _CHECKING) or options.policy is not None:
        import click  # loaded only to refuse: see `direct`

        raise click.UsageError(f"--check runs on the backend {_CHECKING!r}, and on no other")
    return _CHECKING


def _run(
    file: Path,
    start: Callable[[Engine, HostLog | None, HostLog | None], Execution],
    engine: Engine,
    began: float,
    options: Options,
) -> None:
    save, trace, record, replay = options.save, options.trace, options.record, options.replay
    stats = options.stats
    if save is not None:
        check_writable(save)
    if record is not None and replay is not None:
        import click  # loaded only to refuse: see `direct`

        raise click.UsageError("--record and --replay: one of them is allowed")
    if record is not None:
        refuse_same_file(file, record)
        check_writable(record)
    if stats is not None and stats != "-":
        refuse_same_file(file, Path(stats))
        check_writable(Path(stats))
    if trace is not None:
        refuse_same_file(file, trace)
        check_writable(trace)
    if save is not None or trace is not None or record is not None:
        termination.save_state_first()
    recorded = played = None
    if record is not None or replay is not None:
        from ferryvm.engine.host_log import HostLog

        recorded = HostLog() if record is not None else None
        played = HostLog.load(replay) if replay is not None else None
    with _traced(engine, trace):
        with naming(file):
            execution = start(engine, recorded, played)
        load_seconds = time.perf_counter() - began
        with _recorded(recorded, record):
            _drive(execution, load_seconds, options)
    if played is not None and execution.tape is not None:
        _check_played(played, execution.tape.position, execution.machine.status, replay)


@contextlib.contextmanager
def _recorded(log: HostLog | None, path: Path | None) -> Iterator[None]:
    """Write the log of a run, on errors, too."""
    try:
        yield
    finally:
        if log is not None and path is not None:
            with termination.deferred():
                log.save(path)


def _check_played(log: HostLog, position: int, status: Status, path: Path | None) -> None:
    """Raise FerryError if a program has halted and the log has further calls."""
    left = len(log) - position
    if left and status is Status.HALT:
        more = "1 more host call" if left == 1 else f"{left} more host calls"
        raise FerryError(f"{path}: has {more} than the program made; the next is {log[position]}")


@contextlib.contextmanager
def _traced(engine: Engine, path: Path | None) -> Iterator[None]:
    """Write a trace of the engine's events in the context, on errors, too."""
    if path is None:
        yield
        return
    from ferryvm.engine.observer import Observer
    from ferryvm.engine.trace import write as write_trace

    observer = Observer(transfers=True)
    observer.watch(engine)
    try:
        yield
    finally:
        try:
            with termination.deferred():
                write_trace(observer, path)
        except OSError as error:
            raise FerryError(f"{path}: cannot be written: {error.strerror}") from None


def _drive(execution: Execution, load_seconds: float, options: Options) -> None:
    fuel, count, save, stats = options.fuel, options.count, options.save, options.stats
    forcing: frozenset[Forcing] = frozenset()
    if options.check is not None:
        forcing = frozenset({Forcing(options.check)})
    output = execution.engine.output
    try:
        if not isinstance(output, ProgramOutput):
            result = execution.run(fuel, count, forcing=forcing)
        else:
            output.collect_for(execution)
            try:
                result = execution.run(fuel, count, forcing=forcing)
            finally:
                output.flush()
    except (ProgramInterrupted, termination.StoppedWaiting):
        _save(execution, save)
        from ferryvm.cli.run_failure import with_source_line

        stopped = ProgramInterrupted(execution.machine)
        raise termination.Interrupted(with_source_line(str(stopped), stopped.position)) from None
    except TrapError as error:
        from ferryvm.cli.run_failure import Trapped, with_source_line

        _report(stats, execution, load_seconds, Status.TRAP, trap=error.kind.name)
        raise Trapped(with_source_line(str(error), error.position)) from None
    except Exception as error:
        from ferryvm.cli.run_failure import host_failure

        failure = host_failure(execution.machine, error)
        if failure is None and not isinstance(error, OSError):
            raise
        _save(execution, save)  # the program is at that call
        raise failure or error from None
    if result.status is Status.FUEL:
        where = execution.machine.position or f"pc {execution.machine.control.pc}"
        say(f"ferry: {where}: out of fuel after {fuel} instructions", is_error=True)
        _save(execution, save)
    _report(stats, execution, load_seconds, result.status, result)


def _save(execution: Execution, path: Path | None) -> None:
    if path is None:
        return
    from ferryvm.image import ImageError  # loaded only for programs with one

    with termination.deferred():
        try:
            execution.save(path)
        except ImageError as error:  # the disk may be full: save elsewhere
            other = _saved_elsewhere(execution)
            if other is None:
                raise
            raise FerryError(f"{error}; the state is saved in {other} instead") from None
    say(f"ferry: state saved in {path}", is_error=True)


def _saved_elsewhere(execution: Execution) -> Path | None:
    """The file in the temporary directory that has the state; None if that fails, too."""
    import tempfile  # hardly any run ends on a full disk

    from ferryvm.image import ImageError

    try:
        descriptor, name = tempfile.mkstemp(prefix="ferry-", suffix=".ferry")
    except OSError:
        return None
    os.close(descriptor)
    try:
        execution.save(name)
    except BaseException as error:
        os.unlink(name)
        if isinstance(error, ImageError):
            return None
        raise
    return Path(name)


def _report(
    stats: str | None,
    execution: Execution,
    load_seconds: float,
    status: Status,
    result: RunResult | None = None,
    trap: str | None = None,
) -> None:
    if stats is None:
        return
    machine = execution.machine
    value: object = result.value if result else None
    type_: object = result.type if result else None
    if isinstance(value, float) and not math.isfinite(value):
        value = str(value)  # JSON has no such numbers
    if result is not None and result.read is not None:
        value = machine.result_text()
        type_ = machine.verified.operand_types(machine.control.pc)[-1]
    import dataclasses  # hardly any run writes metrics
    import json

    statistics = execution.statistics
    metrics = {
        "backend": statistics.backend,
        "status": status.name.lower(),
        "result": value,
        "result_type": str(type_) if type_ else None,
        "result_bits": f"{result.bits:#x}" if result and result.bits is not None else None,
        "trap": trap,
        "seconds": {**dataclasses.asdict(statistics.seconds), "load": load_seconds},
        "instructions": statistics.instructions,
        "collections": execution.collections(),
        "backends": execution.metrics(),
    }
    text = json.dumps(metrics, indent=2)
    if stats == "-":
        say(text)
    else:
        try:
            replace_file(Path(stats), f"{text}\n".encode())
        except OSError as error:
            raise FerryError(f"{stats}: cannot be written: {error.strerror}") from None
