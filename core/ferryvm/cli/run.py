# SPDX-License-Identifier: Apache-2.0
"""`ferry run` and `ferry resume`: only a program's output goes to stdout."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import ferryvm
from ferryvm.atomic_file import replace_file
from ferryvm.cli import termination
from ferryvm.cli.argument import ProgramCommand
from ferryvm.cli.device import device_option
from ferryvm.cli.engine import make_engine, policy_option, waiting_output, write
from ferryvm.cli.file import FILE, FilePath, check_writable, naming, refuse_same_file
from ferryvm.cli.host import hosts_option
from ferryvm.cli.language import language_option
from ferryvm.cli.limit import limited
from ferryvm.cli.run_failure import Interrupted, Trapped, host_failure, with_source_line
from ferryvm.engine import Engine, Execution, ProgramInterrupted, RunResult, TrapError
from ferryvm.errors import FerryError
from ferryvm.machine.control import UNLIMITED, Status
from ferryvm.machine.memory import Limits

if TYPE_CHECKING:
    from ferryvm.engine.host_log import HostLog


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that `run` and `resume` share."""
    for option in reversed(
        (
            click.option("--backend", metavar="NAME",
                         help="One backend alone; see `ferry backends`."),
            device_option,
            policy_option,
            hosts_option,
            click.option("--trace", type=FilePath(dir_okay=False),
                         metavar="FILE", help="Write compilations and transfers as a trace for "
                         "Perfetto or about:tracing; slows transfers down."),
            click.option("--fuel", type=click.IntRange(0, UNLIMITED), metavar="N",
                         help="Stop after exactly N instructions."),
            click.option("--count", is_flag=True, help="Count instructions exactly."),
            click.option("--save", type=FilePath(dir_okay=False),
                         metavar="STATE", help="Where to save the state when the program stops "
                         "before its end (fuel, Ctrl-C)."),
            click.option("--record", type=FilePath(dir_okay=False),
                         metavar="LOG", help="Write the calls of host functions, with their "
                         "results, to a file; see --replay."),
            click.option("--replay", type=FilePath(dir_okay=False),
                         metavar="LOG", help="Take the results of host functions from a file that "
                         "--record wrote; another call than its next one is an error."),
            click.option("--stats", metavar="FILE", help="Write metrics as JSON; - for stdout."),
            limited,
        )
    ):  # fmt: skip
        command = option(command)
    return command


@click.command(cls=ProgramCommand)
@click.argument("file", type=FILE)
@click.option("--peephole/--no-peephole", default=None, help="Optimise (Skiff on, assembly off).")
@language_option
@_options
def run(
    file: Path,
    peephole: bool | None,
    language: str | None,
    limits: Limits | None,
    **options: Any,
) -> None:
    """Run FILE, a program (.skiff, .fasm, .fvm, or a plugin's language) from its start. ARGUMENTS, after `--`, are
    the program's."""
    began = time.perf_counter()
    if options["save"] is not None:  # a state may replace the state that it came from
        refuse_same_file(file, options["save"])

    def start(engine: Engine, record: HostLog | None, replay: HostLog | None) -> Execution:
        program = ferryvm.read(file, peephole, language)
        return engine.start(program, record=record, replay=replay)

    _run(file, start, _engine(limits, **options), began, **options)


@click.command(cls=ProgramCommand)
@click.argument("state", type=FILE)
@_options
def resume(state: Path, limits: Limits | None, **options: Any) -> None:
    """Continue a saved STATE, on any backend. ARGUMENTS, after `--`, are the program's."""
    began = time.perf_counter()
    engine = _engine(limits, **options)

    def start(engine: Engine, record: HostLog | None, replay: HostLog | None) -> Execution:
        try:
            return engine.resume(state, record=record, replay=replay)
        except FerryError:
            from ferryvm.language import installed  # a hint costs only those who need it

            if state.is_file() and installed().is_program(state):
                message = f"{state}: is a program, no saved state; `ferry run` starts it"
                raise FerryError(message) from None
            raise

    _run(state, start, engine, began, **options)


def _engine(
    limits: Limits | None,
    backend: str | None,
    policy: Path | None,
    device: str | None,
    save: Path | None,
    trace: Path | None,
    record: Path | None,
    hosts: tuple[str, ...],
    arguments: tuple[str, ...],
    **_others: Any,
) -> Engine:
    has_to_end = any(path is not None for path in (save, trace, record))
    output = waiting_output(1) if has_to_end else functools.partial(write, 1)
    return make_engine(
        backend,
        policy,
        device,
        limits=limits,
        output=output,
        hosts=hosts,
        arguments=arguments,
    )


def _run(
    file: Path,
    start: Callable[[Engine, HostLog | None, HostLog | None], Execution],
    engine: Engine,
    began: float,
    trace: Path | None,
    fuel: int | None,
    count: bool,
    save: Path | None,
    stats: str | None,
    record: Path | None,
    replay: Path | None,
    **_others: Any,
) -> None:
    if save is not None:
        check_writable(save)
    if record is not None and replay is not None:
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
            _drive(execution, load_seconds, fuel, count, save, stats)
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


def _drive(
    execution: Execution,
    load_seconds: float,
    fuel: int | None,
    count: bool,
    save: Path | None,
    stats: str | None,
) -> None:
    try:
        result = execution.run(fuel, count)
    except (ProgramInterrupted, termination.StoppedWaiting):
        _save(execution, save)
        stopped = ProgramInterrupted(execution.machine)
        raise Interrupted(with_source_line(str(stopped), stopped.position)) from None
    except TrapError as error:
        _report(stats, execution, load_seconds, Status.TRAP, trap=error.kind.name)
        raise Trapped(with_source_line(str(error), error.position)) from None
    except Exception as error:
        failure = host_failure(execution.machine, error)
        if failure is None and not isinstance(error, OSError):
            raise
        _save(execution, save)  # the program is at that call
        raise failure or error from None
    if result.status is Status.FUEL:
        where = execution.machine.position or f"pc {execution.machine.control.pc}"
        click.echo(f"ferry: {where}: out of fuel after {fuel} instructions", err=True)
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
    click.echo(f"ferry: state saved in {path}", err=True)


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
    value = result.value if result else None
    if isinstance(value, float) and not math.isfinite(value):
        value = str(value)  # type: ignore[assignment]  # JSON has no such numbers
    statistics = execution.statistics
    metrics = {
        "backend": statistics.backend,
        "status": status.name.lower(),
        "result": value,
        "result_type": str(result.type) if result and result.type else None,
        "result_bits": f"{result.bits:#x}" if result and result.bits is not None else None,
        "trap": trap,
        "seconds": {**dataclasses.asdict(statistics.seconds), "load": load_seconds},
        "instructions": statistics.instructions,
        "collections": execution.collections(),
        "backends": execution.metrics(),
    }
    import json  # hardly any run writes metrics

    text = json.dumps(metrics, indent=2)
    if stats == "-":
        click.echo(text)
    else:
        try:
            replace_file(Path(stats), f"{text}\n".encode())
        except OSError as error:
            raise FerryError(f"{stats}: cannot be written: {error.strerror}") from None
