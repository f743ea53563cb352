# SPDX-License-Identifier: Apache-2.0
"""A disagreement as one self-contained file, and reading it again.

The file is readable JSON: the comparison, the first difference, the point of divergence with the
last instructions on both sides, the program as assembly; and its image in base64, which a replay
runs. The file is self-contained: it needs neither the source nor the campaign that found it.
"""

from __future__ import annotations

from ferryvm.testing.disagreement.file import (
    DisagreementError,
    from_text,
    load,
    save,
    to_text,
)
from ferryvm.testing.disagreement.model import Disagreement, record, showing, versions
from ferryvm.testing.disagreement.reproduction import Shown, show_again

__all__ = [
    "SUFFIX",
    "Disagreement",
    "DisagreementError",
    "Shown",
    "from_text",
    "load",
    "record",
    "save",
    "show_again",
    "showing",
    "to_text",
    "versions",
]

SUFFIX = ".disagreement"
"""The suffix of the files."""
