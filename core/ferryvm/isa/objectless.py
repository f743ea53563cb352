# SPDX-License-Identifier: Apache-2.0
"""Emitters of backends that refuse code with references before they run any of its meanings."""

from __future__ import annotations

from typing import Any, TypeVar

from ferryvm.isa.emitter import Emitter

V = TypeVar("V")


def _refuse(self: Emitter[V], *operands: object) -> None:
    raise AssertionError(f"{type(self).__name__} is for code without references")


_refused: Any = _refuse


class ObjectlessEmitter(Emitter[V]):
    """An emitter whose operations on objects are never called."""

    allocate_if = object_store = object_store_words = set_object_top = clear_prepared = _refused
    object_top = object_end = object_load = prepared_place = prepared_bytes = _refused
    element_load = element_store = fill_elements = move_elements = _refused
    elements_from_heap = elements_to_heap = type_word = pop_words = _refused
