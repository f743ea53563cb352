# SPDX-License-Identifier: Apache-2.0
"""Atomic updates of an element of an array: each returns the former element.

    add, min, max, and, or     element = element + operand, …
    exchange                   element = operand
    compare_exchange           element = operand, if it equals what is expected

An update reads an element and replaces it in one step, which no other access comes between. It
orders no other access (*relaxed*): items of a launch exchange nothing else, and all that they did
comes before what follows the launch. Elements of 8 and 16 bits have no updates, since OpenCL C has
none, nor have floats, whose sums would depend on the order.
"""

from __future__ import annotations

import enum
from typing import TypeVar

from ferryvm.isa.array import writable_element
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Atomic, Condition, Emitter, PureEmitter
from ferryvm.isa.heap import from_memory, to_memory
from ferryvm.isa.table import instruction
from ferryvm.isa.type import I64, Type

V = TypeVar("V")

UPDATED = (Element.I32, Element.U32, Element.I64)
"""The kinds of elements that have atomic updates."""


class Update(enum.Enum):
    """The updates by one operand; the value is a part of the mnemonic."""

    ADD = "add"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"
    EXCHANGE = "exchange"

    def of(self, element: Element) -> Atomic:
        """The update of elements of a kind: minimum and maximum depend on the sign."""
        if self in (Update.MIN, Update.MAX):
            return Atomic(f"{self.value}_{'s' if element.is_signed else 'u'}")
        return Atomic(self.value)


_NEW = {
    Update.ADD: "its sum with the operand, modulo 2^width",
    Update.MIN: "the minimum of it and the operand",
    Update.MAX: "the maximum of it and the operand",
    Update.AND: "the bitwise and of it and the operand",
    Update.OR: "the bitwise or of it and the operand",
    Update.EXCHANGE: "the operand",
}

_CONDITIONS = {
    Atomic.MIN_S: Condition.LT_S,
    Atomic.MIN_U: Condition.LT_U,
    Atomic.MAX_S: Condition.GT_S,
    Atomic.MAX_U: Condition.GT_U,
}


def updated(m: PureEmitter[V], t: Type, kind: Atomic, old: V, operand: V) -> V:
    """The element that an update of `old` stores: for emitters that have no atomic operations."""
    match kind:
        case Atomic.ADD:
            return m.add(t, old, operand)
        case Atomic.AND:
            return m.bit_and(t, old, operand)
        case Atomic.OR:
            return m.bit_or(t, old, operand)
        case Atomic.EXCHANGE:
            return operand
        case _:
            return m.select(m.compare(t, _CONDITIONS[kind], operand, old), operand, old)


def _declare(element: Element, update: Update) -> None:
    t, array, bytes_, shift = element.type, element.array, element.bytes, element.shift

    def meaning(m: Emitter[V], reference: V, index: V, operand: V) -> V:
        place, offset = writable_element(m, shift, reference, index)
        raw = to_memory(m, t, operand)
        old = m.update_element(update.of(element), bytes_, place, offset, raw)
        return from_memory(m, t, element.bits, element.is_signed, old)

    meaning.__doc__ = (
        f"The element at an index in an array of `{element}`, which is atomically replaced by "
        f"{_NEW[update]}."
    )
    mnemonic = f"array.atomic_{update.value}_{element}"
    instruction(mnemonic, pops=(array, I64, t), pushes=(t,))(meaning)


def _declare_compare_exchange(element: Element) -> None:
    t, array, bytes_, shift = element.type, element.array, element.bytes, element.shift

    def meaning(m: Emitter[V], reference: V, index: V, expected: V, operand: V) -> V:
        place, offset = writable_element(m, shift, reference, index)
        raw = to_memory(m, t, expected), to_memory(m, t, operand)
        old = m.compare_exchange_element(bytes_, place, offset, *raw)
        return from_memory(m, t, element.bits, element.is_signed, old)

    meaning.__doc__ = (
        f"The element at an index in an array of `{element}`, which is atomically replaced by the "
        "last operand if it equals the one before."
    )
    mnemonic = f"array.atomic_compare_exchange_{element}"
    instruction(mnemonic, pops=(array, I64, t, t), pushes=(t,))(meaning)


for _element in UPDATED:
    for _update in Update:
        _declare(_element, _update)
    _declare_compare_exchange(_element)
