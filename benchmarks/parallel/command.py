# SPDX-License-Identifier: Apache-2.0
"""Commands that measure launches."""

from __future__ import annotations

from collections.abc import Sequence

import click

from benchmarks import parallel
from benchmarks.option import JSON, QUICK, names, peers_option, rounds_option
from benchmarks.output import present, progress, refuse
from benchmarks.parallel import device_time
from benchmarks.peers.peer import MissingError


@click.command("parallel")
@rounds_option(5)
@names("--programs", lambda: parallel.BY_NAME, "Default: all.")
@click.option(
    "--size",
    type=click.Choice(parallel.SIZES),
    default=parallel.SIZES[0],
    show_default=True,
    help="Goals are held to full sizes.",
)
@peers_option(lambda: parallel.contenders())
@click.option("--processor", is_flag=True, help="Processor time of all threads, not wall time.")
@JSON
def parallel_command(
    rounds: int,
    programs: tuple[str, ...] | None,
    size: str,
    chosen: tuple[str, ...] | None,
    processor: bool,
    json_path: str | None,
) -> None:
    """Data-parallel programs as launches, against C and OpenCL C, in interleaved rounds."""
    twins = tuple(parallel.BY_NAME[name] for name in programs or parallel.BY_NAME)
    peers = tuple(chosen or parallel.contenders())
    settings = parallel.Settings(rounds, size, twins, peers, processor)
    found = parallel.measure(settings, progress)
    present("parallel", found, json_path)
    refuse(found.faults())


@click.command("suspension")
@rounds_option(5)
@names("--backends", lambda: ("llvm", "opencl", "cc"), "Default: llvm and opencl.")
@JSON
def suspension_command(rounds: int, backends: Sequence[str] | None, json_path: str | None) -> None:
    """A million items of which 1 % are suspended, against the same when none is."""
    from benchmarks.parallel import suspension

    found = suspension.measure(backends or ("llvm", "opencl"), rounds, progress)
    present("suspension", found, json_path)


@click.command("placement")
@rounds_option(5)
@names("--programs", lambda: parallel.BY_NAME, "Default: the eight of the mean.")
@names("--sizes", lambda: parallel.SIZES, "Default: full, small and tiny.")
@click.option("--maps", is_flag=True, help="Maps of Python functions, not programs in Skiff.")
@JSON
def placement_command(
    rounds: int,
    programs: tuple[str, ...] | None,
    sizes: tuple[str, ...] | None,
    maps: bool,
    json_path: str | None,
) -> None:
    """The default policy's placement of launches, against each placement by itself."""
    from benchmarks.parallel import placement

    found = placement.measure(programs or (), sizes or parallel.SIZES, rounds, progress, maps)
    present("placement", found, json_path)
    refuse(found.faults())


@click.command("kernels")
@rounds_option(5)
@names("--programs", lambda: device_time.KNOWN, "Default: the eight, and those with groups.")
@QUICK
@JSON
def kernels_command(
    rounds: int, programs: tuple[str, ...] | None, quick: bool, json_path: str | None
) -> None:
    """Kernels alone on an OpenCL device, by its clock, against those written by hand."""
    size = "tiny" if quick else "full"
    try:
        found = device_time.measure(programs or device_time.PROGRAMS, size, rounds, progress)
    except MissingError as error:
        raise click.ClickException(str(error)) from None
    present("kernels", found, json_path)
    refuse(found.faults())


COMMANDS = (parallel_command, suspension_command, placement_command, kernels_command)
