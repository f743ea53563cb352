# SPDX-License-Identifier: Apache-2.0
"""Variables whose floats are compared, added, multiplied and stored, and nothing else: they have
one kind.

    least = math.inf                least: float            total = 0.0         total: float
    for x in xs:                                            for x in xs:
        if x < least:               x: numpy.float64            total += x      the sum is a numpy.float64
            least = x               least: float            out[i] = total

Otherwise the loop would have two versions, one until the first assignment. Comparisons, sums,
differences and products of floats have the same bits for both kinds, and so have elements into
which they are stored. A variable is such a one if it is read only by comparisons in conditions of
branches, by stores, and by assignments to others of them, as it is or in sums and products. With
anything else than a float of 64 bits or an int the kinds may be told apart (a numpy.float32 rounds
a Python float): then the variable is none, and the program is built again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from ferryvm.python.control_flow.graph import (
    Assign,
    Block,
    Branch,
    Store,
    Unpack,
    read,
    reads,
    writes,
)
from ferryvm.python.value.kind import FLOAT, INT, Array, Kind, Scalar

_NUMPY_FLOAT = Scalar("float64")
_NUMBERS = (FLOAT, _NUMPY_FLOAT, INT)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


class ComparedFloats:
    """The variables of one function."""

    def __init__(self, blocks: Sequence[Block], parameters: Sequence[str]) -> None:
        """`parameters`: their kinds are the caller's."""
        self._names = _only_plain(blocks) - {*parameters}
        self.dropped = 0
        """Variables that turned out to be none."""

    def kind(self, name: str, kind: Kind) -> Kind:
        """The kind with which a variable gets a value of a kind; the bits are the same."""
        return FLOAT if kind == _NUMPY_FLOAT and name in self._names else kind

    def check_value(self, kind: Callable[[ast.expr], Kind], value: ast.expr) -> None:
        """Drop the variables in the sums and products of a value that is assigned or stored, if
        there is anything else than floats and ints. `kind`: of an operand."""
        operands = [*_operands(value)]
        names = self._names & {each.id for each in operands if isinstance(each, ast.Name)}
        if len(operands) > 1 and names:
            self._drop(names, any(kind(each) not in _NUMBERS for each in operands))

    def check_stored(self, kind: Kind, value: ast.expr) -> None:
        """Drop the variables in a value that is stored into anything else than an array of
        floats."""
        names = self._names & {each.id for each in _operands(value) if isinstance(each, ast.Name)}
        is_float = isinstance(kind, Array) and kind.dtype in ("float64", "float32")
        self._drop(names, not is_float)

    def _drop(self, names: set[str], is_dropped: bool) -> None:
        if is_dropped:
            self._names -= names
            self.dropped += len(names)

    def check(self, kind: Callable[[ast.expr], Kind], condition: ast.expr) -> None:
        """Drop the variables that a condition compares with anything else than floats. `kind`: of
        an operand."""
        for comparison in _comparisons(condition):
            operands = [comparison.left, *comparison.comparators]
            names = self._names & {each.id for each in operands if isinstance(each, ast.Name)}
            if names:
                self._drop(names, any(kind(each) not in (FLOAT, _NUMPY_FLOAT) for each in operands))


def _only_plain(blocks: Sequence[Block]) -> set[str]:
    others: set[str] = set()
    found: set[str] = set()
    copies: list[tuple[str, str]] = []
    for block in blocks:
        for step in block.statements:
            if isinstance(step, Assign | Unpack):
                found |= writes(step)
            else:
                others |= writes(step)
            if isinstance(step, Assign | Store):
                for each in _operands(step.value):
                    if not isinstance(each, ast.Name):
                        others |= read(each)
                    elif isinstance(step, Assign):
                        copies.append((each.id, step.name))
            if isinstance(step, Store):
                others |= read(step.array) | read(step.index)
            elif not isinstance(step, Assign):
                others |= reads(step)
        end = block.end
        if isinstance(end, Branch):
            others |= _read_elsewhere(end.condition)
        elif end is not None:
            others |= reads(end) | {getattr(end, "name", "")}
    while spread := {source for source, to in copies if to in others or to not in found} - others:
        others |= spread
    return found - others


def _operands(value: ast.expr) -> Iterator[ast.expr]:
    """The operands of sums, differences and products of a value; itself if it is none."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub | ast.Mult):
        yield from _operands(value.left)
        yield from _operands(value.right)
    else:
        yield value


def _read_elsewhere(condition: ast.expr) -> set[str]:
    """The names that a condition reads other than as operands of comparisons that decide it."""
    match condition:
        case ast.BoolOp():
            return set().union(*map(_read_elsewhere, condition.values))
        case ast.UnaryOp(op=ast.Not()):
            return _read_elsewhere(condition.operand)
        case ast.Compare() if all(isinstance(op, _ORDER) for op in condition.ops):
            operands = [condition.left, *condition.comparators]
            others = (each for each in operands if not isinstance(each, ast.Name))
            return set().union(*map(read, others))
    return read(condition)


def _comparisons(condition: ast.expr) -> Iterator[ast.Compare]:
    """The comparisons that decide a condition."""
    match condition:
        case ast.BoolOp():
            for value in condition.values:
                yield from _comparisons(value)
        case ast.UnaryOp(op=ast.Not()):
            yield from _comparisons(condition.operand)
        case ast.Compare():
            yield condition
