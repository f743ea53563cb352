# SPDX-License-Identifier: Apache-2.0
"""Front ends: they translate a source text to a listing, which is symbolic code.

    text ── FrontEnd.parse ──> Listing ── peephole ── encode ──> Program      a file
    text ── Session.listing ─> Listing ── peephole ── encode ──> Program      one input, `ferry repl`

A listing has everything that a program has, and does not depend on the language: neither do
encoding, images, the verifier and backends. docs/writing-a-front-end.md has a complete one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ferryvm import record

if TYPE_CHECKING:
    from ferryvm.listing import Listing

__all__ = ["FrontEnd", "Session"]


class Session(Protocol):
    """Inputs that are compiled one after another; each can use the definitions of earlier ones.

    Each is a whole program. Its statics begin with those of the previous program, in their order:
    it starts with their values, and with the previous heap.
    """

    def listing(self, text: str) -> Listing:
        """The listing of the next input. Raises SourceError, and does not change the session
        then."""

    def is_complete(self, text: str) -> bool:
        """True if an input is complete; false if it continues on another line."""


@record.dataclass(frozen=True)
class FrontEnd:
    """The front end of a language."""

    parse: Callable[[str, str], Listing]
    """Translates a text (first argument) from a file of that name (second) to a listing. Raises
    SourceError with all errors. Traps and `ferry explain` show the positions of its lines."""
    optimize: bool = True
    """Run the peephole over its code by default."""
    session: Callable[[], Session] | None = None
    """Returns a new session; None: `ferry repl` does not support the language."""
