# SPDX-License-Identifier: Apache-2.0
"""`ferry vliw`: the machines there are, and one program on variants of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import ferryvm
from ferryvm.command import (
    ProgramCommand,
    Trapped,
    check_writable,
    naming,
    print_table,
    refuse_same_file,
    replace_file,
    with_source_line,
)
from ferryvm.errors import FerryError

if TYPE_CHECKING:
    from ferryvm.verify import Verified
    from ferryvm_backends.vliw.sweep.measure import Result
    from ferryvm_backends.vliw.sweep.variant import Variant


@click.group()
def vliw() -> None:
    """Look at the machines of the vliw backend, and compare variants of one."""


@vliw.command()
def machines() -> None:
    """List the machines that come with the package: their cost, their resources, and their files.

    The cost is the sum of `cost` of all units and register files, in the unit of the file.
    """
    from rich.table import Table

    from ferryvm_backends.vliw.machine.read import load, shipped

    table = Table("name", box=None)
    for name in ("cost", "slots", "units", "files", "registers", "MHz"):
        table.add_column(name, justify="right")
    table.add_column("file")
    for name, path in shipped().items():
        machine = load(path)
        registers = sum(file.registers for file in machine.files)
        counts = (machine.slots, len(machine.units), len(machine.files), registers)
        cost, clock = f"{machine.cost:g}", f"{machine.clock:g}"
        table.add_row(name, cost, *map(str, counts), clock, str(path))
    print_table(table)


@vliw.command(cls=ProgramCommand)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--machine",
    metavar="NAME",
    help="The machine that is varied: a name, or a file (the usual one).",
)
@click.option(
    "--vary",
    "varied",
    metavar="NAME=VALUES",
    multiple=True,
    required=True,
    help="What is varied, and to what; several make every combination.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Picture to draw: .png or .svg. Needs matplotlib.",
)
def sweep(
    file: Path,
    machine: str | None,
    varied: tuple[str, ...],
    plot: Path | None,
    arguments: tuple[str, ...],
) -> int:
    """Run FILE on variants of a machine and print the cost and the cycles of each. ARGUMENTS, after
    `--`, are the program's.

    NAME is a group of units or register files (their number: alu=1..8), a key of one
    (int.registers=8,16,32), or a number of the machine itself (slots=1..4; machine.memory if a
    group has its name). VALUES are numbers, ranges such as 1..8, true and false.

    The cost is the sum of `cost` of all units and register files, as the file states it: the cost
    of a register file does not depend on its number of registers by itself. Cycles are all cycles
    of the machine, transfers of memory included; `of first` compares them with the first variant
    that ran. `Pareto` marks variants for which nothing cheaper is as fast. Ctrl-C prints the
    results so far.

    Exit code 0: done; 1: the program trapped; 2: something was unusable, or no variant could run
    it.
    """
    from ferryvm.verify import verify
    from ferryvm_backends.vliw import usual
    from ferryvm_backends.vliw.machine.read import document_of, load, path_of
    from ferryvm_backends.vliw.sweep import plot as plotting
    from ferryvm_backends.vliw.sweep.variant import read_axes, variants

    path = path_of(machine or usual())
    load(path)  # its faults are reported as those of any machine
    document = document_of(path)
    axes = read_axes(varied, document)
    if plot is not None:
        plotting.check(plot)
        refuse_same_file(file, plot)
        refuse_same_file(path, plot)
        check_writable(plot)
    with naming(file):
        program = verify(ferryvm.read(file))
    results: list[Result] = []
    is_interrupted = False
    try:
        _measure(program, list(variants(axes, document)), arguments, results)
    except KeyboardInterrupt:
        is_interrupted = True
    _print([axis.name for axis in axes], results)
    has_run = any(one.metrics is not None for one in results)
    if plot is not None and has_run:
        title = f"{file.name} on variants of {document['name']}"
        replace_file(plot, plotting.draw(results, title, plot.suffix.removeprefix(".")))
    if is_interrupted:
        click.echo("ferry: interrupted", err=True)
        return 130
    if not has_run:
        raise FerryError(f"{file}: no variant could run it")
    return 0


def _measure(
    program: Verified, variants: list[Variant], arguments: tuple[str, ...], results: list[Result]
) -> None:
    """Add the result of each variant to `results`, with a progress bar on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from ferryvm.engine import TrapError
    from ferryvm_backends.vliw.sweep.measure import measure

    terminal = Console(stderr=True)
    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    is_shown = terminal.is_terminal
    with Progress(*columns, console=terminal, transient=True, disable=not is_shown) as bar:
        task = bar.add_task("", total=len(variants))

        def tried(variant: Variant) -> Variant:
            bar.update(task, description=f"{len(results) + 1} of {len(variants)}: {variant}")
            return variant

        try:
            for result in measure(program, map(tried, variants), arguments):
                results.append(result)
                bar.update(task, completed=len(results))
        except TrapError as error:
            raise Trapped(with_source_line(str(error), error.position)) from None


def _print(names: list[str], results: list[Result]) -> None:
    """Print the table; nothing if it is empty."""
    from rich.table import Table

    from ferryvm_backends.vliw.sweep.measure import front
    from ferryvm_backends.vliw.sweep.variant import shown

    if not results:
        return
    table = Table(box=None)
    for name in (*names, "cost", "cycles", "transfers", "ms", "of first"):
        table.add_column(name, justify="right")
    table.add_column("")
    best = front(results)
    first = next((one.metrics.cycles for one in results if one.metrics is not None), 0)
    for one in results:
        row = [shown(value) for value in one.settings.values()]
        row.append("" if one.cost is None else f"{one.cost:g}")
        metrics = one.metrics
        if metrics is None:
            table.add_row(*row, *[""] * 4, one.reason)
            continue
        row += [str(metrics.cycles), str(metrics.transfer_cycles), f"{metrics.milliseconds:.4g}"]
        row.append(f"{metrics.cycles / first:.3f}" if first else "")
        table.add_row(*row, "Pareto" if one in best else "")
    print_table(table)


COMMAND = vliw
