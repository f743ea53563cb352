# SPDX-License-Identifier: Apache-2.0
"""The command line of the benchmarks. Results go to stdout, progress to stderr."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks import (
    compiling,
    embedding,
    guess,
    interpreter,
    interrupt,
    loading,
    mathematics,
    opencl,
    parallel,
    peers,
    profiling,
    record,
    references,
    scalar,
    startup,
    table,
    transfer,
    vliw,
    whole,
)
from benchmarks.benchmark import BENCHMARKS, BY_NAME, Benchmark, BenchmarkError, Scale
from benchmarks.comparison import compare
from benchmarks.opencl import device as opencl_device
from benchmarks.peers.ferry import CACHE
from benchmarks.peers.njit import ENVIRONMENT
from benchmarks.peers.peer import Peer
from benchmarks.report import Report

JSON = click.option("--json", "json_path", metavar="FILE", help="Write JSON, - for stdout.")
WIDTH = 160
"""Columns where no terminal says how many there are."""


def _progress(line: str) -> None:
    click.echo(line, err=True)


def _known(names: Callable[[], Iterable[str]]) -> Callable[..., tuple[str, ...] | None]:
    """A check of a comma-separated list; a name that is not known is a usage error."""

    def check(
        _context: click.Context, _parameter: click.Parameter, value: str | None
    ) -> tuple[str, ...] | None:
        if value is None:
            return None
        known = list(names())
        found = tuple(name for name in value.split(",") if name)
        for name in found:
            if name not in known:
                raise click.BadParameter(f"{name!r} is none of {', '.join(known)}")
        return found

    return check


def _rounds(default: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option("--rounds", default=default, show_default=True, type=click.IntRange(min=1))


def _peers(known: Callable[[], Iterable[str]]) -> Callable[..., Callable[..., None]]:
    return click.option(
        "--peers", "chosen", callback=_known(known), metavar="NAME,...", help="Default: all."
    )


PROGRAMS = click.option(
    "--programs", callback=_known(lambda: BY_NAME), metavar="NAME,...", help="Default: all nine."
)
QUICK = click.option("--quick", is_flag=True, help="Small sizes: whether it works, not how fast.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Benchmarks of ferryvm; docs/benchmarks.md says how to read them."""


@main.command()
@_rounds(5)
@PROGRAMS
@_peers(peers.interpreters)
@QUICK
@click.option("--twin-globals", is_flag=True, help="C twins of the loops keep variables in memory.")
@JSON
def interpreters(
    rounds: int,
    programs: Sequence[str] | None,
    chosen: Sequence[str] | None,
    quick: bool,
    twin_globals: bool,
    json_path: str | None,
) -> None:
    """Nine programs on every interpreter, in interleaved rounds."""
    known = peers.interpreters(twin_globals)
    default = [name for name in known if name not in peers.NOT_DEFAULT]
    taking_part = {name: known[name] for name in chosen or default}
    scale = Scale.QUICK if quick else None
    found = compare(interpreter.SUITE, _benchmarks(programs), taking_part, rounds, scale, _progress)
    _conclude([found], json_path, table.show)


@main.command("scalar")
@_rounds(5)
@PROGRAMS
@_peers(lambda: peers.compilers(None, {}))
@QUICK
@click.option("--numba", envvar=ENVIRONMENT, metavar="PYTHON", help="A Python that has Numba.")
@JSON
def scalar_command(
    rounds: int,
    programs: Sequence[str] | None,
    chosen: Sequence[str] | None,
    quick: bool,
    numba: str | None,
    json_path: str | None,
) -> None:
    """Nine programs on every compiler, in interleaved rounds."""
    with tempfile.TemporaryDirectory(prefix="ferry-bench-") as cache:
        known = peers.compilers(numba, {CACHE: cache})
        taking_part: dict[str, Peer] = {name: known[name] for name in chosen or known}
        scale = Scale.QUICK if quick else None
        found = compare(scalar.SUITE, _benchmarks(programs), taking_part, rounds, scale, _progress)
    _conclude([found], json_path, table.show_compilers)


