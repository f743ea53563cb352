# SPDX-License-Identifier: Apache-2.0
"""`ferry replay`: a disagreement that was saved, shown again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferryvm.cli.bisect import read_case, show_parting, show_traces, spinning
from ferryvm.cli.program import naming
from ferryvm.errors import FerryError

if TYPE_CHECKING:
    from ferryvm.testing.disagreement import Disagreement


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
def replay(file: Path) -> int:
    """Run the comparison of FILE, a saved disagreement, again.

    Exit code 1: the disagreement shows again; 0: the backends agree now; 2: something was
    unusable.
    """
    import ferryvm
    from ferryvm.testing import Verdict, disagreement

    if file.suffix in ferryvm.SUFFIXES:
        raise FerryError(f"{file}: is a program; `ferry diff` compares backends on it")
    case = read_case(file, None, None)
    one = case.disagreement
    assert one is not None
    _tell_versions(
        file, one, disagreement.versions((one.good, *one.backends), case.differ.registry)
    )
    with naming(file), spinning(f"{file}: comparing") as show:
        comparisons = case.differ.compare(
            case.program, one.schedule, one.seed, lambda: show(f"{file}: comparing")
        )
        unsupported = [c for c in comparisons if c.verdict is Verdict.UNSUPPORTED]
        if unsupported:
            raise FerryError(f"cannot be compared: {unsupported[0].reason}")
        found = next((c for c in comparisons if c.difference is not None), None)
        again = None
        if found is not None:
            again = disagreement.record(
                case.differ, case.program, found, one.schedule, one.seed, one.origin
            )
    click.echo(f"{file}: {one.good} and {', '.join(one.backends)}, schedule {one.schedule.value}"
               + (f" ({one.origin})" if one.origin else ""))  # fmt: skip
    click.echo(f"  saved: {one.difference.field}: {one.difference.left} on {one.good}, "
               f"{one.difference.right} on {one.bad}")  # fmt: skip
    if again is None:
        legal = next((c.reason for c in comparisons if c.verdict is Verdict.DIVERGE), None)
        click.echo(f"  now:   they diverge legally: {legal}" if legal else "  now:   they agree")
        if one.parting is not None:
            click.echo()
            show_traces(one.good, one.bad, one.good_trace, one.bad_trace)
        return 0
    difference = again.difference
    same = "the same field" if difference.field == one.difference.field else "another field"
    click.echo(f"  now:   {difference.field}: {difference.left} on {again.good}, "
               f"{difference.right} on {again.bad} ({same})")  # fmt: skip
    if again.parting is not None:
        click.echo()
        show_parting(again.parting)
    return 1


def _tell_versions(file: Path, one: Disagreement, here: dict[str, str]) -> None:
    """Say on standard error what is not as it was when the file was made."""
    for name, version in one.versions.items():
        if here.get(name) != version:
            now = here.get(name, "nothing")
            click.echo(f"ferry: {file}: made with {name} {version}, here it is {now}", err=True)
