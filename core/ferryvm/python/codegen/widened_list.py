# SPDX-License-Identifier: Apache-2.0
"""The kinds of lists in a program where items of some kinds may have others, too."""

from __future__ import annotations

from collections.abc import Mapping

from ferryvm.python.value.kind import Either, Kind, List, Tuple


def widened(kind: Kind, by: Mapping[Kind, Either]) -> Kind:
    """A kind in which the items of lists have further kinds."""
    if isinstance(kind, List):
        return kind if kind.item is None else List(widened_item(kind.item, by))
    if isinstance(kind, Tuple) and by:
        return Tuple(tuple(widened(item, by) for item in kind.items))
    return kind


def widened_item(kind: Kind, by: Mapping[Kind, Either]) -> Kind:
    """The kind of items of a list that has items of a kind."""
    return by.get(kind) or widened(kind, by)
