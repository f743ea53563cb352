# SPDX-License-Identifier: Apache-2.0
"""The command line of the benchmarks."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks import (
    compiling,
    embedding,
    exports,
    groups,
    guess,
    interpreter,
    interrupt,
    loading,
    mathematics,
    opencl,
    peers,
    profiling,
    python,
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
from benchmarks.exports.device import measure_opencl
from benchmarks.opencl import device as opencl_device
from benchmarks.option import JSON, PROGRAMS, QUICK, names, peers_option, rounds_option
from benchmarks.output import conclude, console, finish, present, progress, refuse
from benchmarks.parallel import command as launches
from benchmarks.peers.ferry import CACHE
from benchmarks.peers.njit import ENVIRONMENT
from benchmarks.peers.peer import Peer


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Benchmarks of ferryvm; docs/benchmarks.md says how to read them."""


@main.command()
@rounds_option(5)
@PROGRAMS
@peers_option(peers.interpreters)
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
    found = compare(interpreter.SUITE, _benchmarks(programs), taking_part, rounds, scale, progress)
    conclude([found], json_path, table.show)


@main.command("scalar")
@rounds_option(5)
@PROGRAMS
@peers_option(lambda: peers.compilers(None, {}))
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
        found = compare(scalar.SUITE, _benchmarks(programs), taking_part, rounds, scale, progress)
    conclude([found], json_path, table.show_compilers)


