# SPDX-License-Identifier: Apache-2.0
"""The classic listing form: upper-case mnemonics over one word type, tokens anywhere.

    PUSH_WORD 1          PUSH_WORD       both are one instruction; `:name` is a label,
                         1               `name` as an operand refers to it

A listing does not declare functions; `ferryvm.asm.inference` finds them. This module holds the
mnemonics and reads tokens into steps, one step a mnemonic.
"""

from __future__ import annotations

import dataclasses
import enum
import re

from ferryvm.asm import literal
from ferryvm.asm.literal import LiteralFault
from ferryvm.asm.source import Source, StatementFault, Token, near
from ferryvm.isa import BY_MNEMONIC

DEFAULT_STATICS = 256
"""The number of statics of a listing that computes numbers of statics at run time and does not
declare how many there are."""

MOST_WORDS = 1 << 16
"""Numbers of statics and of a frame's words are below this."""


class OperandKind(enum.Enum):
    """The operand of a mnemonic."""

    NONE = "nothing"
    WORD = "an i64 literal"
    LABEL = "a label"
    FRAME = "the number of a word in the frame, unless it is pushed right before"
    STATIC = "the number of a static, unless it is on the stack"


@dataclasses.dataclass(frozen=True)
class Mnemonic:
    """A classic mnemonic: operand, words popped and pushed, instructions it stands for.

    `{}` in the code is the operand; calls and returns are the inference's to write.
    """

    kind: OperandKind
    pops: int
    pushes: int
    code: str
    numbered: str = ""
    """The code if a static's number follows; it then pops one word less."""


def _comparison(condition: str) -> Mnemonic:
    return Mnemonic(OperandKind.NONE, 2, 1, f"i64.{condition}; i64.extend_i32_u")


def _binary(name: str) -> Mnemonic:
    return Mnemonic(OperandKind.NONE, 2, 1, f"i64.{name}")


MNEMONICS = {
    "PUSH_WORD": Mnemonic(OperandKind.WORD, 0, 1, "i64.const {}"),
    "LOAD_WORD_STATIC": Mnemonic(OperandKind.STATIC, 1, 1, "static.load", "static.get {}"),
    "STORE_WORD_STATIC": Mnemonic(OperandKind.STATIC, 2, 0, "static.store", "static.set {}"),
    "LOAD_WORD": Mnemonic(OperandKind.FRAME, 0, 1, "local.get {}"),
    "STORE_WORD": Mnemonic(OperandKind.FRAME, 1, 0, "local.set {}"),
    "ADD": _binary("add"),
    "SUB": _binary("sub"),
    "MUL": _binary("mul"),
    "DIV": _binary("div_s"),
    "INCR": Mnemonic(OperandKind.NONE, 1, 1, "i64.const 1; i64.add"),
    "DECR": Mnemonic(OperandKind.NONE, 1, 1, "i64.const 1; i64.sub"),
    "LT": _comparison("lt_s"),
    "GT": _comparison("gt_s"),
    "LE": _comparison("le_s"),
    "GE": _comparison("ge_s"),
    "EQ": _comparison("eq"),
    "NE": _comparison("ne"),
    "AND": _binary("and"),
    "OR": _binary("or"),
    "NOT": Mnemonic(OperandKind.NONE, 1, 1, "i64.eqz; i64.extend_i32_u"),
    "JMP": Mnemonic(OperandKind.LABEL, 0, 0, "jump {}"),
    "JMPT": Mnemonic(OperandKind.LABEL, 1, 0, "i64.eqz; jump_unless {}"),
    "JMPF": Mnemonic(OperandKind.LABEL, 1, 0, "i64.eqz; jump_if {}"),
    "MARK_STK": Mnemonic(OperandKind.NONE, 0, 0, ""),
    "CALL": Mnemonic(OperandKind.LABEL, 0, 0, "call {}"),
    "RETURN": Mnemonic(OperandKind.NONE, 0, 0, "return {}"),
    "PRINT": Mnemonic(OperandKind.NONE, 1, 0, "host print_i64"),
    "ENTER_JIT": Mnemonic(OperandKind.NONE, 0, 0, "enter_jit"),
    "LEAVE_JIT": Mnemonic(OperandKind.NONE, 0, 0, "leave_jit"),
    "STOP": Mnemonic(OperandKind.NONE, 0, 0, "halt"),
    "NOOP": Mnemonic(OperandKind.NONE, 0, 0, "nop"),
    "DUP": Mnemonic(OperandKind.NONE, 1, 2, "dup"),
    "SWAP": Mnemonic(OperandKind.NONE, 2, 2, "swap"),
    "DROP": Mnemonic(OperandKind.NONE, 1, 0, "drop"),
}


