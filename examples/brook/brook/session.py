# SPDX-License-Identifier: Apache-2.0
"""Whole texts, and the inputs of `ferry repl --language brook`.

Each input is a program of its own that is started with the statics and the objects of the one
before (`Engine.start(after=...)`). So that function values stay valid, it holds the functions of
all inputs before, in their order, and statics and types begin with those before: the inputs are
compiled again, and only the last one is called.
"""

from __future__ import annotations

from brook import parser
from brook.compiler import compile_unit
from brook.tree import BrookError, Node
from brook.unit import Unit
from ferryvm.listing import Listing
from ferryvm.source import SourceText


def parse_listing(text: str, file: str) -> Listing:
    """The listing of a text. Raises SourceError with the faults of all functions."""
    unit, source = Unit(), SourceText(text, file)
    main = compile_unit(unit, _parsed(source, text), source)
    source.check()
    unit.program.start(main)
    return unit.program.listing()


def _parsed(source: SourceText, text: str) -> list[Node]:
    """The statements of a text. Raises SourceError."""
    try:
        return parser.parse(text)
    except BrookError as error:
        source.fault(*error.place, str(error), error.length)
        source.check()
        raise


class Session:
    """Inputs that can use what came before."""

    def __init__(self) -> None:
        self._inputs: list[tuple[list[Node], SourceText]] = []

    def listing(self, text: str) -> Listing:
        """The listing of the next input. Raises SourceError; the session is then as it was."""
        source = SourceText(text, f"<input {len(self._inputs) + 1}>")
        inputs = [*self._inputs, (_parsed(source, text), source)]
        unit = Unit()
        for statements, at in inputs:
            main = compile_unit(unit, statements, at, shows=True)
        source.check()
        self._inputs = inputs
        unit.program.start(main)
        return unit.program.listing()

    def is_complete(self, text: str) -> bool:
        """True if no bracket is open."""
        return parser.is_complete(text)
