# SPDX-License-Identifier: Apache-2.0
"""The table of rewrite rules.

A rule is a pattern (for each position the mnemonics that match), a function from the matched lines
to their replacement (None: it does not apply), and its first docstring line for the documentation.
A replacement must have:

- the same values, output and traps, and no deeper operand stack. `local.set x; local.get x` is
  not `dup; local.set x` for that reason: a frame one word deeper may overflow the stack;
- no more lines than before, and fewer opportunities for rules, so that rewriting ends;
- the position of the line that can trap or that has an effect.

Patterns match lines only, so a rule does not fire across a label, where control may enter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from ferryvm import record
from ferryvm.isa import BY_MNEMONIC, I32, I64, INSTRUCTIONS, Flow, Type
from ferryvm.listing import Item, Label, Line, Listing

LABEL = ":"
"""In a pattern: a label in place of a mnemonic."""


class Surroundings(Protocol):
    """Properties of the code around a rule's window."""

    @property
    def listing(self) -> Listing:
        """The whole listing, for statics and the like."""

    def is_used(self, label: str) -> bool:
        """True if something jumps to a label."""

    def is_followed_by(self, label: str) -> bool:
        """True if only labels, that one among them, stand between the window and the next line."""

    def forward(self, label: str) -> str:
        """The final target of a jump to `label`: the last label reached through jumps alone."""


Rewrite = Callable[..., "Sequence[Item] | None"]


@record.dataclass(frozen=True)
class Rule:
    """One row of the table."""

    name: str
    pattern: tuple[frozenset[str], ...]
    rewrite: Rewrite
    summary: str


RULES: list[Rule] = []
"""The whole table. Where several rules match, the first one fires."""


def _rule(*pattern: str | Collection[str]) -> Callable[[Rewrite], Rewrite]:
    def declare(rewrite: Rewrite) -> Rewrite:
        places = tuple(frozenset([p] if isinstance(p, str) else p) for p in pattern)
        summary = (rewrite.__doc__ or "").strip().split("\n")[0]
        RULES.append(Rule(rewrite.__name__, places, rewrite, summary))
        return rewrite

    return declare


# --- the sets of mnemonics that patterns name -------------------------------------------------

_INTEGERS = (I32, I64)
_CONSTANTS = [f"{t}.const" for t in Type]
_INTEGER_CONSTANTS = [f"{t}.const" for t in _INTEGERS]
_SUMS = [f"{t}.{name}" for t in _INTEGERS for name in ("add", "sub")]
_BRANCHES = ("jump_if", "jump_unless")
_WIDENINGS = ("i64.extend_i32_u", "i64.extend_i32_s")
_OPPOSITE = {"jump_if": "jump_unless", "jump_unless": "jump_if"}
EITHER_ORDER = [
    f"{t}.{name}" for t in _INTEGERS for name in ("add", "mul", "and", "or", "xor", "eq", "ne")
]

INVERSE: dict[str, str] = {}
"""The comparison that is 0 if and only if this one is 1. Floats have only one pair: with a NaN both
`lt` and `ge` are 0."""
for _t in Type:
    _pairs = [("eq", "ne")]
    if not _t.is_float:
        _pairs += [("lt_s", "ge_s"), ("lt_u", "ge_u"), ("gt_s", "le_s"), ("gt_u", "le_u")]
    for _left, _right in _pairs:
        INVERSE[f"{_t}.{_left}"] = f"{_t}.{_right}"
        INVERSE[f"{_t}.{_right}"] = f"{_t}.{_left}"

BOOLEANS = {"i32.eqz", "i64.eqz", *INVERSE} | {
    f"{t}.{name}" for t in Type if t.is_float for name in ("lt", "gt", "le", "ge")
}
"""Instructions whose result is 0 or 1."""

NEUTRAL: dict[str, int] = {}
"""The second operand for which the result is the first operand."""
for _t in _INTEGERS:
    for _names, _bits in (
        (("add", "sub", "or", "xor", "shl", "shr_s", "shr_u", "rotl", "rotr"), 0),
        (("mul", "div_s", "div_u"), 1),
        (("and",), _t.mask),
    ):
        NEUTRAL.update({f"{_t}.{name}": _bits for name in _names})

_VALUES = [*_CONSTANTS, "local.get", "static.get", "heap.size", "dup"]
"""Instructions that push a value and do nothing else."""

_TRAPPING = ("div_s", "div_u", "rem_s", "rem_u")
RESULTS = [
    row.mnemonic
    for row in INSTRUCTIONS
    if row.chapter in ("numeric", "mathematical", "conversion")
    and not row.mnemonic.endswith(_TRAPPING)
    and (".trunc_" not in row.mnemonic or ".trunc_sat_" in row.mnemonic)
]
"""Instructions that turn operands into a value, never trap and do nothing else."""

_LAST = (Flow.JUMP, Flow.TABLE, Flow.RETURN, Flow.STOP, Flow.THROW)

ENDS = [r.mnemonic for r in INSTRUCTIONS if r.flow in _LAST]
"""Instructions whose successor is not the next one."""


