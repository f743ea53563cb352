# SPDX-License-Identifier: Apache-2.0
"""`ferry bisect`: the first instruction at which a backend diverges from a good one."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

import ferryvm
from ferryvm.cli.argument import ProgramCommand
from ferryvm.cli.duration import check_seconds
from ferryvm.cli.engine import add_hosts
from ferryvm.cli.file import naming
from ferryvm.cli.limit import limited
from ferryvm.cli.option import hosts_option, language_option
from ferryvm.cli.path import FILE
from ferryvm.cli.run_failure import with_source_line
from ferryvm.errors import FerryError
from ferryvm.machine.memory import Limits
from ferryvm.registry import Registry

if TYPE_CHECKING:
    from ferryvm.testing.bisect import Parting, UnpreparedError
    from ferryvm.testing.differential import Differ
    from ferryvm.testing.disagreement import Disagreement
    from ferryvm.testing.schedule import Schedule
    from ferryvm.testing.trace import TraceLine
    from ferryvm.verify import Verified


@dataclasses.dataclass(frozen=True)
class BisectionInput:
    """The input of a command: a program and the backends that are compared on it."""

    program: Verified
    differ: Differ
    bad: str
    schedule: Schedule
    seed: int = 0
    disagreement: Disagreement | None = None


schedule_option = click.option(
    "--schedule",
    type=click.Choice(["random", "environment"]),
    help="What may show it: moves between backends (random), or other floating-point environments "
    "of the thread, too. By default that of the disagreement, random for a program.",
)


def read_case(
    file: Path,
    good: str | None,
    bad: str | None,
    schedule: str | None,
    language: str | None = None,
    hosts: tuple[str, ...] = (),
    arguments: tuple[str, ...] = (),
    limits: Limits | None = None,
) -> BisectionInput:
    """The input in a program or a disagreement file, with the named backends.

    `arguments`: the program's; a disagreement has them in its file. Raises FerryError if the file
    cannot be read, or names and options do not fit.
    """
    from ferryvm.language import installed
    from ferryvm.testing import Differ, Schedule, disagreement
    from ferryvm.verify import verify

    with naming(file):
        if installed().is_program(file, language):
            if bad is None:
                raise FerryError("is a program; name the backend under suspicion with --bad")
            program = verify(ferryvm.read(file, language=language))
            registry = Registry()
            add_hosts(registry, hosts)
            differ = Differ(
                [bad], good or "reference", registry, limits=limits, arguments=arguments
            )
            chosen = schedule or "random"
            return BisectionInput(program, differ, bad, Schedule(chosen))
        if file.suffix == ".ferry":
            raise FerryError("is a saved state, no disagreement; `ferry resume` goes on with it")
        one = disagreement.load(file)
        if arguments:
            raise FerryError("is a disagreement, which has the program's arguments: omit `--`")
        if limits is not None:
            raise FerryError("is a disagreement, which has limits of its own: omit those given")
        program = verify(one.program)
        good, bad = good or one.good, bad or one.bad
        names = one.backends if bad in one.backends and good == one.good else (bad,)
        changed = dataclasses.replace(one, good=good, bad=bad, backends=names)
        moving = one.schedule if schedule is None else Schedule(schedule)
        differ = changed.differ()
        add_hosts(differ.registry, hosts)
        return BisectionInput(program, differ, bad, moving, one.seed, one)


@contextlib.contextmanager
def spinning(text: str) -> Iterator[Callable[[str], None]]:
    """A spinner on a terminal's standard error; call it with a text to show."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    terminal = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    hidden = not terminal.is_terminal
    with Progress(*columns, console=terminal, transient=True, disable=hidden) as bar:
        task = bar.add_task(text)
        yield lambda now: bar.update(task, description=now)


