# SPDX-License-Identifier: Apache-2.0
"""`ferry replay`: the comparison of a saved disagreement, repeated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferryvm.cli.bisect import read_case, show_parting, show_traces, spinning
from ferryvm.cli.file import naming
from ferryvm.cli.option import hosts_option
from ferryvm.cli.path import FILE
from ferryvm.errors import FerryError

if TYPE_CHECKING:
    from ferryvm.testing.disagreement import Disagreement, Shown


_LONGEST_BISECT = 60.0
"""Time limit in seconds for the search for the divergence."""


@click.command()
@click.argument("file", type=FILE)
@hosts_option
def replay(file: Path, hosts: tuple[str, ...]) -> int:
    """Run the comparison of FILE, a saved disagreement, again.

    Exit code 1: the disagreement shows again; 0: the backends agree now; 2: something was
    unusable.
    """
    from ferryvm.language import installed
    from ferryvm.testing import disagreement

    if installed().is_program(file):
        raise FerryError(f"{file}: is a program; `ferry diff` compares backends on it")
    case = read_case(file, None, None, None, hosts=hosts)
    one = case.disagreement
    assert one is not None
    _report_versions(
        file, one, disagreement.versions((one.good, *one.backends), case.differ.registry)
    )
    again = None
    with naming(file), spinning(f"{file}: comparing") as show:
        shown = disagreement.show_again(
            case.differ, case.program, one, lambda: show(f"{file}: comparing")
        )
        if shown.comparison is not None:
            again = disagreement.record(
                case.differ,
                case.program,
                shown.comparison,
                shown.schedule,
                one.seed,
                one.origin,
                lambda: show(f"{file}: searching"),
                _LONGEST_BISECT,
            )
    click.echo(f"{file}: {one.good} and {', '.join(one.backends)}, schedule {one.schedule.value}"
               + (f" ({one.origin})" if one.origin else ""))  # fmt: skip
    click.echo(f"  saved: {one.difference.field}: {one.difference.left} on {one.good}, "
               f"{one.difference.right} on {one.bad}")  # fmt: skip
    parting = again.parting if again else shown.parting
    click.echo(f"  now:   {_now(one, shown, again.bad if again else one.bad)}")
    if again is not None and again.unbisected is not None:
        click.echo(f"  where they part is not known: {again.unbisected}")
    if parting is not None:
        click.echo()
        show_parting(parting)
    if shown.difference is not None or shown.unstable is not None:
        return 1
    if one.parting is not None:
        at = f"pc {one.parting.pc}: {one.parting.mnemonic}"
        click.echo(f"\nas saved, when they parted at {at}:")
        show_traces(one.good, one.bad, one.good_trace, one.bad_trace, is_current=False)
    return 0


def _now(one: Disagreement, shown: Shown, bad: str) -> str:
    """The result of a replay, in one line."""
    if shown.unstable is not None:
        return f"they differ: {shown.unstable}"
    difference = shown.difference
    if difference is None:
        return f"they diverge legally: {shown.legal}" if shown.legal else "they agree"
    text = f"{difference.field}: {difference.left} on {one.good}, {difference.right} on {bad}"
    if shown.parting is not None:
        return f"{text} (no comparison shows it, entering {shown.parting.bad} as below does)"
    if shown.schedule is not one.schedule:
        return f"{text} (schedule {shown.schedule.value})"
    same = difference.field == one.difference.field
    return f"{text} ({'the same field' if same else 'another field'})"


def _report_versions(file: Path, one: Disagreement, here: dict[str, str]) -> None:
    """Report on standard error the versions that differ from those in the file."""
    for name, version in one.versions.items():
        if here.get(name) != version:
            now = here.get(name, "nothing")
            click.echo(f"ferry: {file}: made with {name} {version}, here it is {now}", err=True)
