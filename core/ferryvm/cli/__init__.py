# SPDX-License-Identifier: Apache-2.0
"""The `ferry` command.

Exit codes: 0 the command did what it was asked; 1 the program trapped, or a host function that it
called failed; 2 something was unusable (a file, a name, an option), told in one line on standard
error; 130 interrupted. SIGTERM, SIGHUP and SIGPIPE end the process as themselves.
"""

from __future__ import annotations

from ferryvm.cli import termination

_OBJECTS = 50_000
"""Objects after which garbage is looked for: more than a small run loads, some 10 MB of them."""


def main() -> None:
    """Entry point of the console script; ends the process."""
    termination.begin()  # first: signals end in one line, no file gets descriptors 0 to 2
    import gc

    # Loading makes many objects and no garbage: collecting meanwhile costs a tenth of start-up. Most
    # is loaded when a command knows what it needs, so this holds for all of its time.
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
    from ferryvm.cli.command import run_command

    termination.end(run_command())
