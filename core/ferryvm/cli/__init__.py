# SPDX-License-Identifier: Apache-2.0
"""The `ferry` command.

Exit codes: 0 the command succeeded; 1 the program trapped, or a host function that it called
failed; 2 something was unusable (a file, a name, an option), reported in one line on standard
error; 130 interrupted. SIGTERM, SIGHUP and SIGPIPE end the process as themselves.
"""

from __future__ import annotations

from ferryvm.cli import termination

_OBJECTS = 50_000
"""The threshold of the garbage collector in objects: more than a small run loads, some 10 MB."""


def main() -> None:
    """Entry point of the console script; ends the process."""
    termination.begin()  # first, so that signals end in one line and no file gets descriptors 0 to 2
    import gc

    # Imports make many objects and no garbage: collecting them costs a tenth of start-up. Commands
    # import most modules when they need them, so the threshold stays in force.
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
    from ferryvm.cli.outcome import run_command

    termination.end(run_command())
