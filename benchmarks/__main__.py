# SPDX-License-Identifier: Apache-2.0
"""The command line of the benchmarks. Results go to stdout, progress to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks import interpreter, interrupt, loading, report, startup, table
from benchmarks.benchmark import BENCHMARKS, BY_NAME, BenchmarkError
from benchmarks.peers import DEFAULT, all_peers

JSON = click.option("--json", "json_path", metavar="FILE", help="Write JSON, - for stdout.")


def _progress(line: str) -> None:
    click.echo(line, err=True)


def _names(
    _context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[str, ...] | None:
    """The names of a comma-separated list; an unknown one is a usage error."""
    if value is None:
        return None
    known: Iterable[str] = BY_NAME if parameter.name == "programs" else all_peers()
    names = tuple(name for name in value.split(",") if name)
    for name in names:
        if name not in known:
            raise click.BadParameter(f"{name!r} is none of {', '.join(known)}")
    return names


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Benchmarks of ferryvm; docs/benchmarks.md says how to read them."""


@main.command()
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--programs", callback=_names, metavar="NAME,...", help="Default: all nine.")
@click.option("--peers", callback=_names, metavar="NAME,...", help="Default: all but reference.")
@click.option("--quick", is_flag=True, help="Small sizes: whether it works, not how fast.")
@click.option("--twin-globals", is_flag=True, help="C twins of the loops keep variables in memory.")
@JSON
def interpreters(
    rounds: int,
    programs: Sequence[str] | None,
    peers: Sequence[str] | None,
    quick: bool,
    twin_globals: bool,
    json_path: str | None,
) -> None:
    """Nine programs on every peer, in interleaved rounds."""
    known = all_peers(twin_globals)
    chosen = [BY_NAME[name] for name in programs] if programs else list(BENCHMARKS)
    taking_part = {name: known[name] for name in peers or DEFAULT}
    found = interpreter.compare(chosen, taking_part, rounds, not quick, _progress)
    if json_path != "-":
        table.show(found, Console(width=None if sys.stdout.isatty() else 160))
    if json_path:
        report.write(json_path, found.as_json())
    if found.faults():
        raise BenchmarkError("; ".join(found.faults()))


@main.command("startup")
@click.option("--rounds", default=15, show_default=True, type=click.IntRange(min=1))
@JSON
def startup_command(rounds: int, json_path: str | None) -> None:
    """What a trivial `ferry run` costs over importing numpy and llvmlite."""
    _finish("startup", startup.measure(rounds, _progress), json_path)


@main.command("load")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--instructions", default=65_536, show_default=True, type=click.IntRange(min=100))
@JSON
def load_command(rounds: int, instructions: int, json_path: str | None) -> None:
    """Verifier and loader on a generated program of 1 MB of code."""
    _finish("load", loading.measure(rounds, instructions, _progress), json_path)


@main.command("interrupt")
@click.option("--count", default=200, show_default=True, type=click.IntRange(min=3))
@click.option("--seed", default=1, show_default=True)
@click.argument("backends", nargs=-1, required=True)
@JSON
def interrupt_command(
    count: int, seed: int, backends: tuple[str, ...], json_path: str | None
) -> None:
    """Latency of SIGINT on BACKENDS, and whether the interrupted states can go on."""
    found = {name: interrupt.measure(name, count, seed, _progress) for name in backends}
    flat = {f"{name} {key}": value for name in found for key, value in found[name].items()}
    _finish("interrupt", flat, json_path)


def _finish(kind: str, figures: dict[str, Any], json_path: str | None) -> None:
    if json_path != "-":
        shown = Table("figure", "value")
        for name, value in figures.items():
            shown.add_row(name, f"{value:.4f}" if isinstance(value, float) else str(value))
        Console().print(shown)
    if json_path:
        whole = {"schema": report.SCHEMA, "kind": kind, **report.circumstances(), **figures}
        report.write(json_path, whole)


if __name__ == "__main__":
    try:
        main()
    except BenchmarkError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