@click.command(cls=ProgramCommand)
@click.argument("file", type=FILE)
@click.option("--good", metavar="NAME", help="Backend that is right (reference).")
@click.option("--bad", metavar="NAME", help="Backend under suspicion.")
@language_option
@click.option(
    "--seconds",
    type=click.FloatRange(0.1),
    default=60.0,
    show_default=True,
    help="Give up after so long.",
)
@schedule_option
@hosts_option
@limited
def bisect(
    file: Path,
    good: str | None,
    bad: str | None,
    language: str | None,
    seconds: float,
    schedule: str | None,
    hosts: tuple[str, ...],
    limits: Limits | None,
    arguments: tuple[str, ...],
) -> None:
    """Find the first instruction at which a backend diverges from a good one.

    FILE is a program (.skiff, .fasm, .fvm) or a file of a disagreement, which names the backends
    itself. ARGUMENTS, after `--`, are the program's. Exit code 0: found; 2: something was unusable,
    the backends agree, or time ran out.
    """
    from ferryvm.testing.bisect import Bisector, LateError, UnpreparedError

    check_seconds("--seconds", seconds)
    case = read_case(file, good, bad, schedule, language, hosts, arguments, limits)
    with naming(file), spinning(f"{file}: searching") as show:
        steps = itertools.count(1)
        unprepared: UnpreparedError | None = None
        try:
            bisector = Bisector(
                case.differ,
                case.bad,
                case.program,
                lambda: show(f"{file}: searching, step {next(steps)}"),
                seconds=seconds,
                schedule=case.schedule,
            )
            names = (case.differ.against, *case.differ.backends)
            parting = bisector.find(seed=case.seed, names=names)
        except LateError as error:
            raise FerryError(f"{error}; a larger --seconds allows more") from None
        except UnpreparedError as error:
            unprepared = error
    if unprepared is not None:
        show_unprepared(unprepared)
        return
    if parting is None:
        raise FerryError(
            f"{file}: {case.differ.against} and {case.bad} agree in all "
            f"{bisector.boundaries} instructions: nothing to bisect"
        )
    show_parting(parting)


def show_unprepared(error: UnpreparedError) -> None:
    """Print that a backend fails before the program starts."""
    click.echo(f"{error.bad} goes wrong before the program begins")
    click.echo("pc: none, preparing the program failed")
    click.echo(
        f"first difference: failure: none on {error.good}, {error.difference.right} on {error.bad}"
    )


_MODES = {
    "counting": "{bad} goes wrong when it counts instructions",
    "not counting": "{bad} goes wrong only when it does not count instructions, from here on",
    "moving": "{bad} goes wrong only when it is entered and left in the middle of the program",
    "entered, not counting": "{bad} goes wrong only when it is entered in the middle of the "
    "program and does not count instructions",
}


def show_parting(parting: Parting) -> None:
    """Print the divergence of two backends, what both did, and both states."""
    from rich.table import Table

    from ferryvm.cli.show import print_table

    one = parting
    from ferryvm.testing.environment import condition

    click.echo(_MODES[one.mode.value].format(bad=one.bad) + condition(one.environment))
    for region in one.regions:
        click.echo(f"  in {region}")
    place = f"pc {one.pc}: {one.mnemonic}, after {one.number} instructions"
    if one.entered < one.number:
        place += f"; {one.bad} must be entered after {one.entered} or earlier"
    if one.position is not None:
        place = with_source_line(f"{one.position}: {place}\n", one.position).rstrip("\n")
    click.echo(place)
    difference = one.difference
    click.echo(
        f"first difference: {difference.field}: {difference.left} on {one.good}, "
        f"{difference.right} on {one.bad}"
    )
    click.echo()
    show_traces(one.good, one.bad, one.good_trace, one.bad_trace)
    click.echo()
    title = "at the end" if "not counting" in one.mode.value else "then"
    table = Table("", title, one.good, one.bad, box=None)
    for field, left, right in one.after:
        table.add_row("*" if left != right else "", field, left, right)
    print_table(table)


def show_traces(
    good: str,
    bad: str,
    left: tuple[TraceLine, ...],
    right: tuple[TraceLine, ...],
    is_current: bool = True,
) -> None:
    """Print two traces side by side; a `*` marks the line where they diverge, if they still do."""
    from rich.table import Table

    from ferryvm.cli.show import print_table

    table = Table("", good, bad, box=None)
    is_marked = not is_current
    for number in range(max(len(left), len(right))):
        pair = [str(side[number]) if number < len(side) else "" for side in (left, right)]
        # If the traces are equal to their ends, the states after the last line differ.
        is_last = number + 1 == max(len(left), len(right))
        mark = "*" if not is_marked and (pair[0] != pair[1] or is_last) else ""
        is_marked = is_marked or bool(mark)
        table.add_row(mark, *pair)
    print_table(table)
