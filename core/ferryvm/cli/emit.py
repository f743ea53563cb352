# SPDX-License-Identifier: Apache-2.0
"""`ferry compile --regions` and `--emit`: the input of compilers, and the stages of their
output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import ferryvm
from ferryvm.cli.file import check_writable, naming, refuse_same_file
from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.verify import Verified, verify

if TYPE_CHECKING:
    from ferryvm.backend import Compiler
    from ferryvm.registry import Registry

USUAL = "llvm"
"""The compiler that is preferred if none is named."""

IR = "ir"
"""The stage that all compilers start from, with the passes that each requests; the others are
specific to a compiler."""


def show_regions(file: Path, optimize: bool | None, language: str | None) -> None:
    """Print the regions of a program: name, kind, entry, instructions."""
    from ferryvm.region.region import regions

    for region in regions(_verified(file, optimize, language)):
        entry = f"pc {region.entry}"
        position = region.verified.program.source_map.position(region.entry)
        where = f"  {position}" if position else ""
        kind, size = region.kind.value, f"{len(region.pcs)} instructions"
        click.echo(f"{region.name:24} {kind:9} {entry:9} {size:18}{where}".rstrip())


def emit(
    file: Path,
    stage: str,
    name: str,
    backend: str | None,
    device: str,
    level: int,
    optimize: bool | None,
    language: str | None,
    html: Path | None = None,
) -> None:
    """Print a stage of the compilation of a region, or draw it in a page. If no backend is named,
    the stage determines it. `device`: its target; empty: the backend's default."""
    from ferryvm.backend import Options
    from ferryvm.region.region import region
    from ferryvm.registry import Registry

    if html is not None:
        refuse_same_file(file, html)
        check_writable(html)
    registry = Registry()
    if backend is not None and device:
        from ferryvm.engine.runnable import check_device

        check_device(registry.get(backend), device)
    verified = _verified(file, optimize, language)
    with naming(file):
        found = region(verified, name)
        if stage == IR and html is not None:
            raise FerryError(f"the stage {IR!r} has no picture: leave out --html")
        if stage == IR and backend is None:
            from ferryvm.ir.lift import lift
            from ferryvm.ir.passes import optimise
            from ferryvm.ir.text import module_text

            module = lift(found)
            optimise(module, level, verified)
            click.echo(module_text(module), nl=False)
            return
    compiler = _of_stage(registry, stage) if backend is None else _named(registry, backend, stage)
    with naming(file):
        from ferryvm.region.cost import too_costly

        reason = too_costly(found, compiler.capabilities.limits) or compiler.accepts(found)
        if reason is not None:
            who = f"backend {compiler.name!r}"
            raise FerryError(f"{who} does not take region {found.name}: {reason}")
        options = Options(optimize=level, device=device)
        if html is None:
            click.echo(compiler.show(found, options, stage), nl=False)
            return
        page = compiler.picture(found, options, stage)
    from ferryvm.page import write

    write(html, page)


def _named(registry: Registry, backend: str, stage: str) -> Compiler:
    from ferryvm.backend import Compiler

    compiler = registry.get(backend)
    if not isinstance(compiler, Compiler):
        raise FerryError(f"backend {backend!r} compiles nothing: --emit {stage} needs a compiler")
    if stage not in compiler.stages:
        raise UnknownNameError(f"stage of backend {backend!r}", stage, {IR, *compiler.stages})
    return compiler


def _of_stage(registry: Registry, stage: str) -> Compiler:
    """The first usable compiler that has the stage; the preferred one before all others."""
    from ferryvm.backend import BackendError, Compiler

    known = {IR}
    for name in sorted(registry.names, key=lambda name: (name != USUAL, name)):
        try:
            backend = registry.get(name)
        except BackendError:  # it is not usable here, so it has no stages
            continue
        if isinstance(backend, Compiler):
            if stage in backend.stages:
                return backend
            known |= {*backend.stages}
    raise UnknownNameError("stage", stage, known)


def _verified(file: Path, optimize: bool | None, language: str | None) -> Verified:
    with naming(file):
        return verify(ferryvm.read(file, optimize, language))
