# SPDX-License-Identifier: Apache-2.0
"""`ferry diff`: the same program on several backends, states compared bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import ferryvm
from ferryvm.backend import Forcing
from ferryvm.cli.program import naming, refuse_same_file
from ferryvm.cli.show import print_table
from ferryvm.durable import probe_file
from ferryvm.errors import FerryError
from ferryvm.testing import Comparison, Differ, Schedule, Verdict
from ferryvm.verify import verify

if TYPE_CHECKING:
    from ferryvm.testing.report import Result


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--backends", default="all", show_default=True, metavar="A,B,...", help="Backends to compare."
)
@click.option(
    "--against",
    default="reference",
    show_default=True,
    metavar="NAME",
    help="Backend that they are held against.",
)
@click.option(
    "--schedule",
    default="none",
    show_default=True,
    type=click.Choice([schedule.value for schedule in Schedule]),
    help="When the program moves between backends.",
)
@click.option("--seed", default=0, show_default=True, help="Of the random schedule.")
@click.option("--force-hot", is_flag=True, help="Have compilers take everything for hot.")
@click.option("--force-deopt", is_flag=True, help="Have compilers fail every guard.")
@click.option(
    "--html", type=click.Path(path_type=Path), help="Page to write: all of it, and coverage."
)
def diff(
    files: tuple[Path, ...],
    backends: str,
    against: str,
    schedule: str,
    seed: int,
    force_hot: bool,
    force_deopt: bool,
    html: Path | None,
) -> int:
    """Run FILES (.skiff, .fasm, .fvm) on several backends and compare whole states.

    Exit code 0: all agree; 1: a difference was found; 2: something could not be compared.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Table

    from ferryvm.registry import Registry

    registry = Registry()
    names = registry.names if backends == "all" else tuple(backends.split(","))
    forced = {Forcing.HOT: force_hot, Forcing.DEOPT: force_deopt}
    forcing = frozenset(kind for kind, is_wanted in forced.items() if is_wanted)
    differ = Differ(names, against, registry, forcing=forcing)
    results: list[Result] = []
    if html is not None:
        _check_page(html, files)
    table = Table("program", "backends", "verdict", "moves", "instructions", box=None)
    found: list[tuple[Path, Comparison]] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    terminal = Console(stderr=True)
    is_shown = terminal.is_terminal
    with Progress(*columns, console=terminal, transient=True, disable=not is_shown) as bar:
        for file in files:
            task = bar.add_task(str(file))
            with naming(file):
                program = verify(ferryvm.read(file))
                comparisons = differ.compare(program, Schedule(schedule), seed, bar.refresh)
                if html is not None:
                    from ferryvm.testing.report import examine

                    seen = examine(differ, str(file), program, comparisons, seed, bar.refresh)
                    results.append(seen)
            bar.remove_task(task)
            found += [(file, comparison) for comparison in comparisons]
    for file, one in found:
        row = (str(one.moves), str(one.instructions))
        table.add_row(str(file), ", ".join(one.backends), one.verdict.value, *row)
    print_table(table)
    for file, one in found:
        if one.verdict is not Verdict.AGREE:
            text = one.difference if one.difference else one.reason
            click.echo(f"ferry: {file}: {against} and {', '.join(one.backends)}: {text}", err=True)
    if html is not None:
        from ferryvm.testing.report import report, write

        write(html, report(differ, Schedule(schedule), seed, results))
    verdicts = {one.verdict for _, one in found}
    return 1 if Verdict.DISAGREE in verdicts else 2 if Verdict.UNSUPPORTED in verdicts else 0


def _check_page(html: Path, files: tuple[Path, ...]) -> None:
    """Raise FerryError unless the page can be written; asked first, so nothing runs in vain."""
    for file in files:
        refuse_same_file(file, html)
    try:
        probe_file(html)
    except OSError as error:
        raise FerryError(f"{html}: cannot be written: {error.strerror}") from None
