# SPDX-License-Identifier: Apache-2.0
"""`ferry doctor --calibrate`: measure the costs of launches on each device, and keep them; and
those that are kept, for `ferry doctor`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator

import click

from ferryvm import cache
from ferryvm.backend import BackendError, Compiler, Finding
from ferryvm.engine.launch_place import calibration
from ferryvm.engine.launch_place.calibration import Calibration
from ferryvm.errors import FerryError
from ferryvm.registry import Registry


def calibrate_all(backend: str | None, as_json: bool) -> int:
    """The exit code: 0 if each device was calibrated; with a backend only its devices count.
    Raises FerryError if nothing can be kept, or there is no device."""
    from ferryvm.calibrator import calibrate

    unusable = cache.why_not_usable()
    if unusable:
        raise FerryError(f"no calibration can be kept: {unusable}")
    registry, found, failed = Registry(), list[Calibration](), 0
    for compiler, device in _devices(registry, backend):
        title = calibration.title(compiler.name, device)
        try:
            one = calibrate(compiler, device)
            calibration.store(one)  # not before all of it is measured
        except FerryError as error:
            failed += 1
            click.echo(f"ferry: {title}: not calibrated: {error}", err=True)
            continue
        found.append(one)
        if not as_json:
            _print(one)
    if not (found or failed):
        raise FerryError("no backend here runs items of launches out of order; see `ferry doctor`")
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(one) for one in found], indent=2))
    return 1 if failed else 0


def stored(compiler: Compiler) -> Iterator[Finding]:
    """Findings: the calibration that is kept of each device of a compiler, if it runs items of
    launches out of order; what is out of date, or not there, with the command that makes one."""
    if not _is_able(compiler):
        return
    known = calibration.load(compiler.name)
    for device, one in known.by_device.items():
        why_not = calibration.staleness(one, compiler)
        subject = f"calibration of {device}" if device else "calibration"
        yield Finding(subject, {"out of date": why_not} if why_not else dict(_rows(one)))
    if not known.by_device:
        yield Finding("calibration", {"kept": f"none: {known.why_not}"})
        return
    for device in compiler.device_names():
        name = calibration.device_name(compiler, device)
        if name not in known.by_device:
            why_not = f"none, so no launch is placed there; run `{calibration.COMMAND}`"
            yield Finding(f"calibration of {name}", {"kept": why_not})


def _is_able(compiler: Compiler) -> bool:
    """True if it may run items of launches out of order."""
    return compiler.capabilities.ranges or compiler.capabilities.native


def _devices(registry: Registry, backend: str | None) -> Iterator[tuple[Compiler, str]]:
    """The compilers that run items out of order, with their devices; of a backend that was named,
    the reason that it does not is a FerryError."""
    for name in registry.names if backend is None else [backend]:
        try:
            compiler = registry.get(name)
        except BackendError:
            if backend is not None:
                raise
            continue  # `ferry doctor` says why
        if not isinstance(compiler, Compiler) or not _is_able(compiler):
            if backend is not None:
                raise BackendError(f"{name}: it runs no items of launches out of order")
            continue
        for device in compiler.device_names() or [""]:
            yield compiler, device


def _print(one: Calibration) -> None:
    click.secho(one.title, bold=True)
    for name, text in _rows(one):
        click.echo(f"    {name:18}  {text}")


def _rows(one: Calibration) -> list[tuple[str, str]]:
    """Its figures by name, for people."""
    rows = [("launch", f"{one.launch_seconds * 1e6:.3g} us")]
    if one.thread_seconds:
        rows.append(("start of a thread", f"{one.thread_seconds * 1e6:.3g} us"))
    for name, rate in (("copies to it", one.to_device), ("copies back", one.to_host)):
        rows.append((name, f"{rate / 1e9:.3g} GB/s" if rate else "none: the host's memory"))
    rows.append(("compiling", f"{one.compile_seconds:.2g} s"))
    for name, seconds in one.seconds.items():
        text = f"{1e-9 / seconds:.3g} instructions a nanosecond"
        for words, of in ((" in order", one.in_order), (" for an item alone", one.alone)):
            text += f", {1e-9 / of[name]:.3g}{words}" if name in of else ""
        rows.append((name, text))
    return rows
