# SPDX-License-Identifier: Apache-2.0
"""The objects that a kernel may read or change, from the operations of its IR."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ferryvm.ir.graph import Module
from ferryvm.isa.element import Element

_STORES = frozenset({"set_header_word", "set_object_top", "clear_prepared", "field_store"})
_ELEMENT_STORES = frozenset(
    {
        "element_store",
        "fill_elements",
        "move_elements",
        "elements_from_heap",
        "canonicalise_elements",
    }
)
_ELEMENT_LOADS = frozenset({"element_load", "elements_to_heap"})
_LOADS = frozenset(
    {"header_word", "type_word", "field_load", "object_top", "object_end", "prepared_place"}
)
_ACCESSES = _LOADS | _STORES | _ELEMENT_LOADS | _ELEMENT_STORES


@dataclasses.dataclass(frozen=True)
class ObjectUse:
    """The use of objects by a kernel."""

    writes: bool
    """True if it may store to an object, or make one."""
    arrays: frozenset[int]
    """Type numbers of the arrays whose elements it may read or change."""

    def concerns(self, type_: int | None, is_prepared: bool) -> bool:
        """True if it may access elements of an array of this type (None: of an unknown one), or
        make them an array, if they are prepared for one."""
        if is_prepared:
            return self.writes
        return bool(self.arrays) and (type_ is None or type_ in self.arrays)


def object_use(modules: Iterable[Module]) -> ObjectUse | None:
    """The use of objects by the code of these modules; None if it accesses none."""
    writes, arrays = False, set[int]()
    operations = [o for module in modules for body in module.bodies for o in body.operations]
    if _ACCESSES.isdisjoint({operation.name for operation in operations}):
        return None
    for operation in operations:
        stores = operation.name in _ELEMENT_STORES
        writes |= stores or operation.name in _STORES
        if stores or operation.name in _ELEMENT_LOADS:
            elements = operation.static[0]
            assert isinstance(elements, Element | int)
            arrays.add(elements.array.number if isinstance(elements, Element) else elements)
    return ObjectUse(writes, frozenset(arrays))