def _line(mnemonic: str, at: Line, operand: int | str | None = None) -> Line:
    return Line(BY_MNEMONIC[mnemonic], operand, at.position)


def _type(line: Line) -> str:
    return line.row.mnemonic.partition(".")[0]


# --- constants and increments -----------------------------------------------------------------


@_rule(_INTEGER_CONSTANTS, list(NEUTRAL))
def neutral_operand(s: Surroundings, constant: Line, operation: Line) -> Sequence[Item] | None:
    """`x + 0`, `x * 1` and the like are x."""
    if constant.operand != NEUTRAL[operation.row.mnemonic]:
        return None
    return [] if _type(constant) == _type(operation) else None


@_rule(_INTEGER_CONSTANTS, _SUMS, _INTEGER_CONSTANTS, _SUMS)
def adjacent_increments(
    s: Surroundings, first: Line, plus: Line, second: Line, plus_too: Line
) -> Sequence[Item] | None:
    """Adding or subtracting two constants in turn is adding one."""
    type_ = _type(first)
    if any(_type(line) != type_ for line in (plus, second, plus_too)):
        return None
    total = 0
    for constant, operation in ((first, plus), (second, plus_too)):
        assert isinstance(constant.operand, int)
        is_sum = operation.row.mnemonic.endswith("add")
        total += constant.operand if is_sum else -constant.operand
    value = record.replace(first, operand=total & Type(type_).mask)
    return [value, _line(f"{type_}.add", plus_too)]


@_rule("i64.const", "i32.wrap_i64")
def known_wrap(s: Surroundings, constant: Line, wrap: Line) -> Sequence[Item]:
    """The low half of a constant is a constant."""
    assert isinstance(constant.operand, int)
    return [_line("i32.const", wrap, constant.operand & I32.mask)]


@_rule(_WIDENINGS, "i32.wrap_i64")
def wrap_of_widened(s: Surroundings, widening: Line, wrap: Line) -> Sequence[Item]:
    """The low half of a widened i32 is the i32."""
    return []


# --- statics and locals -----------------------------------------------------------------------


def _is_static(s: Surroundings, number: object) -> bool:
    statics = s.listing.statics
    return isinstance(number, int) and number < len(statics) and statics[number].type is I64


@_rule("i64.const", "static.load")
def known_static_load(s: Surroundings, number: Line, load: Line) -> Sequence[Item] | None:
    """A load of a static with a known number, if there is one, is `static.get`."""
    if not _is_static(s, number.operand):
        return None
    return [record.replace(number, row=BY_MNEMONIC["static.get"], position=load.position)]


@_rule("i64.const", "static.store")
def known_static_store(s: Surroundings, number: Line, store: Line) -> Sequence[Item] | None:
    """A store to a static with a known number, if there is one, is `static.set`."""
    if not _is_static(s, number.operand):
        return None
    return [record.replace(number, row=BY_MNEMONIC["static.set"], position=store.position)]


@_rule(("local.get", "static.get"), ("local.set", "static.set"))
def store_to_itself(s: Surroundings, get: Line, set_: Line) -> Sequence[Item] | None:
    """A store of a variable into itself is removed."""
    return [] if _type(get) == _type(set_) and get.operand == set_.operand else None


# --- the operand stack ------------------------------------------------------------------------


@_rule(_VALUES, "drop")
def unused_value(s: Surroundings, value: Line, drop: Line) -> Sequence[Item]:
    """A value that is dropped need not be pushed."""
    return []


@_rule(RESULTS, "drop")
def unused_result(s: Surroundings, operation: Line, drop: Line) -> Sequence[Item] | None:
    """A result that is dropped need not be computed, if that cannot trap."""
    count = len(operation.row.pops)
    return [drop] * count if count <= 2 else None  # no code becomes longer


@_rule("swap", "swap")
def swap_back(s: Surroundings, swap: Line, again: Line) -> Sequence[Item]:
    """Two exchanges in a row are removed."""
    return []


@_rule("dup", "swap")
def swap_of_equals(s: Surroundings, dup: Line, swap: Line) -> Sequence[Item]:
    """Exchanging a value with its duplicate changes nothing."""
    return [dup]


@_rule("swap", EITHER_ORDER)
def swap_before_either_order(s: Surroundings, swap: Line, operation: Line) -> Sequence[Item]:
    """Operands need no exchange where their order does not matter."""
    return [operation]


@_rule("nop")
def no_operation(s: Surroundings, nop: Line) -> Sequence[Item]:
    """`nop` is removed."""
    return []


# --- booleans -----------------------------------------------------------------------------------


@_rule(_INTEGER_CONSTANTS, [f"{t}.eq" for t in _INTEGERS])
def equal_to_zero(s: Surroundings, zero: Line, compare: Line) -> Sequence[Item] | None:
    """`x == 0` is `eqz`."""
    if zero.operand != 0 or _type(zero) != _type(compare):
        return None
    return [_line(f"{_type(compare)}.eqz", compare)]


