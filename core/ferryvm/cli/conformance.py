# SPDX-License-Identifier: Apache-2.0
"""`ferry conformance`: the conformance suite without pytest, and its cases as files."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferryvm.cli.path import FILE, FolderPath
from ferryvm.cli.show import print_table
from ferryvm.errors import FerryError, UnknownNameError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from ferryvm.testing.conformance.expected import Table
    from ferryvm.testing.conformance.suite import Item, ItemOutcome

_PATIENCE = 60.0


@click.command()
@click.option("--backend", metavar="NAME", help="Backend to test.")
@click.option("--xfail", type=FILE, help="TOML file with the failures that are expected.")
@click.option(
    "--case", "pattern", default="*", metavar="PATTERN", help="Only cases whose name matches."
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0, min_open=True, max=1e6),
    metavar="SECONDS",
    help=f"Seconds after which a case has failed; {_PATIENCE:g} if not given.",
)
@click.option("--list", "is_list", is_flag=True, help="List the cases and do nothing.")
@click.option(
    "--export", "folder", type=FolderPath(), help="Write the cases as JSON Lines to a folder."
)
def conformance(
    backend: str | None,
    xfail: Path | None,
    pattern: str,
    patience: float | None,
    is_list: bool,
    folder: Path | None,
) -> int:
    """Run the conformance suite on a backend.

    Exit code 0: all cases within its capabilities passed; 1: something failed; 2: the suite could
    not be run; 130: interrupted.
    """
    from ferryvm.testing.conformance.expected import read_expected

    given = {"--list": is_list, "--export": folder, "--backend": backend}
    exclusive = [option for option, value in given.items() if value or value == ""]
    if len(exclusive) > 1:
        raise click.UsageError(f"{' and '.join(exclusive)} do not go together")
    if backend is None and (xfail is not None or patience is not None):
        raise click.UsageError("--xfail and --patience are for a backend: name it with --backend")
    chosen = _choose(pattern)
    if is_list:
        for item in chosen:
            click.echo(f"{item.label:44} {item.about}")
        return 0
    if folder is not None:
        _export(chosen, folder)
        return 0
    if backend is None:
        raise click.UsageError("name a backend with --backend; `ferry backends` lists them")
    table = read_expected(xfail) if xfail is not None else {}
    return _Run(backend, chosen, table).run(patience or _PATIENCE)


def _choose(pattern: str) -> list[Item]:
    from ferryvm.testing.conformance.suite import checks, select

    chosen = select(pattern)
    if not chosen:
        raise UnknownNameError("case", pattern, [check.label for check in checks()])
    return chosen


def _export(chosen: Sequence[Item], folder: Path) -> None:
    from ferryvm.engine import runnable
    from ferryvm.registry import Registry
    from ferryvm.testing.conformance.export import export
    from ferryvm.testing.conformance.suite import ORACLE, items

    scripted = [item for item in items() if item in chosen]
    with _progress() as bar:
        task = bar.add_task(str(folder), total=len(scripted))
        export(scripted, folder, runnable(Registry(), ORACLE), lambda: bar.advance(task))


def _progress() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    terminal = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(
        *columns,
        TimeElapsedColumn(),
        console=terminal,
        transient=True,
        redirect_stdout=False,  # stdout may be a file: it has to get the text, not the terminal
        disable=not terminal.is_terminal,
    )


class _Run:
    """One run of the suite, and its results so far."""

    def __init__(self, name: str, chosen: Sequence[Item], table: Table) -> None:
        self.name, self.chosen, self.table = name, chosen, table
        self.raw: dict[str, ItemOutcome] = {}
        """Results by label, without the table of expected failures."""
        self.outcomes: dict[str, ItemOutcome] = {}
        self.began = time.perf_counter()

    def run(self, patience: float) -> int:
        """Run the suite and print everything; the exit code."""
        is_interrupted = False
        with _progress() as bar:
            task = bar.add_task(self.name, total=len(self.chosen))
            try:
                self._run(patience, bar, task)
            except KeyboardInterrupt:
                is_interrupted = True
        self._judge_table()
        return self._report(is_interrupted)

    def _run(self, patience: float, bar: Progress, task: TaskID) -> None:
        from ferryvm.testing.conformance.expected import expect
        from ferryvm.testing.conformance.isolation import run_apart

        bar.update(task, description=f"{self.name}: {self.chosen[0].group}")
        with contextlib.closing(run_apart(self.chosen, self.name, patience)) as outcomes:
            for item, outcome in zip(self.chosen, outcomes, strict=True):
                self.raw[item.label] = outcome
                self.outcomes[item.label] = expect(outcome, self.table.get(item.label))
                self._show(item, bar)
                bar.update(task, description=f"{self.name}: {item.group}", advance=1)

    def _show(self, item: Item, bar: Progress | None = None) -> None:
        """Print a failure at once, so that it is not lost if the run ends early."""
        from ferryvm.testing.conformance.suite import ItemVerdict

        outcome = self.outcomes[item.label]
        if outcome.verdict is not ItemVerdict.FAILED:
            return
        if bar is not None:
            bar.stop()
        click.echo(f"failed {item.label}: {item.about}")
        click.echo(outcome.message)
        click.echo(f"only this: ferry conformance --backend {self.name} --case {item.label}\n")
        if bar is not None:
            bar.start()

    def _judge_table(self) -> None:
        """Fail the entries of the table whose items all passed; entries whose items did not run
        remain open."""
        from ferryvm.testing.conformance.suite import ItemVerdict

        def verdict_of(item: Item) -> ItemVerdict:
            outcome = self.raw.get(item.label)
            return ItemVerdict.FAILED if outcome is None else outcome.verdict

        for name in dict.fromkeys(entry.name for entry in self.table.values()):
            entry = next(entry for entry in self.table.values() if entry.name == name)
            stale = entry.stale(verdict_of)
            if stale is not None:
                self.outcomes[stale.label] = entry.complaint
                self._show(stale)

    def _report(self, is_interrupted: bool) -> int:
        from rich.table import Table as Grid

        from ferryvm.testing.conformance.suite import ItemVerdict

        ran = [(item, self.outcomes[item.label]) for item in self.chosen if item.label in self.raw]
        counts = Counter((item.group, outcome.verdict) for item, outcome in ran)
        total = Counter(outcome.verdict for _, outcome in ran)
        grid = Grid("group", *(verdict.value for verdict in ItemVerdict), box=None)
        for group in dict.fromkeys(item.group for item, _ in ran):
            grid.add_row(group, *(str(counts[group, verdict]) for verdict in ItemVerdict))
        grid.add_row("all", *(str(total[verdict]) for verdict in ItemVerdict))
        print_table(grid)
        for verdict in (ItemVerdict.SKIPPED, ItemVerdict.REFUSED, ItemVerdict.XFAILED):
            reasons = Counter(one.reason for _, one in ran if one.verdict is verdict)
            for reason, count in reasons.items():
                click.echo(f"{verdict.value} {count}: {reason}")
        passed, count = total[ItemVerdict.PASSED], len(self.chosen)
        seconds = time.perf_counter() - self.began
        if is_interrupted:
            click.echo(
                f"{self.name}: {passed} of {len(ran)} passed, {count - len(ran)} did not run"
            )
            raise click.exceptions.Abort
        if not passed + total[ItemVerdict.FAILED] + total[ItemVerdict.XFAILED]:
            raise FerryError(f"backend {self.name!r} ran none of {count} cases: nothing is shown")
        click.echo(f"{self.name}: {passed} of {count} passed in {seconds:.1f} s")
        return 1 if total[ItemVerdict.FAILED] else 0
