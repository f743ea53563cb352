# SPDX-License-Identifier: Apache-2.0
"""Methods of lists: the kinds of their values, and code for them.

xs.append(v)     a function for all lists whose items have the same slots (`list_function`)
xs.index(v)      a Python function of the subset (`builtin_list`), compiled for the kind of list
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ferryvm.python.codegen import (
    array_store,
    list_code,
    list_function,
    list_slice,
    text_code,
    text_method,
)
from ferryvm.python.codegen.list_code import layout
from ferryvm.python.codegen.mixed_item import misfit
from ferryvm.python.codegen.operation import is_number
from ferryvm.python.control_flow.graph import DeleteItem, Method
from ferryvm.python.control_flow.graph_builder import name_of
from ferryvm.python.fault import NotCompilableError, UnknownItemsError
from ferryvm.python.hosted import builtin_array, builtin_list, builtin_text
from ferryvm.python.value.kind import (
    BOOL,
    CHARACTER,
    INT,
    NONE,
    Array,
    Constant,
    Kind,
    List,
    Range,
    Text,
    Tuple,
    element_kind,
    is_item,
    text_of,
    united,
)

if TYPE_CHECKING:
    from ferryvm.build import Local
    from ferryvm.python.codegen.body import Body


class _Rule(NamedTuple):
    """A method of lists."""

    counts: tuple[int, ...]
    """The numbers of arguments that it may have."""
    result: Callable[[List], Kind]
    emit: Callable[[Body, Method, Local, List], None]
    """Push its value."""


def result_kind(b: Body, step: Method) -> Kind:
    """The kind of a method's value. Raises NotCompilableError."""
    other = _other_kind(b, step)
    if other is not None:
        return other
    of, rule = _receiver(b, step)
    if of.item is None:
        if step.method in ("append", "extend", "insert"):
            return NONE
        raise UnknownItemsError(name_of(step.of, step.node), "the list is empty here")
    return rule.result(of)


def call(b: Body, step: Method) -> None:
    """Call a method of the list in a variable. Raises NotCompilableError."""
    other = _other_kind(b, step)
    if other is not None:
        _push_other(b, step)
        b.set(step.name, other)
        return
    of, rule = _receiver(b, step)
    if step.method in ("append", "extend", "insert"):
        of = _determined(b, step, of)
        if of.item is None:
            b.set(step.name, NONE)
            return
    rule.emit(b, step, b.locals(step.of, of)[0], of)
    b.set(step.name, rule.result(of))


def _other_kind(b: Body, step: Method) -> Kind | None:
    """The kind of the value of a method of what is no list; None if code has no such method. Raises
    UnknownItemsError."""
    of, count = b.kind(name_of(step.of, step.node)), len(step.arguments)
    if of == CHARACTER and step.method in builtin_text.CHARACTER_TESTS and count == 0:
        return BOOL
    if of == Constant("") and step.method == "join" and count == 1:
        kind = b.kind(step.arguments[0])
        if kind == List(None):
            raise UnknownItemsError(step.arguments[0], "the list is empty here")
        return Text(str) if kind == List(CHARACTER) else None
    if isinstance(of, Tuple) and step.method in ("count", "index") and count == 1:
        return INT
    if isinstance(of, Array) and step.method == "copy" and count == 0:
        return Array(of.dtype, of.dimensions)
    if isinstance(of, Array) and step.method == "fill" and count == 1:
        return NONE if is_number(b.kind(step.arguments[0])) else None
    return text_method.result_kind(b, of, step.method, step.arguments)


def _push_other(b: Body, step: Method) -> None:
    """Push the value of a method of what is no list."""
    of = b.kind(name_of(step.of, step.node))
    if text_method.result_kind(b, of, step.method, step.arguments) is not None:
        text_method.push(b, step.node, name_of(step.of, step.node), step.method, step.arguments)
    elif of == CHARACTER:
        text_code.push_test(b, step.node, b.locals(step.of, of)[0], step.method)
    elif isinstance(of, Array) and step.method == "fill":
        b.has_effect()
        b.get(step.of, of)
        value = b.push(step.arguments[0])
        b.call_hosted(step.node, array_store.fill(of, value), [of, value], NONE)
    elif isinstance(of, Array):
        b.get(step.of, of)
        b.call_hosted(step.node, builtin_array.copied, [of], Array(of.dtype, of.dimensions))
    elif step.method == "join":
        (local,) = b.slots(step.arguments[0])
        text_code.push_joined(b, local, List(CHARACTER))
    else:
        b.get(step.of, of)
        kinds = [of, b.push(step.arguments[0])]
        function = builtin_list.index if step.method == "index" else builtin_list.count
        b.call_hosted(step.node, function, kinds, INT)


