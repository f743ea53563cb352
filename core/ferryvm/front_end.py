# SPDX-License-Identifier: Apache-2.0
"""Front ends: they translate a text to a listing, which is code with names.

    text ── FrontEnd.parse ──> Listing ── peephole ── encode ──> Program      a file
    text ── Session.listing ─> Listing ── peephole ── encode ──> Program      an input of `ferry repl`

A listing has everything that a program has; encoding, images, the verifier and backends know of no
language. docs/writing-a-front-end.md shows one, whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ferryvm import record

if TYPE_CHECKING:
    from ferryvm.listing import Listing

__all__ = ["FrontEnd", "Session"]


class Session(Protocol):
    """Texts that are compiled one after another, each able to use what came before.

    Each is a whole program; its statics begin with those of the program before, in their order:
    it is started with their values, and with the heap.
    """

    def listing(self, text: str) -> Listing:
        """The listing of the next input. Raises SourceError; the session is then as it was."""

    def is_complete(self, text: str) -> bool:
        """True if an input can be taken as it stands, rather than goes on in another line."""


@record.dataclass(frozen=True)
class FrontEnd:
    """A language, as far as programs are made of it."""

    parse: Callable[[str, str], Listing]
    """The listing of a text (first argument) from a file of that name (second). Raises SourceError
    with every fault; positions of lines are what traps and `ferry explain` show."""
    optimize: bool = True
    """Run the peephole over its code unless the user says otherwise."""
    session: Callable[[], Session] | None = None
    """Begins a session; None: `ferry repl` does not know the language."""
