# SPDX-License-Identifier: Apache-2.0
"""`ferry diff`: the same program on several backends, states compared bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import ferryvm
from ferryvm.cli.file import check_writable, naming, refuse_same_file
from ferryvm.cli.language import language_option
from ferryvm.cli.show import against_option, backends_option, chosen_backends, print_table
from ferryvm.errors import FerryError

if TYPE_CHECKING:
    from ferryvm.testing import Comparison, Differ, Schedule
    from ferryvm.testing.report import Result


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@language_option
@backends_option
@against_option
@click.option(
    "--schedule",
    default="none",
    show_default=True,
    type=click.Choice(["none", "random", "environment", "every-boundary"]),
    help="When the program moves between backends.",
)
@click.option("--seed", default=0, show_default=True, help="Of the schedule.")
@click.option("--force-hot", is_flag=True, help="Have compilers take everything for hot.")
@click.option("--force-deopt", is_flag=True, help="Have compilers fail every guard.")
@click.option(
    "--html", type=click.Path(path_type=Path), help="Page to write: all of it, and coverage."
)
def diff(
    files: tuple[Path, ...],
    language: str | None,
    backends: str,
    against: str,
    schedule: str,
    seed: int,
    force_hot: bool,
    force_deopt: bool,
    html: Path | None,
) -> int:
    """Run FILES (.skiff, .fasm, .fvm, or another language) on several backends and compare whole
    states.

    Exit code 0: all agree; 1: a difference was found; 2: something could not be compared.
    """
    from ferryvm.backend import Forcing
    from ferryvm.registry import Registry
    from ferryvm.testing import Differ, Schedule, Verdict

    registry = Registry()
    names = chosen_backends(registry, backends)
    forced = {Forcing.HOT: force_hot, Forcing.DEOPT: force_deopt}
    forcing = frozenset(kind for kind, is_wanted in forced.items() if is_wanted)
    differ = Differ(names, against, registry, forcing=forcing)
    if html is not None:
        _check_page(html, files)
    moving = Schedule(schedule)
    results, faults = _compare(differ, files, language, moving, seed, html is not None)
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


def _compare(
    differ: Differ,
    files: tuple[Path, ...],
    language: str | None,
    schedule: Schedule,
    seed: int,
    for_page: bool,
) -> tuple[list[Result], list[FerryError]]:
    """Each file compared, and what was wrong with those that are no programs.

    `for_page`: with what only the page shows.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from ferryvm.testing.report import Result, examine
    from ferryvm.verify import verify

    results: list[Result] = []
    faults: list[FerryError] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    terminal = Console(stderr=True)
    is_shown = terminal.is_terminal
    with Progress(*columns, console=terminal, transient=True, disable=not is_shown) as bar:
        for number, file in enumerate(files, 1):
            task = bar.add_task(f"{number} of {len(files)}: {file}")
            name = str(file)
            try:
                with naming(file):
                    program = verify(ferryvm.read(file, language=language))
                    found = differ.compare(program, schedule, seed, bar.refresh)
                    if for_page:
                        results.append(
                            examine(
                                differ,
                                name,
                                program,
                                found,
                                seed,
                                bar.refresh,
                                schedule=schedule,
                            )
                        )
                    else:
                        results.append(Result(name, program, tuple(found)))
            except FerryError as error:
                faults.append(error)
            bar.remove_task(task)
    return results, faults


def _show(against: str, found: list[tuple[str, Comparison]]) -> None:
    """Print the table, then a line for whatever is no agreement."""
    from rich.table import Table

    table = Table("program", "backends", "verdict", "moves", "instructions", box=None)
    for name, one in found:
        row = (str(one.moves), str(one.instructions))
        is_failure = one.difference is not None and one.difference.field == "failure"
        verdict = "error" if is_failure else one.verdict.value
        table.add_row(name, ", ".join(one.backends), verdict, *row)
    if found:
        print_table(table)
    for name, one in found:
        text = one.difference or one.reason
        if text is not None:
            who = f"{against} and {', '.join(one.backends)}"
            how = "" if one.is_counted else ", not counting"
            click.echo(f"ferry: {name}: {who}{how}: {text}", err=True)


def _check_page(html: Path, files: tuple[Path, ...]) -> None:
    """Raise FerryError unless the page can be written; asked first, so nothing runs in vain."""
    for file in files:
        refuse_same_file(file, html)
    check_writable(html)
