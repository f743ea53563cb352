# SPDX-License-Identifier: Apache-2.0
"""Lists of numbers: a struct with the length, the kind of items, and an array that may be longer.

There is a field for the array of each type of items, one of which is used. An empty list has no kind
yet; the first `append` determines it. Another variable with the same list does not see that, so code
for a list whose kind is not known asks the list, and leaves what is not empty to CPython.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ferryvm.build import Function, Program, Struct
from ferryvm.isa.element import Element
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64, Reference, Type
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.kind import INT, INTEGERS, LIST, Kind, List, Number, Scalar
from ferryvm.python.known import known_integer
from ferryvm.python.operation import convert

if TYPE_CHECKING:
    from ferryvm.build import Local
    from ferryvm.python.code import Code

_ELEMENTS = {
    Type.I64: Element.I64,
    Type.F64: Element.F64,
    Type.I32: Element.I32,
    Type.F32: Element.F32,
}
_GROWTH = 4
"""Elements that the array of a list has room for when it first grows."""


def _word(kind: List) -> Type:
    assert kind.item is not None
    return kind.item.word


def declare(program: Program) -> Struct:
    """The struct type of lists."""
    fields: dict[str, Type | Reference] = {"length": I64, "kind": I64}
    fields |= {str(word): element.array for word, element in _ELEMENTS.items()}
    made = program.struct(LIST.name, fields)
    assert made.type == LIST
    return made


def new(b: Code) -> None:
    """Push an empty list."""
    b.f.struct_new_default(b.list_struct)


def _only_empty(b: Code, node: ast.AST, of: Local) -> None:
    """Leave a list to CPython that is not empty, although the kind of its items is not known."""
    length(b, of)
    b.f.i64_const(0)
    b.f.i64_ne()
    b.throw_if(node, TypeError, "items of a type that is not known here", is_limit=True)


def literal(b: Code, node: ast.List, kind: List) -> None:
    """Push a new list of the values of expressions."""
    new(b)
    if kind.item is None:
        return
    f = b.f
    (made,) = b.locals(f"%list {node.lineno} {node.col_offset}", kind)
    f.local_set(made)
    for item in node.elts:
        f.local_get(made)
        b.push_as(item, kind.item)
        _call_append(b, kind)
    f.local_get(made)


def append(b: Code, node: ast.AST, name: str, value: ast.expr) -> None:
    """Append a value to the list in a variable, which gets the kind of its items by that if it is
    empty. Raises NotCompilableError."""
    f, kind, item = b.f, b.env.get(name), b.kind(value)
    if not isinstance(kind, List):
        raise NotCompilableError(node, f"cannot append to {kind}")
    if not isinstance(item, Number | Scalar):
        raise NotCompilableError(node, f"cannot compile a list of {item}")
    if kind.item is None:
        kind = List(item)
        determine(b, node, name, kind)
    elif item != kind.item:
        message = f"cannot append {item} to a list of {kind.item}; convert one of them"
        raise NotCompilableError(node, message)
    f.local_get(b.locals(name, kind)[0])
    b.push(value)
    _call_append(b, kind)


def determine(b: Code, node: ast.AST, name: str, kind: List) -> None:
    """Give the list in a variable the kind of its items, which is not known yet. CPython takes over if
    it has others."""
    f, (of,) = b.f, b.locals(name, List(None))
    f.local_get(of)
    f.struct_get(b.list_struct["kind"])
    f.i64_const(0)
    f.i64_ne()
    f.local_get(of)
    f.struct_get(b.list_struct["kind"])
    f.i64_const(kind.number)
    f.i64_ne()
    f.i32_and()
    b.throw_if(node, TypeError, "items of another type", is_limit=True)
    f.local_get(of)
    b.set(name, kind)


def settle(b: Code, node: ast.AST, name: str, kind: List) -> None:
    """As `determine`; a list that is empty gets the kind, too."""
    determine(b, node, name, kind)
    f, word = b.f, _word(kind)
    f.local_get(b.locals(name, kind)[0])
    f.i64_const(kind.number)
    f.call(b.shared(f"settle {word}", lambda program, made: _settle(b, program, made, word)))


def _settle(b: Code, program: Program, name: str, word: Type) -> Function:
    struct = b.list_struct
    f = program.function(name, {"list": struct, "kind": I64})
    of, kind = f.parameters
    f.local_get(of)
    f.struct_get(struct["kind"])
    f.i64_eqz()
    with f.if_():
        f.local_get(of)
        f.local_get(kind)
        f.struct_set(struct["kind"])
        f.local_get(of)
        f.i64_const(0)
        getattr(f, f"array_new_default_{_ELEMENTS[word]}")()
        f.struct_set(struct[str(word)])
    return f


def _call_append(b: Code, kind: List) -> None:
    f = b.f
    f.i64_const(kind.number)
    word = _word(kind)
    f.call(b.shared(f"append {word}", lambda program, name: _append(b, program, name, word)))


def _append(b: Code, program: Program, name: str, word: Type) -> Function:
    struct, element = b.list_struct, _ELEMENTS[word]
    items = struct[str(word)]
    f = program.function(name, {"list": struct, "item": word, "kind": I64})
    of, item, kind = f.parameters
    longer, length = f.local("longer", element.array), f.local("length", I64)
    f.local_get(of)
    f.struct_get(struct["kind"])
    f.i64_eqz()
    with f.if_():
        f.local_get(of)
        f.local_get(kind)
        f.struct_set(struct["kind"])
        f.local_get(of)
        f.i64_const(_GROWTH)
        getattr(f, f"array_new_default_{element}")()
        f.struct_set(items)
    f.local_get(of)
    f.struct_get(struct["length"])
    f.local_set(length)
    f.local_get(length)
    f.local_get(of)
    f.struct_get(items)
    f.array_length()
    f.i64_ge_s()
    with f.if_():
        f.local_get(length)
        f.i64_const(2)
        f.i64_mul()
        f.i64_const(_GROWTH)
        f.i64_add()
        getattr(f, f"array_new_default_{element}")()
        f.local_set(longer)
        f.local_get(longer)
        f.i64_const(0)
        f.local_get(of)
        f.struct_get(items)
        f.i64_const(0)
        f.local_get(length)
        getattr(f, f"array_copy_{element}")()
        f.local_get(of)
        f.local_get(longer)
        f.struct_set(items)
    f.local_get(of)
    f.struct_get(items)
    f.local_get(length)
    f.local_get(item)
    getattr(f, f"array_set_{element}")()
    f.local_get(of)
    f.local_get(length)
    f.i64_const(1)
    f.i64_add()
    f.struct_set(struct["length"])
    return f


def length(b: Code, of: Local) -> None:
    """Push the length of the list in a local."""
    b.f.local_get(of)
    b.f.struct_get(b.list_struct["length"])


def items(b: Code, of: Local, kind: List) -> None:
    """Push the array of the list in a local."""
    b.f.local_get(of)
    b.f.struct_get(b.list_struct[str(_word(kind))])


def place(b: Code, node: ast.AST, index: ast.expr, of: Local, kind: List) -> None:
    """Push the items of a list, and the index of one; negative ones count from the end."""
    f, at = b.f, b.spare(I64)
    if b.kind(index) not in INTEGERS:
        raise NotCompilableError(index, f"an index must be an int, found {b.kind(index)}")
    items(b, of, kind)
    b.push_as(index, INT)
    known = known_integer(index)
    if known is None and isinstance(index, ast.Name) and index.id in b.counters:
        known = 0
    if known is None or known < 0:
        f.local_set(at)
        f.local_get(at)
        length(b, of)
        f.i64_const(0)
        f.local_get(at)
        f.i64_const(0)
        f.i64_lt_s()
        f.select()
        f.i64_add()
    message = "list index out of range"
    if IndexError in b.caught:
        f.local_set(at)
        f.local_get(at)
        length(b, of)
        f.i64_ge_u()
        b.throw_if(node, IndexError, message)
        f.local_get(at)
    b.at(node)
    b.trap(node, Trap.INDEX_OUT_OF_BOUNDS, IndexError, message)
    length(b, of)
    f.array_index()


def begin(b: Code, node: ast.AST, of: Local, kind: List) -> None:
    """Check a list over which a loop iterates: if the kind of items is not known, it is empty."""
    if kind.item is None:
        _only_empty(b, node, of)


def item(b: Code, node: ast.Subscript, of: Local, kind: List) -> Kind:
    """Push an item of a list."""
    place(b, node, node.slice, of, kind)
    getattr(b.f, f"array_get_{_ELEMENTS[_word(kind)]}")()
    assert kind.item is not None
    return kind.item


def store(b: Code, node: ast.AST, index: ast.expr, of: Local, kind: List, value: ast.expr) -> None:
    """Replace an item of a list."""
    found = b.kind(value)
    if found != kind.item:
        message = f"cannot store {found} into a list of {kind.item}; convert one of them"
        raise NotCompilableError(node, message)
    place(b, node, index, of, kind)
    convert(b, node, b.push(value), found)
    getattr(b.f, f"array_set_{_ELEMENTS[_word(kind)]}")()


def pop(b: Code, node: ast.AST, of: Local, kind: List) -> None:
    """Remove the last item of a list, and push it."""
    f, last = b.f, b.spare(I64)
    struct = b.list_struct
    length(b, of)
    f.i64_eqz()
    b.throw_if(node, IndexError, "pop from empty list")
    length(b, of)
    f.i64_const(1)
    f.i64_sub()
    f.local_set(last)
    f.local_get(of)
    f.local_get(last)
    f.struct_set(struct["length"])
    items(b, of, kind)
    f.local_get(last)
    getattr(f, f"array_get_{_ELEMENTS[_word(kind)]}")()


def repeated(b: Code, node: ast.BinOp, kind: List) -> None:
    """Push a list that repeats another one, `[0] * n`."""
    f, word = b.f, _word(kind)
    b.push(node.left)
    b.push_as(node.right, INT)
    b.at(node)
    f.call(b.shared(f"repeat {word}", lambda program, name: _repeat(b, program, name, word)))


def _repeat(b: Code, program: Program, name: str, word: Type) -> Function:
    struct, element = b.list_struct, _ELEMENTS[word]
    items = struct[str(word)]
    f = program.function(name, {"list": struct, "times": I64}, [struct])
    of, times = f.parameters
    size, made = f.local("size", I64), f.local("made", element.array)
    at, result = f.local("at", I64), f.local("result", struct)
    f.local_get(times)
    f.i64_const(0)
    f.local_get(times)
    f.i64_const(0)
    f.i64_gt_s()
    f.select()
    f.local_get(of)
    f.struct_get(struct["length"])
    f.i64_mul_checked()
    f.local_set(size)
    f.local_get(size)
    getattr(f, f"array_new_default_{element}")()
    f.local_set(made)
    with f.block() as done, f.loop() as again:
        f.local_get(at)
        f.local_get(size)
        f.i64_ge_s()
        f.br_if(done)
        f.local_get(made)
        f.local_get(at)
        f.local_get(of)
        f.struct_get(items)
        f.i64_const(0)
        f.local_get(of)
        f.struct_get(struct["length"])
        getattr(f, f"array_copy_{element}")()
        f.local_get(at)
        f.local_get(of)
        f.struct_get(struct["length"])
        f.i64_add()
        f.local_set(at)
        f.br(again)
    f.struct_new_default(struct)
    f.local_set(result)
    for field, value in (("length", size), (str(word), made)):
        f.local_get(result)
        f.local_get(value)
        f.struct_set(struct[field])
    f.local_get(result)
    f.local_get(of)
    f.struct_get(struct["kind"])
    f.struct_set(struct["kind"])
    f.local_get(result)
    return f
