# SPDX-License-Identifier: Apache-2.0
"""The error for code that cannot be exported: what does it, in which line, what to do instead."""

from __future__ import annotations

from ferryvm.errors import FerryError, Position


class ExportError(FerryError):
    """Code that cannot leave ferryvm. The message names the line, and what would be exportable."""

    def __init__(self, what: str, instead: str, position: Position | None = None) -> None:
        self.position = position
        where = f"{position}: " if position else ""
        super().__init__(f"{where}cannot be exported: {what}; {instead}")