@main.command("mixed")
@_rounds(7)
@PROGRAMS
@click.option(
    "--scales",
    callback=_known(lambda: [scale.value for scale in whole.CONTENDERS]),
    metavar="NAME,...",
    help="Sizes: brief, short (5 and 40 ms on threaded), scalar, long. Default: all.",
)
@click.option("--cached", is_flag=True, help="What one run compiled is there for the next one.")
@JSON
def mixed_command(
    rounds: int,
    programs: Sequence[str] | None,
    scales: Sequence[str] | None,
    cached: bool,
    json_path: str | None,
) -> None:
    """Whole runs with the default policy against native code alone and an interpreter alone."""
    at = [Scale(name) for name in scales] if scales else list(whole.CONTENDERS)
    found = whole.compare_whole(at, _benchmarks(programs), rounds, cached, _progress)
    _conclude(found, json_path, table.show_whole)


@main.command("profile")
@_rounds(9)
@PROGRAMS
@click.option("--backend", default="threaded", show_default=True, metavar="NAME")
@click.option(
    "--scale",
    type=click.Choice([Scale.BRIEF.value, Scale.SHORT.value, Scale.INTERPRETERS.value]),
    default=Scale.SHORT.value,
    show_default=True,
)
@JSON
def profile_command(
    rounds: int,
    programs: Sequence[str] | None,
    backend: str,
    scale: str,
    json_path: str | None,
) -> None:
    """Nine programs on an interpreter that counts, and on one that does not."""
    at, taking_part = profiling.suite(Scale(scale)), profiling.peers(backend)
    found = compare(at, _benchmarks(programs), taking_part, rounds, progress=_progress)
    _conclude([found], json_path, table.show_whole)


@main.command("opencl")
@_rounds(5)
@click.option(
    "--programs",
    callback=_known(lambda: [program.name for program in opencl.PROGRAMS]),
    metavar="NAME,...",
    help="Default: the nine and looptest.",
)
@click.option(
    "--parts",
    callback=_known(lambda: opencl.PARTS),
    metavar="NAME,...",
    help="Default: whole, forms, mixed, entering, native, starting, residency.",
)
@click.option("--device", metavar="NAME", help="Which one, as FERRYVM_OPENCL_DEVICE takes it.")
@click.option(
    "--scale",
    type=click.Choice([Scale.BRIEF.value, Scale.SHORT.value, Scale.INTERPRETERS.value]),
    help="Smaller sizes, for a slow device; goals are not for them.",
)
@QUICK
@JSON
def opencl_command(
    rounds: int,
    programs: tuple[str, ...] | None,
    parts: Sequence[str] | None,
    device: str | None,
    scale: str | None,
    quick: bool,
    json_path: str | None,
) -> None:
    """Kernels on an OpenCL device against llvm, an interpreter, C and pyopencl's own calls."""
    sizes = Scale.QUICK if quick else Scale(scale) if scale else None
    settings = opencl.Settings(opencl.named(programs), rounds, sizes)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    found = []
    with opencl_device.empty_caches(), opencl_device.chosen(device) as on:
        for line in opencl_device.listed(on):
            (_progress if json_path == "-" else click.echo)(line)
        for part in opencl.measure(parts or list(opencl.PARTS), settings, on, _progress):
            found.append(part)
            if json_path != "-":
                part.show(console)
        if json_path:
            record.write(json_path, opencl.as_json(found, settings, on))
    _refuse([fault for part in found for fault in part.faults()])


@main.command("vliw")
@_rounds(5)
@click.option(
    "--programs",
    callback=_known(lambda: [program.name for program in vliw.PROGRAMS]),
    metavar="NAME,...",
    help="Default: all eight.",
)
@click.option(
    "--machines",
    default=",".join(vliw.MACHINES),
    show_default=True,
    metavar="NAME,...",
    help="Machines of the package, or files.",
)
@QUICK
@JSON
def vliw_command(
    rounds: int,
    programs: tuple[str, ...] | None,
    machines: str,
    quick: bool,
    json_path: str | None,
) -> None:
    """Cycles of programs on simulated machines, their loops, and how fast they are simulated."""
    chosen = [each for each in vliw.PROGRAMS if programs is None or each.name in programs]
    named = [name for name in machines.split(",") if name]
    scale = Scale.QUICK if quick else vliw.FULL
    found = vliw.measure(chosen, named, rounds, scale, _progress)
    if json_path != "-":
        found.show(Console(width=None if sys.stdout.isatty() else WIDTH))
    if json_path:
        record.write(json_path, found.as_json())
    _refuse(found.failures)


