# SPDX-License-Identifier: Apache-2.0
"""`ferry conformance`: the conformance suite without pytest, and its cases as files."""

from __future__ import annotations

import fnmatch
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferryvm.cli.show import print_table
from ferryvm.errors import FerryError, UnknownNameError

if TYPE_CHECKING:
    from rich.progress import Progress

    from ferryvm.testing.conformance.suite import Item, Outcome

_FILE = click.Path(path_type=Path)


@click.command()
@click.option("--backend", metavar="NAME", help="Backend to test.")
@click.option("--xfail", type=_FILE, help="TOML file with the failures that are expected.")
@click.option(
    "--case", "pattern", default="*", metavar="PATTERN", help="Only cases whose name matches."
)
@click.option("--list", "is_list", is_flag=True, help="List the cases and do nothing.")
@click.option("--export", "folder", type=_FILE, help="Write the cases as JSON Lines to a folder.")
def conformance(
    backend: str | None, xfail: Path | None, pattern: str, is_list: bool, folder: Path | None
) -> int:
    """Run the conformance suite on a backend.

    Exit code 0: all that it can do passed; 1: something failed; 2: the suite could not be run.
    """
    from ferryvm.testing.conformance.suite import ORACLE, items, read_expected

    chosen = _choose(items(), pattern)
    if is_list:
        for item in chosen:
            click.echo(f"{item.label:44} {item.about}")
        return 0
    from ferryvm.registry import Registry

    if folder is not None:
        from ferryvm.testing.conformance.export import export

        with _progress() as bar:
            task = bar.add_task(str(folder), total=len(chosen))
            export(chosen, folder, Registry().get(ORACLE), lambda: bar.advance(task))
        return 0
    if backend is None:
        raise click.UsageError("name a backend with --backend; `ferry backends` lists them")
    expected = read_expected(xfail) if xfail is not None else {}
    began = time.perf_counter()
    outcomes = list(_run(chosen, backend, expected))
    return _report(backend, outcomes, time.perf_counter() - began)


def _choose(known: Sequence[Item], pattern: str) -> list[Item]:
    """The items that a pattern names: whole labels, beginnings of them, or with `*` and `?`."""
    chosen = [
        item
        for item in known
        if fnmatch.fnmatchcase(item.label, pattern)
        or item.label.startswith(pattern.rstrip("/") + "/")
    ]
    if not chosen:
        raise UnknownNameError("case", pattern, [item.label for item in known])
    return chosen


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
        disable=not terminal.is_terminal,
    )


def _run(
    chosen: Sequence[Item], name: str, expected: dict[str, str]
) -> Iterator[tuple[Item, Outcome]]:
    from ferryvm.registry import Registry
    from ferryvm.testing.conformance.suite import expect

    backend = Registry().get(name)
    with _progress() as bar:
        task = bar.add_task(name, total=len(chosen))
        for item in chosen:
            bar.update(task, description=f"{name}: {item.group}")
            yield item, expect(item.run(backend), expected.get(item.label))
            bar.advance(task)


def _report(name: str, outcomes: Sequence[tuple[Item, Outcome]], seconds: float) -> int:
    from rich.table import Table

    from ferryvm.testing.conformance.suite import Verdict

    groups = list(dict.fromkeys(item.group for item, _ in outcomes))
    counts = Counter((item.group, outcome.verdict) for item, outcome in outcomes)
    total = Counter(outcome.verdict for _, outcome in outcomes)
    table = Table("group", *(verdict.value for verdict in Verdict), box=None)
    for group in groups:
        table.add_row(group, *(str(counts[group, verdict]) for verdict in Verdict))
    table.add_row("all", *(str(total[verdict]) for verdict in Verdict))
    print_table(table)
    for verdict in (Verdict.SKIPPED, Verdict.REFUSED, Verdict.XFAILED):
        reasons = Counter(one.reason for _, one in outcomes if one.verdict is verdict)
        for reason, count in reasons.items():
            click.echo(f"{verdict.value} {count}: {reason}")
    for item, outcome in outcomes:
        if outcome.verdict is Verdict.FAILED:
            click.echo(f"\nfailed {item.label}: {item.about}")
            click.echo(outcome.message)
            click.echo(f"only this: ferry conformance --backend {name} --case {item.label}")
    if not total[Verdict.PASSED] + total[Verdict.FAILED] + total[Verdict.XFAILED]:
        raise FerryError(f"backend {name!r} ran none of {len(outcomes)} cases: nothing is shown")
    click.echo(f"{name}: {total[Verdict.PASSED]} of {len(outcomes)} passed in {seconds:.1f} s")
    return 1 if total[Verdict.FAILED] else 0
