# SPDX-License-Identifier: Apache-2.0
"""The `ferry` command.

Exit codes: 0 the command did what it was asked; 1 the program trapped; 2 something was unusable
(a file, a name, an option), told in one line on standard error; 130 interrupted.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys


def main() -> None:
    """Entry point of the console script; ends the process."""
    # Loading makes many objects and no garbage: collecting meanwhile costs a tenth of start-up.
    gc.disable()
    try:
        from ferryvm.cli.command import run_command

        gc.freeze()
        gc.enable()
        code = run_command()
    except KeyboardInterrupt:  # while loading
        print("ferry: interrupted", file=sys.stderr)
        code = 130
    _end(code)


def _end(code: int) -> None:
    """End the process. A compilation whose program has ended is not waited for."""
    compilation = sys.modules.get("ferryvm.engine.compilation")
    if compilation is None or not compilation.abandon():
        sys.exit(code)
    # Python's own end would free what the compiler is working with; what others have left to be
    # done at the end is done.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # it may be closed, or nobody reads it
            stream.flush()
    os._exit(code)
