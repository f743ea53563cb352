# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have, except for those of `ferryvm.cli.limit`."""

from __future__ import annotations

import click

from ferryvm.cli.path import FILE

device_option = click.option(
    "--device",
    "--machine",
    metavar="NAME",
    help="What --backend compiles for: a device of opencl; a machine of vliw, or its file.",
)
"""For commands with `--backend`; `device.check_device_option` checks both."""

hosts_option = click.option(
    "--hosts",
    multiple=True,
    metavar="MODULE:NAME",
    help="Offer host functions of a Python module or FILE.py, or the kernel in a folder; may be given several times.",
)
"""For commands that run programs; `engine.add_hosts` reads it."""

language_option = click.option(
    "--language",
    metavar="NAME",
    help="Language of the program, whatever its suffix; see `ferry languages`.",
)
"""For commands that read a program by `ferryvm.read`."""

policy_option = click.option(
    "--policy",
    type=FILE,
    metavar="FILE",
    help="Which backend runs what; see `ferry policy`.",
)
"""For commands that run programs; `engine.make_engine` reads it."""
