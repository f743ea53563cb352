# SPDX-License-Identifier: Apache-2.0
"""The `ferry` command.

Exit codes: 0 the command did what it was asked; 1 the program trapped; 2 something was unusable
(a file, a name, an option), told in one line on standard error; 130 interrupted.
"""

from __future__ import annotations

import gc
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
    sys.exit(code)