@main.command("transfer")
@_rounds(9)
@click.option("--iterations", default=10_000_000, show_default=True, type=click.IntRange(min=1))
@click.argument("backends", nargs=-1)
@JSON
def transfer_command(
    rounds: int, iterations: int, backends: tuple[str, ...], json_path: str | None
) -> None:
    """A round trip from an interpreter (default: threaded, switch) to compiled code and back."""
    names = backends or ("threaded", "switch")
    _finish("transfer", transfer.measure(names, "llvm", rounds, iterations, _progress), json_path)


@main.command("compile")
@_rounds(7)
@JSON
def compile_command(rounds: int, json_path: str | None) -> None:
    """Compiling the loop to native code, and having it from the cache."""
    _finish("compile", compiling.measure("llvm", rounds, _progress), json_path)


@main.command("startup")
@_rounds(15)
@JSON
def startup_command(rounds: int, json_path: str | None) -> None:
    """A trivial `ferry run` over importing numpy and llvmlite."""
    _finish("startup", startup.measure(rounds, _progress), json_path)


@main.command("load")
@_rounds(5)
@click.option("--instructions", default=65_536, show_default=True, type=click.IntRange(min=100))
@JSON
def load_command(rounds: int, instructions: int, json_path: str | None) -> None:
    """Verifier and loader on a generated program of 1 MB of code."""
    _finish("load", loading.measure(rounds, instructions, _progress), json_path)


@main.command("embedding")
@_rounds(3)
@click.option("--instructions", default=1_000_000, show_default=True, type=click.IntRange(min=100))
@JSON
def embedding_command(rounds: int, instructions: int, json_path: str | None) -> None:
    """Making and starting large programs, calls between Python and programs, exceptions."""
    _finish("embedding", embedding.measure(rounds, instructions, _progress), json_path)


@main.command("references")
@_rounds(9)
@click.option(
    "--seconds",
    default=60.0,
    show_default=True,
    type=click.FloatRange(min=0.1),
    help="How long the loop makes arrays.",
)
@click.option("--quick", is_flag=True, help="Tiny sizes: whether it works, not how fast.")
@JSON
def references_command(rounds: int, seconds: float, quick: bool, json_path: str | None) -> None:
    """Programs with arrays and structs against C, Lua and CPython; their memory; collections."""
    found = references.measure(references.Settings(rounds, seconds, quick), _progress)
    if json_path != "-":
        found.show(Console(width=None if sys.stdout.isatty() else WIDTH))
    if json_path:
        report = {"schema": record.SCHEMA, "kind": "references", **record.circumstances()}
        record.write(json_path, report | found.as_json())


@main.command("parallel")
@_rounds(5)
@click.option(
    "--programs",
    callback=_known(lambda: parallel.BY_NAME),
    metavar="NAME,...",
    help="Default: all.",
)
@click.option(
    "--size",
    type=click.Choice(parallel.SIZES),
    default=parallel.SIZES[0],
    show_default=True,
    help="Goals are held to full sizes.",
)
@_peers(lambda: parallel.contenders())
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
    found = parallel.measure(settings, _progress)
    if json_path != "-":
        found.show(Console(width=None if sys.stdout.isatty() else WIDTH))
    if json_path:
        report = {"schema": record.SCHEMA, "kind": "parallel", **record.circumstances()}
        record.write(json_path, report | found.as_json())
    _refuse(found.faults())


