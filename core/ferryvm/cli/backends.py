# SPDX-License-Identifier: Apache-2.0
"""`ferry backends`: the backends, their sources, and what is wrong with them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ferryvm.registry import Listing


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with capabilities.")
def backends(as_json: bool) -> None:
    """List the backends: name, kind, source, version, protocol, state and the reason for it."""
    from ferryvm.registry import Registry

    registry = Registry(log_faults=False)  # the list has the faults
    lines, warnings = registry.listings(), registry.plugins.warnings
    if as_json:
        document = {"backends": [_as_json(line) for line in lines], "warnings": warnings}
        click.echo(json.dumps(document, indent=2))
        return
    _print(lines)
    for warning in warnings:
        click.echo(f"ferry: {warning}", err=True)


def _print(lines: list[Listing]) -> None:
    from rich.table import Table

    from ferryvm.cli.show import print_table

    table = Table("name", "kind", "source", "version", "protocol", "state", "reason", box=None)
    for line in lines:
        protocol = "?" if line.protocol is None else str(line.protocol)
        table.add_row(
            line.name,
            line.kind,
            line.source,
            line.version,
            protocol,
            line.state.value,
            line.reason or "",
        )
    print_table(table)


def _as_json(line: Listing) -> dict[str, object]:
    has = line.capabilities
    return {
        "name": line.name,
        "kind": line.kind,
        "source": line.source,
        "version": line.version,
        "protocol": line.protocol,
        "state": line.state.value,
        "reason": line.reason,
        "capabilities": has
        and {
            "fuel": has.fuel,
            "heap": has.heap,
            "cells": has.cells,
            "forcing": sorted(kind.value for kind in has.forcing),
        },
    }
