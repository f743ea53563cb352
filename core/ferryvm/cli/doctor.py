# SPDX-License-Identifier: Apache-2.0
"""`ferry doctor`: each backend's findings about this machine: facts, problems, and remedies."""

from __future__ import annotations

import dataclasses
import itertools
import json
import platform
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

import ferryvm
from ferryvm.backend import Finding

if TYPE_CHECKING:
    from ferryvm.registry import Listing, Registry

_INDENT = "    "


@dataclasses.dataclass(frozen=True)
class _Section:
    """A backend and its findings."""

    listing: Listing
    findings: tuple[Finding, ...]

    @property
    def is_well(self) -> bool:
        """True if it is usable, or the user excluded it."""
        from ferryvm.registry import Availability

        return self.listing.state in (Availability.USABLE, Availability.FORBIDDEN)

    @property
    def reason(self) -> str:
        """The reason that it is not usable, without its name."""
        return (self.listing.reason or "").removeprefix(f"backend {self.listing.name!r}: ")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--backend", metavar="NAME", help="This backend alone; see `ferry backends`.")
@click.option(
    "--calibrate", is_flag=True, help="Measure the costs of launches on each device, and keep them."
)
def doctor(as_json: bool, backend: str | None, calibrate: bool) -> int:
    """Report each backend's findings about this machine: facts, problems, and remedies.

    The exit code is 0 if every backend can be used, 1 if one cannot; with --backend only that one
    counts. Problems of a device or a library that a backend does not need, and backends excluded by
    FERRYVM_PLUGINS, are reported without changing it.

    The figures of launches that an earlier --calibrate has kept are shown, too.

    With --calibrate it measures instead: launch latency, copies, instructions by class, threads,
    for each device of each backend that runs items of launches out of order, some seconds a device.
    The default policy places launches by these figures. Exit code 1: a device could not be
    measured.
    """
    if calibrate:
        from ferryvm.cli.calibration import calibrate_all

        return calibrate_all(backend, as_json)
    from ferryvm.registry import Registry

    registry = Registry(log_faults=False)  # the report has the faults
    sections = _sections(registry, backend)
    machine = _machine()
    if as_json:
        document = {
            "machine": _as_json(machine),
            "backends": [_section_as_json(section) for section in sections],
            "warnings": registry.plugins.warnings,
        }
        click.echo(json.dumps(document, indent=2))
    else:
        _print(machine, sections)
        for warning in registry.plugins.warnings:
            click.echo(f"ferry: {warning}", err=True)
    return 0 if all(section.is_well for section in sections) else 1


def _sections(registry: Registry, backend: str | None) -> list[_Section]:
    from ferryvm.registry import Availability

    lines = registry.listings() if backend is None else [registry.listing(backend)]
    sections = []
    for line in lines:
        is_it = line.name in registry.names and line.state is not Availability.NAME_TAKEN
        sections.append(_Section(line, _findings(registry, line) if is_it else ()))
    return sections


def _findings(registry: Registry, line: Listing) -> tuple[Finding, ...]:
    """The findings of a backend, and its calibrations."""
    from ferryvm.backend import Compiler
    from ferryvm.cli.calibration import stored
    from ferryvm.registry import Availability

    found = registry.findings(line.name)
    if line.state is not Availability.USABLE:
        return found
    backend = registry.get(line.name)
    return (*found, *stored(backend)) if isinstance(backend, Compiler) else found


def _machine() -> Finding:
    """The finding about the machine, which every backend depends on."""
    from ferryvm import cache

    reason = cache.why_not_usable()
    return Finding(
        "machine",
        {
            "ferryvm": ferryvm.__version__,
            "Python": f"{platform.python_version()} ({platform.python_implementation()})",
            "platform": platform.platform(),
            "cache directory": str(cache.directory()),
            "cache key": str(cache.key_path()),
            "cache can be used": not reason,
        },
        reason and f"{reason.partition('; ')[0]}; native code is built by each process",
        reason and reason.partition("; ")[2],
    )


# --- as text --------------------------------------------------------------------------------


def _print(machine: Finding, sections: list[_Section]) -> None:
    click.secho(machine.subject, bold=True)
    _print_findings([machine], _INDENT)
    for section in sections:
        line = section.listing
        label = line.source if line.name == "-" else line.name
        click.echo(f"\n{click.style(label, bold=True)}: {line.state.value}")
        if section.reason:
            click.echo(f"{_INDENT}{section.reason}")
        for subject, findings in itertools.groupby(section.findings, lambda f: f.subject):
            click.echo(f"{_INDENT}{subject}")
            _print_findings(findings, _INDENT * 2)
    click.echo(f"\n{_total(machine, sections)}")


def _print_findings(findings: Iterable[Finding], indent: str) -> None:
    """Findings of one subject, in aligned lines."""
    rows = []
    for finding in findings:
        rows += [_shown(name, value) for name, value in finding.facts.items()]
        if finding.problem:
            rows.append(("problem", click.style(finding.problem, fg="red")))
        if finding.remedy:
            rows.append(("remedy", finding.remedy))
    width = max((len(name) for name, _ in rows), default=0)
    for name, text in rows:
        click.echo(f"{indent}{name:{width}}  {text}")


def _shown(name: str, value: str | float) -> tuple[str, str]:
    """A fact's name and value in readable form."""
    if isinstance(value, bool):
        return name, "yes" if value else "no"
    if isinstance(value, int) and name.endswith(" bytes"):
        return name.removesuffix(" bytes"), _size(value)
    return name, str(value)


def _size(count: int) -> str:
    """Bytes in the largest unit that fits: `7.8 GiB (8331001856)`."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << power:
            return f"{count / (1 << power):.1f} {unit} ({count})"
    return f"{count} bytes"


def _total(machine: Finding, sections: list[_Section]) -> str:
    unusable = sum(not section.is_well for section in sections)
    findings = [machine, *(finding for section in sections for finding in section.findings)]
    problems = sum(bool(finding.problem) for finding in findings)
    states = f"{unusable} of {len(sections)} not usable" if unusable else "all usable"
    return f"{states}; {problems or 'no'} {'problem' if problems < 2 else 'problems'} found"


# --- as JSON --------------------------------------------------------------------------------


def _as_json(finding: Finding) -> dict[str, object]:
    return {
        "subject": finding.subject,
        "facts": dict(finding.facts),
        "problem": finding.problem,
        "remedy": finding.remedy,
    }


def _section_as_json(section: _Section) -> dict[str, object]:
    line = section.listing
    return {
        "name": line.name,
        "kind": line.kind,
        "source": line.source,
        "version": line.version,
        "state": line.state.value,
        "reason": line.reason,
        "findings": [_as_json(finding) for finding in section.findings],
    }
