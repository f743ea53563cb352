# SPDX-License-Identifier: Apache-2.0
"""`ferry reduce`: a small program that shows the same disagreement."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import ferryvm
from ferryvm.atomic_file import replace_file
from ferryvm.cli.argument import ProgramCommand
from ferryvm.cli.bisect import BisectionInput, read_case, schedule_option, spinning
from ferryvm.cli.duration import check_seconds
from ferryvm.cli.file import check_writable, naming, refuse_same_file
from ferryvm.cli.limit import limited
from ferryvm.cli.option import hosts_option, language_option
from ferryvm.cli.path import FILE, FilePath
from ferryvm.errors import FerryError
from ferryvm.machine.memory import Limits

if TYPE_CHECKING:
    from ferryvm.testing.disagreement import Disagreement
    from ferryvm.testing.reduction import Reduction


_LONGEST_BISECT = 60.0
"""Time limit in seconds for the traces of the result."""


@click.command(cls=ProgramCommand)
@click.argument("file", type=FILE)
@click.option("--good", metavar="NAME", help="Backend that is right (reference).")
@click.option("--bad", metavar="NAME", help="Backend under suspicion.")
@language_option
@click.option(
    "-o",
    "--output",
    type=FilePath(dir_okay=False),
    help="Assembly to write (FILE with .reduced.fasm); the disagreement is written next to it.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1),
    default=60.0,
    show_default=True,
    help="Stop with the smallest program found by then.",
)
@schedule_option
@hosts_option
@limited
def reduce(
    file: Path,
    good: str | None,
    bad: str | None,
    language: str | None,
    output: Path | None,
    seconds: float,
    schedule: str | None,
    hosts: tuple[str, ...],
    limits: Limits | None,
    arguments: tuple[str, ...],
) -> None:
    """Shrink a program on which two backends disagree while it shows the same disagreement.

    FILE is a program (.skiff, .fasm, .fvm) or a file of a disagreement, which names the backends
    itself. ARGUMENTS, after `--`, are the program's. The smallest program so far is written at each
    improvement; Ctrl-C ends the search with it. Exit code 0: done; 2: something was unusable, or
    the backends agree.
    """
    from ferryvm.program import Program
    from ferryvm.testing import disagreement
    from ferryvm.testing import reduction as search

    check_seconds("--seconds", seconds)
    output = output or file.with_suffix(".reduced.fasm")
    saved = output.with_suffix(disagreement.SUFFIX)
    if output.suffix != ".fasm":
        raise FerryError(f"{output}: a .fasm file expected")
    refuse_same_file(file, output)
    if saved.exists() and file.exists() and saved.samefile(file):
        raise FerryError(
            f"{saved}: is the input, and -o {output} would write the disagreement there; "
            "name another file to write"
        )
    for path in (output, saved):
        check_writable(path)
    case = read_case(file, good, bad, schedule, language, hosts, arguments, limits)
    with naming(file), spinning(f"{file}: reducing") as show:

        def improved(program: Program) -> None:
            size = len(program.code)
            show(f"{file}: {size} instruction{'s' if size > 1 else ''}")
            _write(output, program)

        found = search.reduce(
            case.differ,
            case.bad,
            case.program,
            seconds,
            case.seed,
            improved,
            schedule=case.schedule,
        )
        if found is None:
            raise FerryError(f"{case.differ.against} and {case.bad} agree on it: nothing to reduce")
        one = _recorded(case, found, f"reduced from {file}")
        disagreement.save(one, saved)
    _write(output, found.program)
    click.echo(ferryvm.disassemble(found.program))

    click.echo(str(found.signature))
    before, after = len(case.program.program.code), len(found.program.code)
    end = "" if found.is_complete else "; stopped before its end, a longer search may do better"
    click.echo(
        f"ferry: {before} instructions reduced to {after} ({found.tried} candidates{end}); "
        f"written to {output} and {saved}",
        err=True,
    )


def _recorded(case: BisectionInput, found: Reduction, origin: str) -> Disagreement:
    """The disagreement that a reduction found, in the simplest schedule that shows it."""
    from ferryvm.testing import disagreement
    from ferryvm.testing.environment import USUAL
    from ferryvm.verify import verify

    bad = found.signature.bad
    differ = case.differ.with_backends([bad])
    program = verify(found.program)
    is_odd = found.signature.environment != USUAL
    shown = disagreement.showing(differ, program, case.seed, is_odd)
    if shown is None:
        raise FerryError("it shows only by bisecting, under no schedule: it cannot be saved")
    return disagreement.record(differ, program, *shown, origin, seconds=_LONGEST_BISECT)


def _write(path: Path, program: ferryvm.Program) -> None:
    try:
        replace_file(path, ferryvm.disassemble(program).encode(errors="surrogateescape"))
    except OSError as error:
        raise FerryError(f"{path}: cannot be written: {error.strerror}") from None
