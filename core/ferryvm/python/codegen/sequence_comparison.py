# SPDX-License-Identifier: Apache-2.0
"""Comparisons of tuples, item by item, and of lists, by functions of `builtin_list`.

CPython takes two items for equal if they are one object, which matters for NaNs. Compiled code
cannot tell, and says so.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ferryvm.isa.type import I32
from ferryvm.python.control_flow.graph_builder import name_of
from ferryvm.python.fault import NotCompilableError, UnknownItemsError
from ferryvm.python.hosted import builtin_list
from ferryvm.python.value.kind import BOOL, FLOAT, Complex, Kind, List, Scalar, Tuple, united

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code

_ORDERS = {
    ast.Lt: (builtin_list.is_less, False),
    ast.LtE: (builtin_list.is_at_most, False),
    ast.Gt: (builtin_list.is_less, True),
    ast.GtE: (builtin_list.is_at_most, True),
}
"""The function for an operator, and True if the operands are swapped."""


def is_sequence(kind: Kind) -> bool:
    """True for what is compared item by item."""
    return isinstance(kind, List | Tuple)


def check(b: Code, node: ast.Compare) -> None:
    """Raise UnknownItemsError for a list whose items are not known, NotCompilableError for values
    without order."""
    left, right = b.kind(node.left), b.kind(node.comparators[0])
    has_order = isinstance(left, Tuple) == isinstance(right, Tuple) and is_sequence(right)
    if isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE) and not has_order:
        raise NotCompilableError(node, f"cannot compile a comparison of {left} and {right}")
    both = node.left, node.comparators[0]
    if any(isinstance(each, ast.List) and not each.elts for each in both):
        return
    if isinstance(node.ops[0], ast.Is | ast.IsNot):
        return
    if all(isinstance(b.kind(each), List) for each in both):
        for each in both:
            if b.kind(each) == List(None):
                raise UnknownItemsError(each, "the list is empty here")


def compare(b: Code, node: ast.Compare) -> None:
    """Push the value of a comparison of two tuples, or of two lists. Raises NotCompilableError."""
    left, right = b.kind(node.left), b.kind(node.comparators[0])
    op = node.ops[0]
    if not isinstance(op, ast.Eq | ast.NotEq) and not getattr(node, "is_condition", False):
        for kind in (left, right):
            if _has_numpy(kind):
                message = "the order of sequences with NumPy's scalars is one of those; compare them in if"
                raise NotCompilableError(node, message)
    if isinstance(left, Tuple) and isinstance(right, Tuple):
        _compare_tuples(b, node, left, right)
    elif isinstance(left, List) and isinstance(right, List):
        _compare_lists(b, node, left, right)
    else:
        b.f.i32_const(int(isinstance(op, ast.NotEq)))


def _has_numpy(kind: Kind | None) -> bool:
    if isinstance(kind, Tuple):
        return any(map(_has_numpy, kind.items))
    if isinstance(kind, List):
        return _has_numpy(kind.item)
    return isinstance(kind, Scalar) or (isinstance(kind, Complex) and bool(kind.dtype))


def _compare_lists(b: Code, node: ast.Compare, left: List, right: List) -> None:
    op, f = node.ops[0], b.f
    first, second = node.left, node.comparators[0]
    is_equality = isinstance(op, ast.Eq | ast.NotEq)
    for one, other in ((first, second), (second, first)):
        if is_equality and isinstance(one, ast.List) and not one.elts:
            b.push(other)
            f.struct_get(b.list_struct["length"])
            f.i64_eqz()
            _negate(b, op)
            return
    function, is_swapped = builtin_list.is_equal, False
    if not is_equality:
        function, is_swapped = _ORDERS[type(op)]
    kinds: list[Kind] = [left, right]
    if is_swapped:
        (local,) = b.locals(f"%left {node.lineno} {node.col_offset}", left)
        b.push(first)
        f.local_set(local)
        b.push(second)
        f.local_get(local)
        kinds.reverse()
    else:
        b.push(first)
        b.push(second)
    b.call_hosted(node, function, kinds, BOOL)
    if is_equality:
        _negate(b, op)


def _negate(b: Code, op: ast.cmpop) -> None:
    if isinstance(op, ast.NotEq):
        b.f.i32_eqz()


def _compare_tuples(b: Code, node: ast.Compare, left: Tuple, right: Tuple) -> None:
    """Compare the items up to the first two that differ (the Python Language Reference, section
    6.10.1)."""
    f, op = b.f, node.ops[0]
    names = [
        _items(b, node, each, kind)
        for each, kind in ((node.left, left), (node.comparators[0], right))
    ]
    with f.block([I32]) as done:
        for one, other in zip(*names, strict=False):
            _check_identity(b, node, b.env[one], one, other)
            _push(b, node, one, ast.NotEq(), other)
            with f.if_():
                if isinstance(op, ast.Eq | ast.NotEq):
                    f.i32_const(int(isinstance(op, ast.NotEq)))
                else:
                    _push(b, node, one, op, other)
                f.br(done)
        lengths = len(left.items), len(right.items)
        f.i32_const(int(_holds(op, *lengths)))
    for name in (*names[0], *names[1]):
        del b.env[name]


def _items(b: Code, node: ast.Compare, of: ast.expr, kind: Tuple) -> list[str]:
    """Variables with the items of a tuple."""
    place = f"{node.lineno} {node.col_offset} {of.lineno} {of.col_offset} {len(b.env)}"
    names = [f"%item {number} {place}" for number in range(len(kind.items))]
    b.push(of)
    for name, item in reversed([*zip(names, kind.items, strict=True)]):
        b.set(name, item)
    return names


def _push(b: Code, node: ast.Compare, one: str, op: ast.cmpop, other: str) -> None:
    made = ast.Compare(name_of(one, node), [op], [name_of(other, node)])
    made.is_condition = True  # type: ignore[attr-defined]  # as Expressions marks them
    kind = b.push(ast.copy_location(made, node))
    assert kind in (BOOL, Scalar("bool"))


def _check_identity(b: Code, node: ast.Compare, kind: Kind, one: str, other: str) -> None:
    """Raise an exception if both items are NaN."""
    f = b.f
    if kind == FLOAT or isinstance(kind, Complex) or (isinstance(kind, Scalar) and kind.is_float):
        if united(kind, b.env[other]) is None:
            return
        for name in (one, other):
            _push(b, node, name, ast.NotEq(), name)
        f.i32_and()
        b.throw_if(node, ValueError, builtin_list.UNDECIDED)


def _holds(op: ast.cmpop, left: int, right: int) -> bool:
    match op:
        case ast.Eq():
            return left == right
        case ast.NotEq():
            return left != right
        case ast.Lt():
            return left < right
        case ast.LtE():
            return left <= right
        case ast.Gt():
            return left > right
    return left >= right
