# SPDX-License-Identifier: Apache-2.0
"""`ferry diff`: the same program on several backends, states compared bit for bit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

import ferryvm
from ferryvm.cli.argument import ProgramCommand
from ferryvm.cli.duration import check_seconds
from ferryvm.cli.engine import add_hosts
from ferryvm.cli.file import check_writable, naming, refuse_same_file
from ferryvm.cli.limit import limited
from ferryvm.cli.mixed import mixed_option, mixed_registry, tested_backends
from ferryvm.cli.option import hosts_option, language_option
from ferryvm.cli.path import FILE
from ferryvm.cli.show import against_option, backends_option, print_table
from ferryvm.errors import FerryError
from ferryvm.machine.control import UNLIMITED
from ferryvm.machine.memory import Limits
from ferryvm.testing.trial import MOST_INSTRUCTIONS

if TYPE_CHECKING:
    from rich.progress import TaskID

    from ferryvm.deadline import Deadline
    from ferryvm.testing import Comparison, Differ, Schedule
    from ferryvm.testing.report import Result


@click.command(cls=ProgramCommand)
@click.argument("files", nargs=-1, required=True, type=FILE)
@language_option
@backends_option
@against_option
@hosts_option
@click.option(
    "--schedule",
    default="none",
    show_default=True,
    type=click.Choice(
        ["none", "random", "environment", "every-boundary", "collect", "suspend", "independence"]
    ),
    help="When the program moves between backends.",
)
@click.option("--seed", default=0, show_default=True, help="Of the schedule.")
@mixed_option
@click.option("--force-hot", is_flag=True, help="Have compilers take everything for hot.")
@click.option("--force-deopt", is_flag=True, help="Have compilers fail every guard.")
@click.option("--force-parallel", is_flag=True, help="Run items of all launches out of order.")
@click.option(
    "--instructions",
    type=click.IntRange(1, UNLIMITED),
    default=MOST_INSTRUCTIONS,
    show_default=True,
    metavar="N",
    help="Compare a program that runs longer as it stands after N instructions.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Stop after about so long, with what was compared until then.",
)
@click.option("--progress", is_flag=True, help="Tell of long work, even without a terminal.")
@click.option("--html", type=FILE, help="Page to write: all of it, and coverage.")
@limited
def diff(
    files: tuple[Path, ...],
    language: str | None,
    backends: str,
    against: str,
    hosts: tuple[str, ...],
    schedule: str,
    seed: int,
    policy: Path | None,
    force_hot: bool,
    force_deopt: bool,
    force_parallel: bool,
    instructions: int,
    seconds: float | None,
    progress: bool,
    html: Path | None,
    limits: Limits | None,
    arguments: tuple[str, ...],
) -> int:
    """Run FILES (.skiff, .fasm, .fvm, or another language) on several backends and compare whole
    states. ARGUMENTS, after `--`, are those of each program.

    Exit code 0: all agree; 1: a difference was found; 2: something could not be compared, or not
    within --seconds.
    """
    from ferryvm.backend import Forcing
    from ferryvm.deadline import Deadline
    from ferryvm.testing import Differ, Schedule, Verdict

    registry = mixed_registry(policy)
    add_hosts(registry, hosts)
    names = tested_backends(registry, backends)
    forced = {
        Forcing.HOT: force_hot,
        Forcing.DEOPT: force_deopt,
        Forcing.PARALLEL: force_parallel,
    }
    forcing = frozenset(kind for kind, is_wanted in forced.items() if is_wanted)
    check_seconds("--seconds", seconds)
    differ = Differ(
        names,
        against,
        registry,
        limits=limits,
        most=instructions,
        forcing=forcing,
        arguments=arguments,
    )
    deadline = Deadline(seconds)
    if html is not None:
        _check_page(html, files)
    moving = Schedule(schedule)
    if html is not None:
        differ.warm_up()
    comparing = _Comparing(differ, moving, seed, deadline, progress, html is not None)
    results, faults = comparing.files(files, language)
    found = [(result.name, one) for result in results for one in result.comparisons]
    _show(against, found)
    for fault in faults:
        click.echo(f"ferry: {fault}", err=True)
    if html is not None:
        from ferryvm.testing.report import report, write

        write(html, report(differ, moving, seed, results))
    verdicts = {one.verdict for _, one in found}
    if Verdict.DISAGREE in verdicts:
        return 1
    return 2 if faults or Verdict.UNSUPPORTED in verdicts else 0


@dataclasses.dataclass
class _Comparing:
    """A comparison of programs: its settings and its display."""

    differ: Differ
    schedule: Schedule
    seed: int
    deadline: Deadline
    is_reported: bool
    """True to report progress even if standard error is not a terminal."""
    for_page: bool
    """True to collect data that only the page shows."""

    def files(
        self, files: tuple[Path, ...], language: str | None
    ) -> tuple[list[Result], list[FerryError]]:
        """The result of each file, and the faults of those that are not programs or exceeded their
        time."""
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        results: list[Result] = []
        faults: list[FerryError] = []
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        terminal = Console(stderr=True)
        is_shown = terminal.is_terminal
        with Progress(*columns, console=terminal, transient=True, disable=not is_shown) as bar:
            for number, file in enumerate(files, 1):
                what = f"{number} of {len(files)}: {file}"
                if results and self.deadline.is_over:
                    faults.append(
                        FerryError(f"{file}: not compared: the time of --seconds is over")
                    )
                    continue
                task = bar.add_task(what)

                def show(what: str = what, task: TaskID = task) -> None:
                    name, instructions = self.differ.in_progress
                    text = f"{what}: {name}, {instructions:,} instructions"
                    bar.update(task, description=text, refresh=True)
                    if self.is_reported and not is_shown:
                        click.echo(f"ferry: {text}", err=True)

                try:
                    with naming(file):
                        results.append(self._result(file, language, show))
                    self._check_whole(file, results[-1])
                except FerryError as error:
                    faults.append(error)
                bar.remove_task(task)
        return results, faults

    def _result(self, file: Path, language: str | None, show: Callable[[], None]) -> Result:
        from ferryvm.testing.report import Result, examine
        from ferryvm.verify import verify

        program = verify(ferryvm.read(file, language=language))
        expected = self.differ.finish(self.differ.start(program), show, self.deadline)
        found = self.differ.compare(
            program, self.schedule, self.seed, show, expected, self.deadline
        )
        if not expected.is_over:
            where = f"after {expected.instructions} instructions"
            click.echo(f"ferry: {file}: still runs {where}: compared as it stands there", err=True)
        if self.for_page:
            return examine(self.differ, str(file), program, found, self.seed, show)
        return Result(str(file), program, tuple(found))

    def _check_whole(self, file: Path, result: Result) -> None:
        """Raise FerryError if time ran out before all were compared."""
        if self.schedule.value == "none":
            done = {name for one in result.comparisons for name in one.backends}
            left = ", ".join(name for name in self.differ.backends if name not in done)
            if left:
                raise FerryError(f"{file}: the time of --seconds is over: not compared: {left}")


def _show(against: str, found: list[tuple[str, Comparison]]) -> None:
    """Print the table, then a line for each result that is not agreement."""
    from rich.table import Table

    table = Table("program", "backends", "verdict", "moves", "instructions", box=None)
    for name, one in found:
        row = (str(one.moves), str(one.instructions))
        verdict = "error" if _failure(one) else one.verdict.value
        table.add_row(name, ", ".join(one.backends), verdict, *row)
    if found:
        print_table(table)
    for name, one in found:
        text = one.difference or one.reason
        if text is None:
            continue
        who = f"{against} and {', '.join(one.backends)}"
        how = "" if one.is_counted else ", not counting"
        line = f"{who}{how}: {text}"
        if one.backends == (against,):  # the check of independence, which compares with itself
            line = _failure(one) or line
        click.echo(f"ferry: {name}: {line}", err=True)


def _failure(one: Comparison) -> str | None:
    """The exception of a backend, or the message of a check."""
    found = one.difference
    return found.right if found is not None and found.field == "failure" else None


def _check_page(html: Path, files: tuple[Path, ...]) -> None:
    """Raise FerryError unless the page can be written. Called before the comparison, so that no
    time is lost."""
    for file in files:
        refuse_same_file(file, html)
    check_writable(html)
