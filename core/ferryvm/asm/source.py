# SPDX-License-Identifier: Apache-2.0
"""The text that is being assembled: its tokens with their places, and the faults found in it.

Faults are collected, so that one run shows them all; `check` raises them together.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterable, Iterator

from ferryvm.errors import Diagnostic, Position, suggestion
from ferryvm.source import SourceText

_NEAR_CANDIDATES = 2000
"""The number of names that are compared with an unknown one; it bounds the cost of a fault."""

_TOKEN = re.compile(
    r"""
      (?P<skip>    [\s,]+ | ;.* )
    | (?P<string>  :?"(?:[^"\\]|\\.)*" )
    | (?P<single>  [()] )
    | (?P<word>    [^\s,;()"]+ )
    | (?P<open>    " )
    """,
    re.VERBOSE,
)
_CLASSIC_TOKEN = re.compile(r";.*|[^\s;]+")


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text with its place; `text` is as it was written."""

    text: str
    line: int
    column: int


class StatementFault(Exception):  # noqa: N818 - becomes one line of a SourceError
    """A fault that ends the parsing of one statement."""

    def __init__(self, token: Token, message: str) -> None:
        self.token, self.message = token, message
        super().__init__(message)


class Source:
    """A text, its file's name and the faults found so far."""

    def __init__(self, text: str, file: str) -> None:
        self._text = SourceText(text, file)
        self.file = file
        self.lines = self._text.lines

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """The faults found so far."""
        return self._text.diagnostics

    def tokens(self, number: int) -> list[Token]:
        """The tokens of a line (from 1); commas are spaces, a string is one token."""
        found = []
        for match in _TOKEN.finditer(self.lines[number - 1]):
            if match.lastgroup == "skip":
                continue
            token = Token(match.group(), number, match.start() + 1)
            if match.lastgroup == "open":
                raise StatementFault(token, "this string has no closing quote on its line")
            found.append(token)
        return found

    def classic_tokens(self) -> list[Token]:
        """The tokens of the whole text in the classic form, separated by any white space."""
        found = []
        for number, line in enumerate(self.lines, start=1):
            for match in _CLASSIC_TOKEN.finditer(line):
                if not match.group().startswith(";"):
                    found.append(Token(match.group(), number, match.start() + 1))
        return found

    def first_tokens(self) -> Iterator[str]:
        """Texts of the tokens in order, read lazily."""
        for line in self.lines:
            for match in _CLASSIC_TOKEN.finditer(line):
                if not match.group().startswith(";"):
                    yield match.group()

    def position(self, token: Token) -> Position:
        """The position of a token."""
        return self._text.position(token.line, token.column)

    def fault(self, token: Token, message: str) -> None:
        """Record a fault; raises SourceError when there are too many to continue."""
        self._text.fault(token.line, token.column, message, len(token.text))

    @contextlib.contextmanager
    def collecting(self) -> Iterator[None]:
        """A context that a StatementFault ends; the fault is recorded."""
        try:
            yield
        except StatementFault as fault:
            self.fault(fault.token, fault.message)

    def check(self) -> None:
        """Raise SourceError if there are faults."""
        self._text.check()


def near(name: str, known: Iterable[str]) -> str:
    """The closest of the known names of about the same length, as `suggestion`."""
    candidates = []
    for candidate in known:
        if abs(len(candidate) - len(name)) <= 1 + len(name) // 2:
            candidates.append(candidate)
        if len(candidates) == _NEAR_CANDIDATES:
            break
    return suggestion(name, candidates)
