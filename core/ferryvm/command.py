# SPDX-License-Identifier: Apache-2.0
"""Building blocks for commands that plugins add to `ferry`: files, tables, traps, arguments of
programs.

The commands of `ferry` itself are in `ferryvm.cli`, which is not public. A command that keeps to
this module treats files as they do, ends with their exit codes and looks like them.
"""

from __future__ import annotations

from ferryvm.atomic_file import replace_file
from ferryvm.cli.argument import ProgramCommand
from ferryvm.cli.file import check_writable, naming, refuse_same_file
from ferryvm.cli.run_failure import Trapped, with_source_line
from ferryvm.cli.show import print_table

__all__ = [
    "ProgramCommand",
    "Trapped",
    "check_writable",
    "naming",
    "print_table",
    "refuse_same_file",
    "replace_file",
    "with_source_line",
]
