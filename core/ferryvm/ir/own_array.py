# SPDX-License-Identifier: Apache-2.0
"""Arrays that no other thread sees while a body runs: it has made them, and stores the reference
nowhere.

An item that is a group makes such arrays for its members. A parallel region runs all of these in
one thread, so their atomic updates may be a load and a store. Where the body leaves, other code may
get the reference from a frame; the body makes no more updates then.
"""

from __future__ import annotations

from collections.abc import Iterable

from ferryvm.ir.graph import Body, Operation, Value
from ferryvm.ir.use import users_of

_ELEMENTS = frozenset({"element_load", "element_store", "fill_elements", "update_element"})
"""Operations whose first argument is the place of elements."""


def own_places(body: Body) -> frozenset[Value]:
    """The places of elements of such arrays."""
    users, passed, found = users_of(body), set[Value](), set[Value]()
    for block in body.blocks:
        passed.update(block.end.arguments, *(edge.arguments for edge in block.end.edges))
    for made in body.operations:
        if made.name != "object_top":
            continue
        inside: list[Operation] = []
        is_own = made not in passed
        for user in users.get(made, ()):
            if user is not None and user.name == "add":
                inside.append(user)
            elif user is not None and not _is_of_header(user, made):
                is_own = False
        is_own = is_own and passed.isdisjoint(inside)
        if is_own and all(_is_place(value, made, users.get(value, ())) for value in inside):
            found.update(inside)
    return frozenset(found)


def _is_of_header(user: Operation, made: Operation) -> bool:
    """True if a user of a reference stores it nowhere: only a state has it besides."""
    if user.name == "set_header_word":
        return user.arguments[0] is made and user.arguments[1] is not made
    return user.name in ("header_word", "compare")


def _is_place(value: Value, made: Operation, users: Iterable[Operation | None]) -> bool:
    """True if an address in an object is used for its elements and its header alone."""
    for user in users:
        if user is None or user.name in ("compare", "set_object_top"):
            continue
        if user.name in _ELEMENTS and value not in user.arguments[1:]:
            continue
        if user.name == "set_header_word" and user.arguments[0] is made:
            continue
        return False
    return True