@main.command("mixed")
@rounds_option(7)
@PROGRAMS
@names(
    "--scales",
    lambda: [scale.value for scale in whole.CONTENDERS],
    "Sizes: brief, short (5 and 40 ms on threaded), scalar, long. Default: all.",
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
    found = whole.compare_whole(at, _benchmarks(programs), rounds, cached, progress)
    conclude(found, json_path, table.show_whole)


@main.command("profile")
@rounds_option(9)
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
    found = compare(at, _benchmarks(programs), taking_part, rounds, progress=progress)
    conclude([found], json_path, table.show_whole)


@main.command("opencl")
@rounds_option(5)
@names(
    "--programs",
    lambda: [program.name for program in opencl.PROGRAMS],
    "Default: the nine and looptest.",
)
@names(
    "--parts",
    lambda: opencl.PARTS,
    "Default: all.",
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
    shown = console()
    found = []
    with opencl_device.empty_caches(), opencl_device.chosen(device) as on:
        for line in opencl_device.listed(on):
            (progress if json_path == "-" else click.echo)(line)
        for part in opencl.measure(parts or list(opencl.PARTS), settings, on, progress):
            found.append(part)
            if json_path != "-":
                part.show(shown)
        if json_path:
            record.write(json_path, opencl.as_json(found, settings, on))
    refuse([fault for part in found for fault in part.faults()])


@main.command("vliw")
@rounds_option(5)
@names("--programs", lambda: [program.name for program in vliw.PROGRAMS], "Default: all eight.")
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
    found = vliw.measure(chosen, named, rounds, scale, progress)
    if json_path != "-":
        found.show(console())
    if json_path:
        record.write(json_path, found.as_json())
    refuse(found.failures)


@main.command("transfer")
@rounds_option(9)
@click.option("--iterations", default=10_000_000, show_default=True, type=click.IntRange(min=1))
@click.argument("backends", nargs=-1)
@JSON
def transfer_command(
    rounds: int, iterations: int, backends: tuple[str, ...], json_path: str | None
) -> None:
    """A round trip from an interpreter (default: threaded, switch) to compiled code and back."""
    names = backends or ("threaded", "switch")
    finish("transfer", transfer.measure(names, "llvm", rounds, iterations, progress), json_path)


@main.command("compile")
@rounds_option(7)
@JSON
def compile_command(rounds: int, json_path: str | None) -> None:
    """Compiling the loop to native code, and having it from the cache."""
    finish("compile", compiling.measure("llvm", rounds, progress), json_path)


@main.command("startup")
@rounds_option(15)
@JSON
def startup_command(rounds: int, json_path: str | None) -> None:
    """A trivial `ferry run` over importing numpy and llvmlite."""
    finish("startup", startup.measure(rounds, progress), json_path)


@main.command("load")
@rounds_option(5)
@click.option("--instructions", default=65_536, show_default=True, type=click.IntRange(min=100))
@JSON
def load_command(rounds: int, instructions: int, json_path: str | None) -> None:
    """Verifier and loader on a generated program of 1 MB of code."""
    finish("load", loading.measure(rounds, instructions, progress), json_path)


@main.command("embedding")
@rounds_option(3)
@click.option("--instructions", default=1_000_000, show_default=True, type=click.IntRange(min=100))
@JSON
def embedding_command(rounds: int, instructions: int, json_path: str | None) -> None:
    """Making and starting large programs, calls between Python and programs, exceptions."""
    finish("embedding", embedding.measure(rounds, instructions, progress), json_path)


@main.command("exports")
@rounds_option(7)
@click.option("--compiler", default="gcc", show_default=True)
@click.option("--flags", default="-O2", show_default=True)
@click.option("--optimize", default=2, show_default=True, type=click.IntRange(0, 3))
@click.option("--opencl", is_flag=True, help="Measure exported OpenCL C, by launches.")
@click.option(
    "--device", metavar="NAME", help="A part of the name of the device (the default one)."
)
@JSON
def exports_command(
    rounds: int,
    compiler: str,
    flags: str,
    optimize: int,
    opencl: bool,
    device: str | None,
    json_path: str | None,
) -> None:
    """Exported C, or OpenCL C, over the same functions in ferryvm."""
    found = (
        measure_opencl(rounds, device, optimize, progress)
        if opencl
        else exports.measure(rounds, compiler, flags, optimize, progress)
    )
    finish("exports", found, json_path)


@main.command("references")
@rounds_option(9)
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
    found = references.measure(references.Settings(rounds, seconds, quick), progress)
    present("references", found, json_path)


@main.command("groups")
@rounds_option(5)
@names("--kernels", lambda: groups.BY_NAME, "Default: all.")
@names("--parts", lambda: groups.PARTS, "Default: all.")
@peers_option(lambda: groups.NAMES)
@click.option(
    "--device", default=groups.POCL, show_default=True, metavar="NAME", help="That runs OpenCL C."
)
@click.option(
    "--limit",
    default=groups.LIMIT,
    show_default=True,
    type=click.FloatRange(min=0.1),
    help="Seconds of processor time after which a run is stopped.",
)
@click.option("--processor", is_flag=True, help="Processor time of all threads, not wall time.")
@QUICK
@JSON
def groups_command(
    rounds: int,
    kernels: tuple[str, ...] | None,
    parts: tuple[str, ...] | None,
    chosen: tuple[str, ...] | None,
    device: str,
    limit: float,
    processor: bool,
    quick: bool,
    json_path: str | None,
) -> None:
    """Kernels whose items cooperate in groups, against OpenCL C by PoCL and Intel's driver."""
    settings = groups.Settings(
        rounds,
        tuple(groups.BY_NAME[name] for name in kernels or groups.BY_NAME),
        chosen or groups.NAMES,
        parts or groups.PARTS,
        device,
        limit,
        quick,
        processor,
    )
    found = groups.measure(settings, progress)
    present("groups", found, json_path)
    refuse(found.faults())


@main.command("math")
@rounds_option(7)
@names("--functions", lambda: mathematics.FUNCTIONS, "Default: all of the instruction table.")
@names(
    "--parts",
    lambda: mathematics.PARTS,
    "Default: speed, prices, sizes; device alone if one is named.",
)
@click.option(
    "--libraries",
    "folders",
    envvar=mathematics.FOLDERS,
    metavar="FOLDER:...",
    help="Where libsleef.so and libsvml.so are.",
)
@click.option("--device", metavar="NAME", help="Which one, as FERRYVM_OPENCL_DEVICE takes it.")
@names(
    "--tables", lambda: ("own", "0", "1"), "How a device looks up constants (ferryvm.ir.c.opencl)."
)
@QUICK
@JSON
def math_command(
    rounds: int,
    functions: tuple[str, ...] | None,
    parts: tuple[str, ...] | None,
    folders: str | None,
    device: str | None,
    tables: tuple[str, ...] | None,
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
        tables or default.tables,
        quick,
    )
    found = mathematics.measure(settings, progress)
    present("math", found, json_path)
    refuse(found.faults())


@main.command("python")
@rounds_option(5)
@names("--parts", lambda: python.PARTS, "Default: all.")
@names("--programs", lambda: python.PROGRAMS, "Scalar programs. Default: all.")
@click.option("--numba", envvar=ENVIRONMENT, metavar="PYTHON", help="A Python that has Numba.")
@click.option(
    "--processor", is_flag=True, help="Processor time of programs and maps, not wall time."
)
@QUICK
@JSON
def python_command(
    rounds: int,
    parts: tuple[str, ...] | None,
    programs: tuple[str, ...] | None,
    numba: str | None,
    processor: bool,
    quick: bool,
    json_path: str | None,
) -> None:
    """Python functions and maps of them against Numba, PyPy, CPython and C."""
    settings = python.Settings(
        rounds,
        numba,
        parts or python.PARTS,
        quick,
        processor,
        programs or tuple(python.PROGRAMS),
    )
    found = python.measure(settings, progress)
    present("python", found, json_path)
    refuse(found.faults())


@main.command("guesses")
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(min=1))
@JSON
def guesses_command(rounds: int, json_path: str | None) -> None:
    """CPU time of launches by llvm, without and with guesses."""
    finish("guesses", guess.measure(rounds, progress), json_path)


@main.command("interrupt")
@click.option("--count", default=200, show_default=True, type=click.IntRange(min=3))
@click.option("--seed", default=1, show_default=True)
@click.argument("backends", nargs=-1, required=True)
@JSON
def interrupt_command(
    count: int, seed: int, backends: tuple[str, ...], json_path: str | None
) -> None:
    """Latency of SIGINT on BACKENDS, and whether the interrupted states can go on."""
    found = {name: interrupt.measure(name, count, seed, progress) for name in backends}
    flat = {f"{name} {key}": value for name in found for key, value in found[name].items()}
    finish("interrupt", flat, json_path)


for _command in launches.COMMANDS:
    main.add_command(_command)


def _benchmarks(names: Sequence[str] | None) -> list[Benchmark]:
    return [BY_NAME[name] for name in names] if names else list(BENCHMARKS)


if __name__ == "__main__":
    try:
        main()
    except BenchmarkError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
