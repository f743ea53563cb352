# SPDX-License-Identifier: Apache-2.0
"""`ferry explain`: run a program and report what was compiled, by which backend, and why."""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

import ferryvm
from ferryvm.cli import termination
from ferryvm.cli.argument import ProgramCommand
from ferryvm.cli.engine import make_engine
from ferryvm.cli.file import naming
from ferryvm.cli.limit import limited
from ferryvm.cli.option import device_option, hosts_option, language_option, policy_option
from ferryvm.cli.output import write
from ferryvm.cli.path import FILE
from ferryvm.cli.run_failure import Trapped, host_failure, with_source_line
from ferryvm.engine import Engine, ProgramInterrupted, TrapError
from ferryvm.engine.region_report import aligned, milliseconds, rows, title, where
from ferryvm.machine.memory import Limits

if TYPE_CHECKING:
    from rich.console import Console

    from ferryvm.engine.explain import Explained, Explanation, Share

_INDENT = 4


@click.command(cls=ProgramCommand)
@click.argument("file", type=FILE)
@language_option
@policy_option
@click.option("--backend", metavar="NAME", help="One backend instead of a policy.")
@device_option
@hosts_option
@limited
@click.option(
    "--count", is_flag=True, help="Count instructions exactly: slower, and shares of them."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(
    file: Path,
    language: str | None,
    policy: Path | None,
    backend: str | None,
    device: str | None,
    hosts: tuple[str, ...],
    limits: Limits | None,
    count: bool,
    as_json: bool,
    arguments: tuple[str, ...],
) -> None:
    """Run FILE and print what was compiled, by which backend, and why.

    The output of the program goes to standard error. The report is printed whether the program
    succeeds or fails; the exit code is that of `ferry run`.
    ARGUMENTS, after `--`, are the program's.
    """
    from ferryvm.engine.explain import explain as explained
    from ferryvm.engine.observer import Observer
    from ferryvm.policy import default

    output = functools.partial(write, 2)
    engine = make_engine(
        backend,
        policy,
        device,
        limits=limits,
        output=output,
        hosts=hosts,
        arguments=arguments,
        default=default(),
    )
    observer = Observer()
    observer.watch(engine)
    with naming(file):
        execution = engine.start(ferryvm.read(file, language=language))
    counts_anyway = _prepare(engine)
    status = "failed"
    try:
        status = execution.run(count=count or counts_anyway).status.name.lower()
    except ProgramInterrupted as error:
        status = "interrupted"
        raise termination.Interrupted(with_source_line(str(error), error.position)) from None
    except TrapError as error:
        status = "trap"
        raise Trapped(with_source_line(str(error), error.position)) from None
    except Exception as error:  # noqa: BLE001 - a host function may raise anything
        raise host_failure(execution.machine, error) or error from None
    finally:
        explanation = explained(execution, observer, status)
        if as_json:
            click.echo(json.dumps(dataclasses.asdict(explanation), indent=2))
        else:
            _print(explanation)


def _prepare(engine: Engine) -> bool:
    """True if a shadow requires the counting form.

    Compilers are imported before the program runs; otherwise a short run's compilations would
    depend on the speed of the imports.
    """
    from ferryvm.engine.mixed import Mixed

    if not isinstance(engine.backend, Mixed):
        return False
    engine.backend.warm_up()
    return engine.backend.policy.shadow is not None


def _print(explanation: Explanation) -> None:
    from rich.console import Console

    console = Console(markup=False, highlight=False, soft_wrap=True)
    for region in explanation.regions:
        _print_region(console, region)
    if not explanation.regions:
        why = explanation.counts or "no place got hot"
        console.print(f"nothing was compiled: {why}")
    if explanation.not_hot:
        console.print("not hot", style="bold")
        for cold in explanation.not_hot:
            place = where(cold.pc, cold.position)
            reached = f"reached {cold.reached} of {cold.threshold} times"
            console.print(f"{'':{_INDENT}}{cold.region}, {place}: {reached}")
    _print_totals(explanation)


def _print_region(console: Console, region: Explained) -> None:
    console.print(title(region), style="bold", end="")
    console.print(f": {region.state}")
    for line in aligned(rows(region), _INDENT):
        console.print(line)


def _print_totals(explanation: Explanation) -> None:
    from rich.table import Table

    from ferryvm.cli.show import print_table

    table = Table("backend", "entries", "time", "of time", "instructions", "of them", box=None)
    for share in explanation.shares:
        table.add_row(
            share.backend,
            str(share.entries),
            milliseconds(share.seconds),
            f"{share.share_of_time:.1%}",
            _instructions(explanation, share),
            "" if share.share_of_instructions is None else f"{share.share_of_instructions:.1%}",
        )
    other, part = explanation.other_seconds, explanation.other_share_of_time
    table.add_row("the rest", "", milliseconds(other), f"{part:.1%}", "", "")
    print_table(table)
    run = milliseconds(explanation.seconds.run)
    compiled = milliseconds(explanation.compile_seconds)
    click.echo(f"{explanation.status}; {run} of running, {compiled} of compiling")


def _instructions(explanation: Explanation, share: Share) -> str:
    """A backend's instructions; a shadow completes none of the program's."""
    if share.instructions is not None:
        return str(share.instructions)
    return "not counted" if explanation.instructions is None else ""
