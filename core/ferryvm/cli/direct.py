# SPDX-License-Identifier: Apache-2.0
"""The common form of `ferry run`, parsed without click, whose import takes a fifth of a small run.

    ferry run FILE [--backend NAME] [-- ARGUMENT...]

Everything else is click's: other options, help, and each fault. `ferryvm.cli.run` declares the
options; a test compares the results of both parsers.
"""

from __future__ import annotations

import os
from pathlib import Path

from ferryvm.cli.run_option import Options
from ferryvm.named_tuple import NamedTuple

SEPARATOR = "--"
"""The words after the first one are the program's."""


class Call(NamedTuple):
    """A run of a program from its start."""

    file: Path
    options: Options


def parsed(words: list[str]) -> Call | None:
    """The call for the words after `ferry`; None if click has to parse them."""
    if words[:1] != ["run"]:
        return None
    has_arguments = SEPARATOR in words
    end = words.index(SEPARATOR) if has_arguments else len(words)
    own, arguments = words[1:end], tuple(words[end + 1 :])
    backend = None
    if "--backend" in own:
        at = own.index("--backend")
        backend = own[at + 1] if at + 1 < len(own) else ""
        del own[at : at + 2]
        if not backend or backend.startswith("-"):
            return None
    if len(own) != 1 or own[0].startswith("-"):
        return None
    file = Path(own[0])
    if not file.name or not os.access(file, os.R_OK):
        return None
    return Call(file, Options(backend=backend, arguments=arguments))
