# SPDX-License-Identifier: Apache-2.0
"""`ferry hosts`."""

from __future__ import annotations

import click

from ferryvm.cli.engine import add_hosts
from ferryvm.cli.option import hosts_option
from ferryvm.host_registry import HostListing
from ferryvm.registry import Registry


@click.command()
@hosts_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def hosts(hosts: tuple[str, ...], as_json: bool) -> None:
    """List the host functions that programs can import: the standard ones, those of plugins, and
    what --hosts names."""
    registry = Registry()
    add_hosts(registry, hosts)
    lines = registry.hosts.listings
    if as_json:
        import json

        click.echo(json.dumps({"hosts": [_as_json(line) for line in lines]}, indent=2))
        return
    from rich.table import Table

    from ferryvm.cli.show import print_table

    table = Table("name", "signature", "source", "summary", box=None)
    for line in lines:
        signature, summary = "?", line.reason
        if line.function is not None:
            signature, summary = str(line.function.signature), line.function.summary
        table.add_row(line.name, signature, line.source, summary)
    print_table(table)


def _as_json(line: HostListing) -> dict[str, object]:
    function = line.function
    return {
        "name": line.name,
        "signature": None if function is None else str(function.signature),
        "summary": None if function is None else function.summary,
        "source": line.source,
        "reason": line.reason or None,
    }