def _receiver(b: Body, step: Method) -> tuple[List, _Rule]:
    of = b.kind(name_of(step.of, step.node))
    rule = _METHODS.get(step.method)
    if not isinstance(of, List) or rule is None:
        hint = "; write a loop" if text_of(of) is not None else ""
        what = f"cannot compile the method {step.method!r} of {of}{hint}"
        raise NotCompilableError(step.node, what)
    if len(step.arguments) not in rule.counts:
        wanted = " or ".join(map(str, rule.counts))
        message = f"{step.method} takes {wanted} arguments here, found {len(step.arguments)}"
        raise NotCompilableError(step.node, message)
    return of, rule


def _determined(b: Body, step: Method, of: List) -> List:
    """The kind of a list that gets the items of a method's last argument, and of the lists in which
    it is an item."""
    kind = b.kind(step.arguments[-1])
    if step.method == "extend":
        found = _item_of(kind)
        if found is None:
            if isinstance(kind, List) or kind == Tuple(()):
                return of
            raise NotCompilableError(step.node, f"cannot extend by {kind}; append each item")
        kind = found
    if not is_item(kind):
        raise NotCompilableError(step.node, list_code.no_list_of(kind))
    kind = b.list_of(kind).item or kind
    item = kind if of.item is None else united(of.item, kind)
    if step.method == "extend" and isinstance(b.kind(step.arguments[-1]), List):
        both = united(of, List(kind))  # which has its items as they are
        item = both.item if isinstance(both, List) else None
    if item is None:
        message = f"cannot append {kind} to a list of {of.item}; convert one of them"
        raise misfit(step.node, message, of.item, kind, step.method == "extend")
    known = List(item)
    if known != of:
        list_code.determine(b, step.node, step.of, known)
        _determine_owners(b, step, known)
    return known


def _item_of(kind: Kind) -> Kind | None:
    """The kind of the items that a list is extended by."""
    match kind:
        case List():
            return kind.item
        case Range():
            return INT
        case Array(dimensions=1):
            return element_kind(kind.dtype)
        case Text():
            return kind.item
        case Tuple() if kind.items and all(each == kind.items[0] for each in kind.items):
            return kind.items[0]
    return None


def _determine_owners(b: Body, step: Method, item: List) -> None:
    """State the kinds of the lists in which a list is an item."""
    for owner in step.owners:
        kind = b.env.get(owner)
        if not isinstance(kind, List) or kind.item is None:
            return
        both = united(kind.item, item)
        if both is None or both == kind.item:
            return
        list_code.determine(b, step.node, owner, List(both))
        item = List(both)


def _append(b: Body, step: Method, of: Local, kind: List) -> None:
    list_code.append(b, step.node, of, kind, step.arguments[0])


def _extend(b: Body, step: Method, of: Local, kind: List) -> None:
    extend(b, step.node, of, kind, step.arguments[0])


def extend(b: Body, node: ast.AST, of: Local, kind: List, value: ast.expr) -> None:
    """Append the items of another list, or of another sequence."""
    f, found = b.f, b.kind(value)
    f.local_get(of)
    if not isinstance(found, List):
        b.push(value)
        b.call_hosted(node, builtin_list.extend, [kind, found], NONE)
        return
    list_code.length(b, of)
    f.i64_const(0)
    list_code.adapt(b, node, b.push(value), kind)
    list_code.splice(b, node, kind)


def _insert(b: Body, step: Method, of: Local, kind: List) -> None:
    f, at = b.f, b.scratch("%inserted at")
    index, value = step.arguments
    b.push_as(index, INT)
    list_code.length(b, of)
    b.call_hosted(step.node, builtin_list.clipped, [INT, INT], INT)
    f.local_set(at)
    f.local_get(of)
    f.local_get(at)
    f.i64_const(0)
    one = ast.copy_location(ast.List([value], ast.Load()), value)
    list_code.display(b, one, kind)
    list_code.splice(b, step.node, kind)


