# SPDX-License-Identifier: Apache-2.0
"""Text to trees: recursive descent, with precedence climbing for operators.

A statement ends at the end of its line; within parentheses and brackets lines do not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from brook import tree

T = TypeVar("T")

_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r]+|\#.*) | (?P<line>\n) | (?P<float>\d+\.\d+(?:e[+-]?\d+)?) | (?P<int>\d+)
      | (?P<str>"(?:[^"\\\n]|\\.)*") | (?P<name>[A-Za-z_]\w*) | (?P<sign>[=!<>]=|.)""",
    re.VERBOSE,
)
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\"": '"', r"\\": "\\"}
_PRECEDENCE = [["or"], ["and"], ["==", "!=", "<", "<=", ">", ">="], ["+", "-"], ["*", "/", "%"]]
_KEYWORDS = ["fun", "let", "if", "else", "while", "return", "print", "and", "or", "not"]


class Token(NamedTuple):
    """A word of the text."""

    kind: str
    text: str
    place: tree.Place


def tokens(text: str) -> list[Token]:
    """The tokens; ends of lines where they count, and at last an `end`."""
    found, line, start, depth = [], 1, 0, 0
    for match in _TOKEN.finditer(text):
        kind, word, place = match.lastgroup or "", match[0], (line, match.start() - start + 1)
        if kind == "line":
            if depth == 0:
                found.append(Token("line", "the end of the line", place))
            line, start = line + 1, match.end()
        elif kind != "skip":
            depth += (word in "([") - (word in ")]") if kind == "sign" else 0
            found.append(Token("keyword" if word in _KEYWORDS else kind, word, place))
    return [*found, Token("end", "the end", (line, len(text) - start + 1))]


def is_complete(text: str) -> bool:
    """True if no bracket is open."""
    signs = [token.text for token in tokens(text) if token.kind == "sign"]
    return all(signs.count(left) <= signs.count(right) for left, right in ("()", "[]", "{}"))


def parse(text: str) -> list[tree.Node]:
    """The statements of a text. Raises tree.BrookError."""
    parser = _Parser(tokens(text))
    return parser.statements("the end")


class _Parser:
    def __init__(self, words: list[Token]) -> None:
        self.words, self.at = words, 0

    @property
    def here(self) -> Token:
        return self.words[self.at]

    def next(self, *wanted: str) -> Token:
        """The next token, which has one of these texts or kinds."""
        token = self.here
        if wanted and token.text not in wanted and token.kind not in wanted:
            expected = f"expected {' or '.join(wanted)}, found {token.text!r}"
            raise tree.BrookError(token.place, expected, len(token.text))
        self.at += 1
        return token

    def accept(self, text: str) -> bool:
        """True if the next token is this sign or keyword, which is then taken."""
        found = self.here.text == text and self.here.kind != "str"
        self.at += found
        return found

    def skip_lines(self) -> None:
        while self.here.kind == "line":
            self.at += 1

    def items(self, end: str, item: Callable[[], T]) -> list[T]:
        """Items with commas between them, up to `end`."""
        found: list[T] = []
        while not self.accept(end):
            if found:
                self.next(",")
            found.append(item())
        return found

    # --- statements -------------------------------------------------------------------------

    def statements(self, end: str) -> list[tree.Node]:
        found = []
        self.skip_lines()
        while not (self.accept(end) if self.here.kind != "end" else self.next(end)):
            found.append(self.statement())
            if self.here.text not in ("}", "the end"):
                self.next("line")
            self.skip_lines()
        return found

    def block(self) -> list[tree.Node]:
        self.next("{")
        return self.statements("}")

    def statement(self) -> tree.Node:
        token = self.here
        if token.text == "fun" and self.words[self.at + 1].kind == "name":
            self.next()
            return self.function(token.place, self.next("name").text)
        if self.accept("let"):
            name = self.next("name")
            self.next("=")
            return tree.Let(name.place, name.text, self.expression())
        if self.accept("if"):
            return self.condition(token.place)
        if self.accept("while"):
            return tree.While(token.place, self.expression(), self.block())
        if self.accept("return"):
            empty = self.here.kind in ("line", "end") or self.here.text == "}"
            return tree.Return(token.place, None if empty else self.expression())
        if self.accept("print"):
            return tree.Print(token.place, self.expression())
        value = self.expression()
        if isinstance(value, tree.Name | tree.Index) and self.accept("="):
            return tree.Assign(value.place, value, self.expression())
        return value

    def condition(self, place: tree.Place) -> tree.Node:
        condition, then, otherwise = self.expression(), self.block(), []
        if self.accept("else"):
            other = self.here.place
            otherwise = [self.condition(other)] if self.accept("if") else self.block()
        return tree.If(place, condition, then, otherwise)

    def function(self, place: tree.Place, name: str | None) -> tree.Function:
        self.next("(")
        parameters = self.items(")", self.parameter)
        result = self.kind() if self.accept(":") else tree.NOTHING
        return tree.Function(place, name, parameters, result, self.block())

    def parameter(self) -> tuple[str, tree.Kind]:
        name = self.next("name").text
        self.next(":")
        return name, self.kind()

    def kind(self) -> tree.Kind:
        if self.accept("["):
            element = self.kind()
            self.next("]")
            return tree.Kind("array", (element,))
        if self.accept("fun"):
            self.next("(")
            parameters = self.items(")", self.kind)
            return tree.Kind(
                "fun", (*parameters, self.kind() if self.accept(":") else tree.NOTHING)
            )
        return tree.Kind(self.next("int", "float", "bool", "str").text)

    # --- expressions ------------------------------------------------------------------------

    def expression(self, level: int = 0) -> tree.Node:
        if level == len(_PRECEDENCE):
            return self.unary()
        left = self.expression(level + 1)
        while self.here.text in _PRECEDENCE[level] and self.here.kind != "str":
            sign = self.next()
            left = tree.Operation(sign.place, sign.text, [left, self.expression(level + 1)])
        return left

    def unary(self) -> tree.Node:
        token = self.here
        if self.accept("-") or self.accept("not"):
            return tree.Operation(token.place, token.text, [self.unary()])
        value = self.primary()
        while True:
            token = self.here
            if self.accept("("):
                value = tree.Call(token.place, value, self.items(")", self.expression))
            elif self.accept("["):
                value = tree.Index(token.place, value, self.expression())
                self.next("]")
            else:
                return value

    def primary(self) -> tree.Node:
        token = self.next("int", "float", "str", "name", "(", "[", "fun")
        if token.kind == "int":
            if len(token.text) > 19 or int(token.text) >= 1 << 63:
                raise tree.BrookError(token.place, "expected a number below 2^63", len(token.text))
            return tree.Literal(token.place, int(token.text))
        if token.kind == "float":
            return tree.Literal(token.place, float(token.text))
        if token.kind == "str":
            plain = re.sub(r"\\.", lambda match: _ESCAPES.get(match[0], match[0]), token.text)
            return tree.Literal(token.place, plain[1:-1])
        if token.text in ("true", "false"):
            return tree.Literal(token.place, token.text == "true")
        if token.text == "(":
            value = self.expression()
            self.next(")")
            return value
        if token.text == "[":
            return tree.Array(token.place, self.items("]", self.expression))
        if token.text == "fun":
            return self.function(token.place, None)
        return tree.Name(token.place, token.text)
