# SPDX-License-Identifier: Apache-2.0
"""From text to datums: atoms and lists with their positions. Names have no meaning here.

The reader has an explicit stack, so a text of any depth is read or refused without exceeding
Python's recursion limit. It refuses more than MAX_NESTING levels because the phases after it are
recursive.

An unclosed parenthesis would swallow the rest of the text. When a text ends inside a form, the
reader returns to the next parenthesis in column 1 (where forms start in formatted text) and
continues from there: one lost parenthesis costs one form.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from itertools import accumulate

from ferryvm import pattern, record
from ferryvm.errors import Position
from ferryvm.named_tuple import NamedTuple
from ferryvm.skiff.fault import Faults, SourceSpan

MAX_NESTING = 100
MAX_RESTARTS = 20
"""The number of restarts after unclosed forms; each reads the rest of the text again."""


class Atom(NamedTuple):
    """A name or a literal."""

    text: str
    place: SourceSpan


class Sequence(NamedTuple):
    """A parenthesised list."""

    items: tuple[Datum, ...]
    place: SourceSpan


Datum = Atom | Sequence

_TOKEN = re.compile(
    r"""
      (?P<space>   \s+ | ;[^\n]* )
    | (?P<comment> \#\| )
    | (?P<stray>   \|\#(?=[\s()]|\Z) )
    | (?P<paren>   [()] )
    | (?P<character> \#\\(?:[^\s();"'`,\[\]{}]+|.) )
    | (?P<atom>    [^\s();"'`,\[\]{}]+ )
    | (?P<string>  "(?:[^"\\\n]|\\.)*" )
    | (?P<open_string> "[^\n]* )
    | (?P<other>   . )
    """,
    re.VERBOSE,
)
_COMMENT_EDGE = pattern.lazy(r"#\||\|#")


def read(text: str, file: str, faults: Faults) -> list[Datum]:
    """The top-level datums of a text; unreadable ones are omitted and recorded in `faults`."""
    faults.add_text(file, text)
    return _Reader(text, file, faults).read()


def is_complete(text: str) -> bool:
    """True if no parenthesis and no block comment is open at the end of the text."""
    depth = 0
    for kind, start, _ in _tokens(text, 0):
        if kind == "open comment":
            return False
        if kind == "paren":
            depth += 1 if text[start] == "(" else -1
            if depth < 0:
                return True  # more text cannot repair it: let the compiler report it
    return depth == 0


def _tokens(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Kind, start and end of every token except space; `open comment` for one without an end."""
    while start < len(text):
        match = _TOKEN.match(text, start)
        assert match is not None
        assert match.lastgroup is not None
        end = match.end()
        if match.lastgroup == "comment":
            closed = _comment_end(text, end)
            if closed is None:
                yield "open comment", start, end
                return
            end = closed
        elif match.lastgroup != "space":
            yield match.lastgroup, start, end
        start = end


def _comment_end(text: str, start: int) -> int | None:
    """The end of the block comment whose text begins at `start`; comments nest."""
    depth = 1
    for match in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if match[0] == "#|" else -1
        if depth == 0:
            return match.end()
    return None


@record.dataclass
class _Open:
    """A list whose end has not been read yet."""

    start: int
    items: list[Datum] = record.field(default_factory=list)


class _Reader:
    def __init__(self, text: str, file: str, faults: Faults) -> None:
        self.text, self.file, self.faults = text, file, faults
        self.line_starts = [0, *accumulate(len(line) + 1 for line in text.split("\n")[:-1])]
        self.forms: list[Datum] = []

    def read(self) -> list[Datum]:
        start: int | None = 0
        for _ in range(MAX_RESTARTS):
            if start is not None:
                start = self._run(start)
        return self.forms

    def _run(self, start: int) -> int | None:
        """Read from `start` to the end; returns the offset at which to restart after an unclosed
        form."""
        stack: list[_Open] = []
        too_deep = False
        restart: int | None = None
        open_there = 0  # lists open at `restart`
        unclosed = start  # the innermost of them
        for kind, begin, end in _tokens(self.text, start):
            if kind == "paren" and self.text[begin] == "(":
                if stack and restart is None and self.text[begin - 1] == "\n":
                    restart, open_there, unclosed = begin, len(stack), stack[-1].start
                stack.append(_Open(begin))
                if len(stack) > MAX_NESTING and not too_deep:
                    too_deep = True
                    self._fault(begin, 1, f"more than {MAX_NESTING} parentheses are open here")
            elif kind == "paren" and not stack:
                self._fault(begin, 1, "')' closes nothing")
            elif kind == "paren":
                closed = stack.pop()
                if len(stack) < open_there:
                    restart, open_there = None, 0
                if not too_deep:
                    items = tuple(closed.items)
                    self._add(stack, Sequence(items, self._place(closed.start, end)))
                too_deep = too_deep and bool(stack)
            elif kind in ("atom", "character", "string"):
                self._add(stack, Atom(self.text[begin:end], self._place(begin, end)))
            elif kind == "open comment":
                self._fault(begin, 2, "the comment '#|' is never closed with '|#'")
            elif kind == "stray":
                self._fault(begin, 2, "'|#' closes no comment")
            elif kind == "open_string":
                message = "the string has no end in its line; a line end in it is written \\n"
                self._fault(begin, end - begin, message)
            else:
                character = self.text[begin]
                self._fault(begin, 1, f"unexpected character {character!r}")
        if not stack:
            return None
        if not too_deep:
            where = stack[0].start if restart is None else unclosed
            self._fault(where, 1, "'(' is never closed")
        self._lose_name(stack)
        return restart

    def _lose_name(self, stack: list[_Open]) -> None:
        """Record the name that an unclosed `define`, `define-constant` or `define-struct` would
        have defined."""
        head = stack[0].items[0] if stack[0].items else None
        if not (
            isinstance(head, Atom) and head.text in ("define", "define-constant", "define-struct")
        ):
            return
        target: Datum | None = stack[0].items[1] if len(stack[0].items) > 1 else None
        if isinstance(target, Sequence):
            target = target.items[0] if target.items else None
        elif target is None and len(stack) > 1 and stack[1].items:
            target = stack[1].items[0]
        if isinstance(target, Atom):
            self.faults.lost_names.add(target.text)
            if head.text == "define-struct":
                self.faults.lost_names.update((f"make-{target.text}", f"{target.text}?"))

    def _add(self, stack: list[_Open], datum: Datum) -> None:
        (stack[-1].items if stack else self.forms).append(datum)

    def _place(self, start: int, end: int) -> SourceSpan:
        line = bisect.bisect_right(self.line_starts, start)
        column = start - self.line_starts[line - 1] + 1
        newline = self.text.find("\n", start, end)
        return SourceSpan(
            Position(self.file, line, column), (end if newline < 0 else newline) - start
        )

    def _fault(self, start: int, length: int, message: str) -> None:
        self.faults.add(self._place(start, start + length), message)
