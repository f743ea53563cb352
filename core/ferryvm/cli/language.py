# SPDX-License-Identifier: Apache-2.0
"""`ferry languages`."""

from __future__ import annotations

import click


@click.command()
def languages() -> None:
    """List the languages of programs: name, suffixes, source and description."""
    from rich.table import Table

    from ferryvm.cli.show import print_table
    from ferryvm.language import installed

    table = Table("name", "suffixes", "source", "summary", box=None)
    for language in installed().all:  # logs the faults of plugins
        suffixes = ", ".join(language.suffixes) or "-"
        table.add_row(language.name, suffixes, str(language.plugin), language.summary)
    print_table(table)