@_rule(_WIDENINGS, "i64.eqz")
def zero_test_of_widened(s: Surroundings, widening: Line, test: Line) -> Sequence[Item]:
    """A widened i32 is zero where the i32 is."""
    return [_line("i32.eqz", test)]


@_rule(list(BOOLEANS), "i32.const", "i32.ne")
def boolean_unequal_zero(
    s: Surroundings, boolean: Line, zero: Line, compare: Line
) -> Sequence[Item] | None:
    """`x != 0` of a boolean is the boolean."""
    return [boolean] if zero.operand == 0 else None


@_rule(list(BOOLEANS), _WIDENINGS, "i64.const", "i64.ne")
def widened_boolean_unequal_zero(
    s: Surroundings, boolean: Line, widening: Line, zero: Line, compare: Line
) -> Sequence[Item] | None:
    """A widened boolean is not zero where the boolean is 1."""
    return [boolean] if zero.operand == 0 else None


@_rule(list(BOOLEANS), "i32.eqz", "i32.eqz")
def double_negation(s: Surroundings, boolean: Line, no: Line, yes: Line) -> Sequence[Item]:
    """A boolean negated twice is itself."""
    return [boolean]


@_rule(list(INVERSE), "i32.eqz")
def negated_comparison(s: Surroundings, compare: Line, negation: Line) -> Sequence[Item]:
    """The negation of a comparison is the opposite comparison."""
    return [_line(INVERSE[compare.row.mnemonic], compare)]


@_rule(_INTEGER_CONSTANTS, [f"{t}.ne" for t in _INTEGERS], _BRANCHES)
def branch_on_nonzero(
    s: Surroundings, zero: Line, compare: Line, branch: Line
) -> Sequence[Item] | None:
    """A branch on `x != 0` is the opposite branch on `eqz`, which other rules make shorter."""
    if zero.operand != 0 or _type(zero) != _type(compare):
        return None
    opposite = BY_MNEMONIC[_OPPOSITE[branch.row.mnemonic]]
    return [_line(f"{_type(compare)}.eqz", compare), record.replace(branch, row=opposite)]


@_rule("i32.eqz", _BRANCHES)
def branch_on_negation(s: Surroundings, negation: Line, branch: Line) -> Sequence[Item]:
    """A branch on a negation is the opposite branch."""
    return [record.replace(branch, row=BY_MNEMONIC[_OPPOSITE[branch.row.mnemonic]])]


@_rule("i32.const", _BRANCHES)
def known_branch(s: Surroundings, condition: Line, branch: Line) -> Sequence[Item]:
    """A branch on a constant becomes a jump or is removed."""
    is_taken = (condition.operand != 0) == (branch.row.mnemonic == "jump_if")
    return [record.replace(branch, row=BY_MNEMONIC["jump"])] if is_taken else []


# --- jumps and labels -------------------------------------------------------------------------


@_rule(_BRANCHES, "jump")
def branch_over_jump(s: Surroundings, branch: Line, jump: Line) -> Sequence[Item] | None:
    """A branch around a jump is the opposite branch to the jump's label."""
    if not isinstance(branch.operand, str) or not s.is_followed_by(branch.operand):
        return None
    opposite = BY_MNEMONIC[_OPPOSITE[branch.row.mnemonic]]
    return [record.replace(branch, row=opposite, operand=jump.operand)]


@_rule(_BRANCHES, "jump")
def branch_and_jump_alike(s: Surroundings, branch: Line, jump: Line) -> Sequence[Item] | None:
    """A branch and a jump to the same label: the branch only drops its condition."""
    return [_line("drop", branch), jump] if branch.operand == jump.operand else None


@_rule("jump")
def jump_to_next(s: Surroundings, jump: Line) -> Sequence[Item] | None:
    """A jump to the next line is removed."""
    assert isinstance(jump.operand, str)
    return [] if s.is_followed_by(jump.operand) else None


@_rule(_BRANCHES)
def branch_to_next(s: Surroundings, branch: Line) -> Sequence[Item] | None:
    """A branch to the next line only drops its condition."""
    assert isinstance(branch.operand, str)
    return [_line("drop", branch)] if s.is_followed_by(branch.operand) else None


@_rule(("jump", *_BRANCHES, "jump_table"))
def jump_to_jump(s: Surroundings, jump: Line) -> Sequence[Item] | None:
    """A jump to a jump goes to the final target."""
    operand = jump.operand
    onward: str | tuple[str, ...]
    if isinstance(operand, tuple):
        onward = tuple(s.forward(name) for name in operand)
    else:
        assert isinstance(operand, str)
        onward = s.forward(operand)
    return None if onward == operand else [record.replace(jump, operand=onward)]


@_rule(ENDS, [row.mnemonic for row in INSTRUCTIONS])
def unreachable_line(s: Surroundings, end: Line, line: Line) -> Sequence[Item]:
    """A line right after a jump, return, halt or trap is unreachable and removed."""
    return [end]


@_rule(LABEL)
def unused_label(s: Surroundings, label: Label) -> Sequence[Item] | None:
    """A label that nothing jumps to is removed."""
    return None if s.is_used(label.name) else []