@dataclasses.dataclass(slots=True)
class Step:
    """A mnemonic with its operand and the labels before it."""

    name: str
    token: Token
    number: int | None = None
    """Literal, or number of a static or of a word in the frame."""
    label: str = ""
    """Operand of jumps and calls."""
    label_token: Token | None = None
    labels: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Steps:
    """A whole classic listing, read."""

    steps: list[Step] = dataclasses.field(default_factory=list)
    labels: dict[str, int] = dataclasses.field(default_factory=dict)
    """Index of the step that each label precedes; past the end for labels at the end."""
    statics: int | None = None
    """The number of statics that `.statics` declares."""


_CLASSIC_WORD = re.compile(r"[A-Z][A-Z_]*")
_DIRECTIVES = (".classic", ".statics")


def is_classic(source: Source) -> bool:
    """True if a text is in the classic form, which its first token after labels determines."""
    for token in source.first_tokens():
        if not token.startswith(":"):
            return token in _DIRECTIVES or _CLASSIC_WORD.fullmatch(token) is not None
    return False


def read(source: Source) -> Steps:
    """The steps of a classic text; raises SourceError with every fault."""
    steps = _Reader(source).read()
    source.check()
    return steps


class _Reader:
    """Turns tokens into steps."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = source.classic_tokens()
        self.at = 0
        self.result = Steps()
        self.label_tokens: dict[str, Token] = {}
        self.labels: list[str] = []
        """Labels read since the last step."""

    def read(self) -> Steps:
        while self.at < len(self.tokens):
            try:
                self._token(self._next())
            except StatementFault as fault:
                self.source.fault(fault.token, fault.message)
        self._check_labels()
        self._fold_frame_numbers()
        steps = self.result.steps
        self.result.labels = {
            label: index for index, step in enumerate(steps) for label in step.labels
        } | dict.fromkeys(self.labels, len(steps))
        return self.result

    def _next(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def _peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _token(self, token: Token) -> None:
        if token.text.startswith(":"):
            self._label(token)
        elif token.text.startswith("."):
            self._directive(token)
        elif token.text in MNEMONICS:
            self._step(token)
        elif literal.integer_like(token.text):
            before = self.result.steps[-1].name if self.result.steps else "the start"
            raise StatementFault(
                token,
                f"expected a mnemonic or :label after {before}, found the number {token.text}",
            )
        else:
            # The rest of the line can only be its operand: report no second fault for it.
            following = self._peek()
            if (
                following is not None
                and following.line == token.line
                and (following.text not in MNEMONICS and not following.text.startswith((":", ".")))
            ):
                self._next()
            hint = near(token.text, MNEMONICS)
            if token.text in BY_MNEMONIC:
                hint = "; instructions of the other form cannot stand in a classic listing"
            raise StatementFault(token, f"no classic mnemonic {token.text!r}{hint}")

    def _label(self, token: Token) -> None:
        name = token.text[1:]
        if not name:
            raise StatementFault(token, "a label needs a name right after the colon")
        if name in self.label_tokens:
            first = self.source.position(self.label_tokens[name])
            raise StatementFault(token, f"label {name!r} is already at {first}")
        self.label_tokens[name] = token
        self.labels.append(name)

    def _directive(self, token: Token) -> None:
        if token.text == ".classic":
            return
        if token.text != ".statics":
            hint = near(token.text, _DIRECTIVES)
            raise StatementFault(
                token,
                f"no directive {token.text!r} in the classic form{hint} "
                f"(known: {', '.join(_DIRECTIVES)})",
            )
        number = self._number(token, "a number of statics")
        if not 0 <= number <= MOST_WORDS:
            raise StatementFault(token, f"{number} statics; 0 to {MOST_WORDS} are allowed")
        self.result.statics = number

    def _step(self, token: Token) -> None:
        kind = MNEMONICS[token.text].kind
        step = Step(token.text, token, labels=self.labels)
        self.labels = []
        self.result.steps.append(step)
        following = self._peek()
        is_number = following is not None and literal.integer_like(following.text)
        if kind is OperandKind.WORD:
            step.number = self._word(token)
        elif kind in (OperandKind.FRAME, OperandKind.STATIC) and is_number:
            step.number = self._number(token, kind.value)
            if not 0 <= step.number < MOST_WORDS:
                raise StatementFault(
                    token,
                    f"{token.text} {step.number} is out of range: "
                    f"0 to {MOST_WORDS - 1} are allowed",
                )
        elif kind is OperandKind.LABEL:
            step.label_token = self._operand(token, kind.value)
            step.label = step.label_token.text

    def _operand(self, token: Token, expected: str) -> Token:
        following = self._peek()
        if (
            following is None
            or following.text.startswith((":", "."))
            or (following.text in MNEMONICS)
        ):
            found = "the end of the text" if following is None else repr(following.text)
            if following is None or following.line != token.line or following.text[0] != ":":
                raise StatementFault(token, f"{token.text} takes {expected}, found {found}")
            self._next()
            raise StatementFault(
                following,
                f"{token.text} takes {expected}, found {found}; "
                "as an operand a label stands without the colon",
            )
        return self._next()

    def _number(self, token: Token, expected: str) -> int:
        operand = self._operand(token, expected)
        try:
            value = literal.integer(operand.text)
        except LiteralFault as fault:
            raise StatementFault(operand, str(fault)) from None
        if value is None:
            raise StatementFault(operand, f"{token.text} takes {expected}, found {operand.text!r}")
        return value

    def _word(self, token: Token) -> int:
        operand = self._operand(token, OperandKind.WORD.value)
        try:
            return literal.integer_bits(64, "i64", operand.text)
        except LiteralFault as fault:
            raise StatementFault(operand, str(fault)) from None

    def _check_labels(self) -> None:
        for step in self.result.steps:
            if step.label_token is not None and step.label not in self.label_tokens:
                hint = near(step.label, self.label_tokens)
                self.source.fault(step.label_token, f"no label {step.label!r}{hint}")

    def _fold_frame_numbers(self) -> None:
        """Make a number pushed right before LOAD_WORD or STORE_WORD the instruction's operand."""
        folded: list[Step] = []
        for step in self.result.steps:
            if MNEMONICS[step.name].kind is OperandKind.FRAME and step.number is None:
                before = folded[-1] if folded else None
                if before is None or before.name != "PUSH_WORD" or step.labels:
                    self.source.fault(
                        step.token,
                        f"{step.name} needs a constant: a number that "
                        "follows it or that PUSH_WORD pushes right before it",
                    )
                elif before.number is not None:
                    folded.pop()
                    step.number, step.labels = before.number, before.labels
                    if step.number >= MOST_WORDS:
                        self.source.fault(
                            before.token,
                            f"{step.name} has the number "
                            f"{step.number}; 0 to {MOST_WORDS - 1} are allowed",
                        )
            folded.append(step)
        self.result.steps = folded
