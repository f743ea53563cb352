# SPDX-License-Identifier: Apache-2.0
"""Code for texts and bytes: `str` as views of an array of code points, `bytes` of an array of
bytes.

    s[2:5]     a view of the same array, like a slice of a NumPy array (`array_code`)
    s[i]       a text of one character, which is its code point in a slot

Texts that are written out are known; they become arrays where code needs them.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ferryvm.isa.type import I32, I64
from ferryvm.python.codegen import array_code
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.hosted import builtin_list, builtin_text
from ferryvm.python.value.kind import BOOL, CHARACTER, INT, Constant, Kind, List, Text, text_of

if TYPE_CHECKING:
    from ferryvm.build import Local
    from ferryvm.python.codegen.code import Code

_ORDERS = {ast.Lt: "lt_s", ast.LtE: "le_s", ast.Gt: "gt_s", ast.GtE: "ge_s"}
_EQUALITIES = {ast.Eq: "eq", ast.NotEq: "ne"}
_LAST = 0x10FFFF
"""The last code point."""


def item_kind(b: Code, node: ast.Subscript, of: Text) -> Kind:
    """The kind of an item, or of a slice. Raises NotCompilableError."""
    if array_code.parts(node) != [node.slice]:
        raise NotCompilableError(node, f"an index of {of} must be an int")
    found = array_code.item_kind(b, node, of.array)
    return of if isinstance(node.slice, ast.Slice) else of.item if found is not None else of


def push_item(b: Code, node: ast.Subscript, of: Text) -> None:
    """Push an item, or a view of those in a slice."""
    slots = slots_of(b, node.value, of)
    if isinstance(node.slice, ast.Slice):
        array_code.push_view(b, node, of.array, slots)
        return
    b.f.local_get(slots[0])
    array_code.push_place(b, node, of.array, slots)
    b.at(node)
    array_code.push_element(b, of.array)
    as_item(b, of)


def as_item(b: Code, of: Text) -> None:
    """The element on the stack as an item: of bytes an int."""
    if of.type is bytes:
        b.f.i64_extend_i32_s()


def slots_of(b: Code, node: ast.expr, of: Text) -> list[Local]:
    """Locals with the slots of a text."""
    if isinstance(b.kind(node), Text):
        return b.slots(node)
    push(b, node)
    found = b.locals(f"%text {len(b.all_locals)}", of)
    for local in reversed(found):
        b.f.local_set(local)
    return found


def push(b: Code, node: ast.expr) -> Text:
    """Push a value as a text: one that is known as an array of the program."""
    f, kind = b.f, b.kind(node)
    text = text_of(kind)
    assert text is not None
    if isinstance(kind, Constant):
        f.static_get(b.known_text(kind.value))
        numbers = 0, len(kind.value), 1
    elif kind == CHARACTER:
        b.push(node)
        f.i64_const(1)
        f.array_new_i32()
        numbers = 0, 1, 1
    else:
        b.push(node)
        return text
    for number in numbers:
        f.i64_const(number)
    return text


# --- comparisons --------------------------------------------------------------------------------


def can_compare(node: ast.Compare, left: Kind, right: Kind) -> bool:
    """True for two texts, of which one is not known."""
    return text_of(left) is not None and type(node.ops[0]) in {**_ORDERS, **_EQUALITIES}


def compare(b: Code, node: ast.Compare) -> None:
    """Push the value of a comparison of texts. Raises NotCompilableError."""
    both = node.left, node.comparators[0]
    left, right = (b.kind(each) for each in both)
    op, f = type(node.ops[0]), b.f
    if text_of(left) != text_of(right):
        if op not in _EQUALITIES:
            raise NotCompilableError(node, f"cannot compile a comparison of {left} and {right}")
        f.i32_const(int(op is ast.NotEq))
        return
    if all(_is_single(kind) for kind in (left, right)):
        for each, kind in zip(both, (left, right), strict=True):
            if isinstance(kind, Constant):
                f.i32_const(ord(kind.value))
            else:
                b.push(each)
        getattr(f, f"i32_{(_ORDERS | _EQUALITIES)[op]}")()
        return
    if op in _EQUALITIES and {left, right} & {CHARACTER} and _is_longer(left, right):
        f.i32_const(int(op is ast.NotEq))
        return
    first, second = both if op in (ast.Eq, ast.NotEq, ast.Lt, ast.LtE) else both[::-1]
    function = builtin_list.is_equal
    if op in _ORDERS:
        function = builtin_list.is_less if op in (ast.Lt, ast.Gt) else builtin_list.is_at_most
    kinds: list[Kind] = [push(b, first), push(b, second)]
    b.call_hosted(node, function, kinds, BOOL)
    if op is ast.NotEq:
        f.i32_eqz()


def _is_single(kind: Kind) -> bool:
    """True for a character, known or not."""
    known = kind.value if isinstance(kind, Constant) else None
    return kind == CHARACTER or (isinstance(known, str) and len(known) == 1)


def _is_longer(left: Kind, right: Kind) -> bool:
    return any(isinstance(kind, Constant) and len(kind.value) != 1 for kind in (left, right))


def contains(b: Code, node: ast.AST, wanted: ast.expr, values: ast.expr) -> bool:
    """Push if a text has another one, or bytes have an int; False if the values are no text."""
    kind, of = b.kind(wanted), text_of(b.kind(values))
    if of is None:
        return False
    if of.type is bytes and kind in (INT, BOOL):
        b.push_as(wanted, INT)
        kinds: list[Kind] = [INT, push(b, values)]
        b.call_hosted(node, builtin_text.has_byte, kinds, BOOL)
        return True
    if text_of(kind) != of:
        raise NotCompilableError(node, f"cannot compile {kind} in {of}")
    known = b.kind(values)
    if kind == CHARACTER and isinstance(known, Constant):
        _push_choice(b, wanted, known.value)
        return True
    kinds = [push(b, wanted), push(b, values)]
    b.call_hosted(node, builtin_text.has_text, kinds, BOOL)
    return True


def _push_choice(b: Code, wanted: ast.expr, known: str) -> None:
    """Push if a character is one of a text that is known."""
    f, code = b.f, b.spare(I32)
    b.push(wanted)
    f.local_set(code)
    f.i32_const(0)
    for each in sorted(set(known)):
        f.local_get(code)
        f.i32_const(ord(each))
        f.i32_eq()
        f.i32_or()


# --- functions ----------------------------------------------------------------------------------


def length(b: Code, node: ast.expr, kind: Kind) -> None:
    """Push the number of characters."""
    if isinstance(kind, Constant):
        b.f.i64_const(len(kind.value))
    elif kind == CHARACTER:
        b.f.i64_const(1)
    else:
        b.push_slot(node, 2)


def code_of(b: Code, node: ast.Call, kinds: list[Kind]) -> None:
    """`ord`: CPython raises the exception for more than one character."""
    f, (kind,) = b.f, kinds
    if isinstance(kind, Constant) and len(kind.value) == 1:
        f.i64_const(ord(kind.value))
    elif kind == CHARACTER:
        b.push(node.args[0])
        f.i64_extend_i32_s()
    else:
        text = text_of(kind)
        assert text is not None
        slots = slots_of(b, node.args[0], text)
        f.local_get(slots[2])
        f.i64_const(1)
        f.i64_ne()
        b.throw_if(node, TypeError, None, is_limit=True)
        f.local_get(slots[0])
        f.local_get(slots[1])
        array_code.push_element(b, text.array)
        f.i64_extend_i32_s()


def character(b: Code, node: ast.Call, kinds: list[Kind]) -> None:
    """`chr`: CPython raises the exception for what is no code point."""
    f, code = b.f, b.spare(I64)
    b.push_as(node.args[0], INT)
    f.local_set(code)
    f.local_get(code)
    f.i64_const(_LAST)
    f.i64_gt_u()
    b.throw_if(node, ValueError, None, is_limit=True)
    f.local_get(code)
    f.i32_wrap_i64()


def digit(b: Code, node: ast.Call) -> None:
    """`int` of a character: CPython takes all but the ten digits of ASCII."""
    f, code = b.f, b.spare(I32)
    b.push(node.args[0])
    f.i32_const(ord("0"))
    f.i32_sub()
    f.local_set(code)
    f.local_get(code)
    f.i32_const(9)
    f.i32_gt_u()
    b.throw_if(node, ValueError, None, is_limit=True)
    f.local_get(code)
    f.i64_extend_i32_s()


def push_test(b: Code, node: ast.AST, of: Local, method: str) -> None:
    """Push the value of such a method. CPython takes characters that are not in ASCII."""
    f = b.f
    f.local_get(of)
    f.i32_const(127)
    f.i32_gt_u()
    b.throw_if(node, ValueError, None, is_limit=True)
    f.i32_const(0)
    for low, high in builtin_text.CHARACTER_TESTS[method]:
        f.local_get(of)
        f.i32_const(ord(low))
        f.i32_sub()
        f.i32_const(ord(high) - ord(low))
        f.i32_le_u()
        f.i32_or()


def push_joined(b: Code, of: Local, kind: List) -> None:
    """Push the text of a list of characters."""
    f = b.f
    (array,) = b.locals("%joined", Text(str))[:1]
    f.local_get(of)
    f.struct_get(b.list_struct["length"])
    f.array_new_default_i32()
    f.local_set(array)
    f.local_get(of)
    f.struct_get(b.list_struct["length"])
    f.i64_const(0)
    f.i64_ne()
    with f.if_():
        f.local_get(array)
        f.i64_const(0)
        f.local_get(of)
        f.struct_get(b.list_struct["i32"])
        f.i64_const(0)
        f.local_get(array)
        f.array_length()
        f.array_copy_i32()
    f.local_get(array)
    f.i64_const(0)
    f.local_get(array)
    f.array_length()
    f.i64_const(1)
