# SPDX-License-Identifier: Apache-2.0
"""`ferry fuzz`: random programs on several backends, tried in child processes, which may crash."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferryvm.cli import termination
from ferryvm.cli.duration import check_seconds
from ferryvm.cli.limit import Size
from ferryvm.cli.mixed import mixed_option, mixed_registry, tested_backends
from ferryvm.cli.option import hosts_option
from ferryvm.cli.path import FILE, FolderPath
from ferryvm.cli.show import against_option, backends_option, print_table
from ferryvm.policy.machine import cpus

if TYPE_CHECKING:
    from ferryvm.testing.fuzz import Campaign, Report

_PROGRAMS = 1000
_MOST_FINDINGS = 100
_LAST = 2**63 - 1
"""The largest number of a program: it must fit the memory that processes share."""


@click.command()
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="As many as fit.")
@click.option(
    "--programs", type=click.IntRange(min=1), help=f"How many programs ({_PROGRAMS} if left out)."
)
@click.option("--seed", type=click.IntRange(min=0), help="Of the programs; a new one if left out.")
@click.option(
    "--first",
    default=0,
    show_default=True,
    type=click.IntRange(0, _LAST),
    help="Number of the first.",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; one a processor if left out.")
@backends_option
@against_option
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(["bytecode", "skiff", "kernel", "image", "state", "python", "map"]),
    help="What is generated; several are taken in turn [nine times bytecode, once skiff].",
)
@click.option(
    "--schedule",
    "schedules",
    multiple=True,
    type=click.Choice(
        ["none", "random", "environment", "every-boundary", "collect", "suspend", "independence"]
    ),
    help="Also move programs between backends; may be given several times.",
)
@click.option("--force-hot", is_flag=True, help="Have compilers take everything for hot.")
@click.option("--force-deopt", is_flag=True, help="Have compilers fail every guard.")
@click.option("--force-parallel", is_flag=True, help="Run items of all launches out of order.")
@mixed_option
@hosts_option
@click.option("--weights", type=FILE, help="Weights of the generator.")
@click.option(
    "--object-limit",
    type=Size(),
    metavar="SIZE",
    help="Bytes of objects that a program may have [several in turn].",
)
@click.option("--save", type=FolderPath(), help="Folder for what is found.")
@click.option(
    "--findings",
    default=_MOST_FINDINGS,
    show_default=True,
    type=click.IntRange(min=1),
    help="Stop after so many.",
)
@click.option(
    "--thorough-every",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Of so many programs compile one in full; the others quickly, in one form.",
)
@click.option(
    "--patience",
    default=10.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    help="Processor seconds after which a backend that does not come back is stopped; six times as many for kernels.",
)
def fuzz(
    seconds: float | None,
    programs: int | None,
    seed: int | None,
    first: int,
    jobs: int | None,
    backends: str,
    against: str,
    kinds: tuple[str, ...],
    schedules: tuple[str, ...],
    force_hot: bool,
    force_deopt: bool,
    force_parallel: bool,
    policy: Path | None,
    hosts: tuple[str, ...],
    weights: Path | None,
    object_limit: int | None,
    save: Path | None,
    findings: int,
    thorough_every: int,
    patience: float,
) -> int:
    """Run random programs on several backends and compare whole states.

    Exit code 0: nothing was found; 1: something was; 2: a backend could not be judged.
    """
    from ferryvm.backend import Forcing
    from ferryvm.machine.object_space import ObjectSpace
    from ferryvm.testing import Differ, Schedule
    from ferryvm.testing.fuzz import MIX, Campaign, CampaignPlan
    from ferryvm.testing.fuzz.host import load_hosts
    from ferryvm.testing.generate import MUTATED, OF_PYTHON, ProgramKind
    from ferryvm.testing.generate.weights import Weights

    if programs is not None and seconds is not None:
        raise click.UsageError("--programs and --seconds: one of the two says when to stop")
    for option, value in (("--seconds", seconds), ("--patience", patience)):
        check_seconds(option, value)
    if programs is None and seconds is None:
        programs = _PROGRAMS
    registry = mixed_registry(policy)
    if hosts and kinds and all(ProgramKind(kind) in MUTATED for kind in kinds):
        raise click.UsageError(f"--hosts: no program of --kind {kinds[0]} calls host functions")
    of_python = [each for each in kinds if ProgramKind(each) in OF_PYTHON]
    if of_python and (schedules or hosts or force_hot or force_deopt or force_parallel):
        what = "runs without --schedule, --hosts and --force-..."
        raise click.UsageError(f"--kind {of_python[0]} {what}")
    load_hosts(registry, hosts)
    names = tested_backends(registry, backends)
    differ = Differ(names, against, registry)
    forced = {
        Forcing.HOT: force_hot,
        Forcing.DEOPT: force_deopt,
        Forcing.PARALLEL: force_parallel,
    }
    if weights is not None:
        Weights.load(weights)
    if object_limit is not None:
        ObjectSpace(object_limit)  # raises what each program would
    moving = dict.fromkeys([Schedule.NONE, *map(Schedule, schedules)])
    plan = CampaignPlan(
        seed=random.SystemRandom().randrange(1 << 32) if seed is None else seed,
        backends=differ.backends,
        against=against,
        kinds=tuple(map(ProgramKind, kinds)) or MIX,
        schedules=tuple(moving),
        forcing=frozenset(kind for kind, is_wanted in forced.items() if is_wanted),
        policy=None if policy is None else str(policy),
        weights=None if weights is None else str(weights),
        save=None if save is None else str(save),
        object_limit=object_limit,
        thorough_every=thorough_every,
        hosts=hosts,
        patience=patience,
    )
    campaign = Campaign(plan, jobs or cpus(), programs, seconds, first, findings)
    came: list[int] = []
    termination.be_patient()
    try:
        with _terminable(came):
            report = _run(campaign, programs, seconds)
    except KeyboardInterrupt:
        if not came:
            raise
        report = campaign.report
        report.is_interrupted = True
    _print(report)
    if report.is_interrupted:
        click.echo(f"ferry: {'terminated' if came else 'interrupted'}", err=True)
        return 143 if came else 130
    if report.findings:
        return 1
    return 2 if report.uncompared or report.is_idle else 0


@contextlib.contextmanager
def _terminable(came: list[int]) -> Iterator[None]:
    """While active, SIGTERM acts as Ctrl-C, and is recorded in `came`."""

    def handle(number: int, _frame: object) -> None:
        came.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # takes signals
        yield
        return
    previous = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _run(campaign: Campaign, programs: int | None, seconds: float | None) -> Report:
    """Run a campaign, with a progress bar on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    terminal = Console(stderr=True)
    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(
        *columns, console=terminal, transient=True, disable=not terminal.is_terminal
    ) as bar:
        task = bar.add_task("starting", total=programs or seconds)

        def show(report: Report) -> None:
            text = f"{report.programs} programs, {report.rate * report.jobs:.0f}/s"
            done = report.programs if programs else report.seconds
            bar.update(
                task, description=f"{text}, findings: {len(report.findings)}", completed=done
            )

        return campaign.run(show)