def _pop(b: Body, step: Method, of: Local, kind: List) -> None:
    f, at = b.f, b.scratch("%popped")
    assert kind.item is not None
    list_code.length(b, of)
    f.i64_eqz()
    b.throw_if(step.node, IndexError, "pop from empty list")
    if step.arguments:
        list_code.place(b, step.node, step.arguments[0], of, "pop index out of range")
        f.local_set(at)
        list_code.load(b, of, at, kind.item)
        f.local_get(of)
        f.local_get(at)
        f.i64_const(1)
        list_code.new(b)
        list_code.splice(b, step.node, kind)
        return
    list_code.length(b, of)
    f.i64_const(1)
    f.i64_sub()
    f.local_set(at)
    f.local_get(of)
    f.local_get(at)
    f.struct_set(b.list_struct["length"])
    list_code.load(b, of, at, kind.item)
    b.changes(kind)


def _clear(b: Body, _step: Method, of: Local, kind: List) -> None:
    b.f.local_get(of)
    b.f.i64_const(0)
    b.f.struct_set(b.list_struct["length"])
    b.changes(kind)


def _copy(b: Body, step: Method, of: Local, kind: List) -> None:
    copy(b, step.node, of, kind)


def copy(b: Body, node: ast.AST, of: Local, kind: List) -> None:
    """Push a new list with the items of another one."""
    b.f.local_get(of)
    b.f.i64_const(0)
    list_code.length(b, of)
    b.at(node)
    b.f.call(list_function.part(b, layout(kind)))


def _hosted(function: Callable[..., object], result: Kind) -> Callable[..., None]:
    """A method that is a Python function."""

    def emit(b: Body, step: Method, of: Local, kind: List) -> None:
        b.f.local_get(of)
        kinds: list[Kind] = [kind, *(b.push(each) for each in step.arguments)]
        b.call_hosted(step.node, function, kinds, result)

    return emit


def _sort(b: Body, step: Method, of: Local, kind: List) -> None:
    f = b.f
    f.local_get(of)
    reverse: Kind = BOOL
    if step.arguments:
        reverse = b.push(step.arguments[0])
    else:
        f.i32_const(0)
    b.call_hosted(step.node, builtin_list.sort, [kind, reverse], NONE)


def _index(b: Body, step: Method, of: Local, kind: List) -> None:
    function = (builtin_list.index, builtin_list.index_from, builtin_list.index_within)
    emit = _hosted(function[len(step.arguments) - 1], INT)
    emit(b, step, of, kind)


def _remove(b: Body, step: Method, of: Local, kind: List) -> None:
    f, at = b.f, b.scratch("%removed")
    f.local_get(of)
    kinds: list[Kind] = [kind, b.push(step.arguments[0])]
    b.call_hosted(step.node, builtin_list.position, kinds, INT)
    f.local_set(at)
    f.local_get(at)
    f.i64_const(0)
    f.i64_lt_s()
    b.throw_if(step.node, ValueError, "list.remove(x): x not in list")
    f.local_get(of)
    f.local_get(at)
    f.i64_const(1)
    list_code.new(b)
    list_code.splice(b, step.node, kind)


_METHODS: dict[str, _Rule] = {
    "append": _Rule((1,), lambda _: NONE, _append),
    "extend": _Rule((1,), lambda _: NONE, _extend),
    "insert": _Rule((2,), lambda _: NONE, _insert),
    "pop": _Rule((0, 1), lambda kind: kind.item or NONE, _pop),
    "clear": _Rule((0,), lambda _: NONE, _clear),
    "copy": _Rule((0,), lambda kind: kind, _copy),
    "reverse": _Rule((0,), lambda _: NONE, _hosted(builtin_list.reverse, NONE)),
    "sort": _Rule((0, 1), lambda _: NONE, _sort),
    "count": _Rule((1,), lambda _: INT, _hosted(builtin_list.count, INT)),
    "index": _Rule((1, 2, 3), lambda _: INT, _index),
    "remove": _Rule((1,), lambda _: NONE, _remove),
}


def check_deletion(b: Body, step: DeleteItem) -> None:
    """Raise NotCompilableError for what is no list."""
    kind = b.kind(step.list)
    if not isinstance(kind, List):
        raise NotCompilableError(step.node, f"cannot delete an item of {kind}")
    list_code.known(step.list, kind)


def delete(b: Body, step: DeleteItem) -> None:
    """Delete an item of a list."""
    kind, f = b.kind(step.list), b.f
    assert isinstance(kind, List)
    (of,) = b.slots(step.list)
    if isinstance(step.index, ast.Slice):
        list_slice.delete(b, step.node, step.index, of, kind)
        return
    at = b.scratch("%deleted")
    list_code.place(b, step.node, step.index, of, "list assignment index out of range")
    f.local_set(at)
    f.local_get(of)
    f.local_get(at)
    f.i64_const(1)
    list_code.new(b)
    list_code.splice(b, step.node, kind)
