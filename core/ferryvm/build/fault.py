# SPDX-License-Identifier: Apache-2.0
"""Faults of a program under construction, reported at the line of Python that causes them."""

from __future__ import annotations

import os
import sys

from ferryvm.errors import FerryError

_FOLDER = __file__.removesuffix(os.path.basename(__file__))
"""The folder of this package; it ends with a separator."""

Place = tuple[str, int]
"""A Python file and a line in it."""


class BuildError(FerryError):
    """A call of the builder that cannot be part of a program: `file` and `line` of the caller,
    `message`."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        """`place`: the line to report; if omitted, the caller's."""
        self.file, self.line = place or caller()
        self.message = message
        super().__init__(f"{self.file}:{self.line}: {message}")


def caller() -> Place:
    """The line that called this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_FOLDER):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