def _print(report: Report) -> None:
    """Print the table, then the findings."""
    from rich.table import Table

    from ferryvm.testing.fuzz import TrialOutcome
    from ferryvm.testing.generate import OF_PYTHON, Corner, ProgramKind

    table = Table("kind", box=None)
    for name in ("programs", *(outcome.value for outcome in TrialOutcome)):
        table.add_column(name, justify="right")
    for kind in dict.fromkeys(report.plan.kinds):
        counts = [report.outcomes[kind, outcome] for outcome in TrialOutcome]
        table.add_row(kind.value, str(sum(counts)), *map(str, counts))
    print_table(table)
    if ProgramKind.BYTECODE in report.plan.kinds:
        rare = ", ".join(f"{report.corners[corner]} {corner.value}" for corner in Corner)
        click.echo(f"in bytecode, programs with: {rare}")
    jobs = "1 job" if report.jobs == 1 else f"{report.jobs} jobs"
    compiled = f", {report.compiled} regions compiled" if report.compiled else ""
    if report.plan.thorough_every > 1:
        compiled += f", one program in {report.plan.thorough_every} in full"
    click.echo(
        f"seed {report.plan.seed}, {jobs}: {report.programs} programs in {report.seconds:.1f} s, "
        f"{report.rate:.0f} a second and job" + compiled
    )
    for name, reason in report.reasons.items():
        could = (
            "could run none of them" if name in report.uncompared else "could not run all of them"
        )
        click.echo(f"ferry: {name} {could}: {reason}", err=True)
    if not report.findings and not report.is_interrupted:
        for name in report.uncompared:
            if name not in report.reasons:
                text = f"{name} was compared on none of them: nothing is shown"
                click.echo(f"ferry: {text}", err=True)
        if report.is_idle:
            click.echo("ferry: no region was compiled: nothing is shown of compilers", err=True)
    for group in report.groups:
        finding = group[0]
        at = f" at {finding.mnemonic}" if finding.mnemonic else ""
        times = f" ({len(group)} times)" if len(group) > 1 else ""
        click.echo(f"ferry: {finding.outcome.value}{at}{times}: {finding.text}", err=True)
        click.echo(f"    {finding.path or report.plan.command(finding.number)}", err=True)
        if finding.kind in OF_PYTHON:
            click.echo(finding.detail, err=True)