@main.command("math")
@_rounds(7)
@click.option(
    "--functions",
    callback=_known(lambda: mathematics.FUNCTIONS),
    metavar="NAME,...",
    help="Default: all of the instruction table.",
)
@click.option(
    "--parts",
    callback=_known(lambda: mathematics.PARTS),
    metavar="NAME,...",
    help="Default: speed, prices, sizes; device alone if one is named.",
)
@click.option(
    "--libraries",
    "folders",
    envvar=mathematics.FOLDERS,
    metavar="FOLDER:...",
    help="Where libsleef.so and libsvml.so are.",
)
@click.option("--device", metavar="NAME", help="Which one, as FERRYVM_OPENCL_DEVICE takes it.")
@QUICK
@JSON
def math_command(
    rounds: int,
    functions: tuple[str, ...] | None,
    parts: tuple[str, ...] | None,
    folders: str | None,
    device: str | None,
    quick: bool,
    json_path: str | None,
) -> None:
    """Mathematical functions against SLEEF, SVML, libmvec, glibc and a device's driver."""
    default = mathematics.Settings()
    settings = mathematics.Settings(
        rounds,
        functions or default.functions,
        parts or ((mathematics.DEVICE,) if device else default.parts),
        tuple(Path(name) for name in (folders or "").split(":") if name),
        device or "",
        quick,
    )
    found = mathematics.measure(settings, _progress)
    if json_path != "-":
        found.show(Console(width=None if sys.stdout.isatty() else WIDTH))
    if json_path:
        report = {"schema": record.SCHEMA, "kind": "math", **record.circumstances()}
        record.write(json_path, report | found.as_json())
    _refuse(found.faults())


@main.command("placement")
@_rounds(5)
@click.option(
    "--programs",
    callback=_known(lambda: parallel.BY_NAME),
    metavar="NAME,...",
    help="Default: the eight of the mean.",
)
@click.option(
    "--sizes",
    callback=_known(lambda: parallel.SIZES),
    metavar="NAME,...",
    help="Default: full, small and tiny.",
)
@JSON
def placement_command(
    rounds: int,
    programs: tuple[str, ...] | None,
    sizes: tuple[str, ...] | None,
    json_path: str | None,
) -> None:
    """The default policy's placement of launches, against each placement by itself."""
    from benchmarks.parallel import placement

    found = placement.measure(programs or (), sizes or parallel.SIZES, rounds, _progress)
    if json_path != "-":
        found.show(Console(width=None if sys.stdout.isatty() else WIDTH))
    if json_path:
        report = {"schema": record.SCHEMA, "kind": "placement", **record.circumstances()}
        record.write(json_path, report | found.as_json())
    _refuse(found.faults())


@main.command("guesses")
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(min=1))
@JSON
def guesses_command(rounds: int, json_path: str | None) -> None:
    """CPU time of launches by llvm, without and with guesses."""
    _finish("guesses", guess.measure(rounds, _progress), json_path)


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


def _benchmarks(names: Sequence[str] | None) -> list[Benchmark]:
    return [BY_NAME[name] for name in names] if names else list(BENCHMARKS)


def _conclude(
    found: Iterable[Report], json_path: str | None, show: Callable[[Report, Console], None]
) -> None:
    """Show reports as they come and write them; raise BenchmarkError for their faults."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    reports = []
    for report in found:
        reports.append(report)
        if json_path != "-":
            show(report, console)
    if json_path:
        whole_json = [report.as_json() for report in reports]
        record.write(json_path, whole_json[0] if len(reports) == 1 else {"reports": whole_json})
    _refuse([fault for report in reports for fault in report.faults()])


def _refuse(faults: Sequence[str]) -> None:
    """Raise BenchmarkError if there are faults."""
    if faults:
        raise BenchmarkError("; ".join(faults))


def _finish(kind: str, metrics: dict[str, Any], json_path: str | None) -> None:
    if json_path != "-":
        shown = Table("figure", "value")
        for name, value in metrics.items():
            shown.add_row(name, f"{value:.4f}" if isinstance(value, float) else str(value))
        Console().print(shown)
    if json_path:
        report = {"schema": record.SCHEMA, "kind": kind, **record.circumstances(), **metrics}
        record.write(json_path, report)


if __name__ == "__main__":
    try:
        main()
    except BenchmarkError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
