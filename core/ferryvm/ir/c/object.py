# SPDX-License-Identifier: Apache-2.0
"""Operations on objects, as C statements: headers, fields, elements, the registers of their space.

An address is computed as a word, and becomes a pointer where memory is accessed: the place of
elements outside of the object space is a distance modulo 2^64, and a pointer must not leave the
object that it points into (ISO/IEC 9899:2011, 6.5.6).
"""

from __future__ import annotations

from ferryvm.ir.c.scope import FunctionScope
from ferryvm.ir.graph import Operation, Value
from ferryvm.ir.operation import PLACE, element_bytes
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Atomic
from ferryvm.isa.object import STRUCT_HEADER_BYTES
from ferryvm.isa.type import I64, WORD_BYTES


class Objects:
    """Prints operations on objects."""

    def __init__(self, scope: FunctionScope) -> None:
        self.scope = scope

    # --- registers and types ----------------------------------------------------------------

    def do_object_top(self, operation: Operation) -> str:
        return "control->object_top"

    def do_set_object_top(self, operation: Operation, value: str) -> None:
        self.scope.lines.add(f"control->object_top = {value};")

    def do_release_objects(self, operation: Operation, top: str) -> None:
        size = f"control->object_top - {top}"
        clear = self.scope.helper("object_clear", self._in_object(top, 0), size)
        self.scope.lines.add(f"{clear};")
        self.do_set_object_top(operation, top)

    def do_object_end(self, operation: Operation) -> str:
        return "control->object_end"

    def _translated(self, helper: str, place: str) -> str:
        """A place, by a helper of dialects in which the code's places are not the host's."""
        return self.scope.helper(helper, place) if helper in self.scope.dialect.helpers else place

    def do_prepared_place(self, operation: Operation) -> str:
        return self._translated("object_place", "control->prepared")

    def do_prepared_bytes(self, operation: Operation) -> str:
        return "control->prepared_bytes"

    def do_clear_prepared(self, operation: Operation) -> None:
        self.scope.lines.add("control->prepared = 0;")

    def do_type_word(self, operation: Operation, type_: str, word: str) -> str:
        return f"{self.scope.dialect.segments['types']}[{type_} * FERRY_ROW_WORDS + {word}]"

    def do_cast(self, operation: Operation, reference: str) -> str:
        return reference

    # --- headers and fields -----------------------------------------------------------------

    def _in_object(self, reference: str, bytes_: int) -> str:
        """The address of a word of an object."""
        more = f" + {self.scope.arithmetic.constant(I64, bytes_)}" if bytes_ else ""
        return f"{self.scope.base('objects')} + {reference}{more}"

    def _load(self, bytes_: int, address: str) -> str:
        return self.scope.helper(f"object_load_{bytes_}", address)

    def _store(self, bytes_: int, address: str, value: str) -> None:
        store = self.scope.helper(f"object_store_{bytes_}", address, value)
        self.scope.lines.add(f"{store};")

    def _header_word(self, operation: Operation, reference: str) -> str:
        return self._in_object(reference, WORD_BYTES * operation.fact(0, int))

    def do_header_word(self, operation: Operation, reference: str) -> str:
        word = self._load(WORD_BYTES, self._header_word(operation, reference))
        is_place = operation.fact(0, int) == PLACE
        return self._translated("object_place", word) if is_place else word

    def do_set_header_word(self, operation: Operation, reference: str, value: str) -> None:
        if operation.fact(0, int) == PLACE:
            value = self._translated("object_host_place", value)
        self._store(WORD_BYTES, self._header_word(operation, reference), value)

    def _field(self, operation: Operation, reference: str) -> str:
        first = STRUCT_HEADER_BYTES + WORD_BYTES * operation.fact(1, int)
        return self._in_object(reference, first)

    def do_field_load(self, operation: Operation, reference: str) -> str:
        return self._load(WORD_BYTES, self._field(operation, reference))

    def do_field_store(self, operation: Operation, reference: str, value: str) -> None:
        self._store(WORD_BYTES, self._field(operation, reference), value)

    # --- elements ---------------------------------------------------------------------------

    @staticmethod
    def _bytes(operation: Operation) -> int:
        """Bytes of an element."""
        elements = operation.static[0]
        assert isinstance(elements, Element | int)
        return element_bytes(elements)

    def _elements(self, place: str, offset: str) -> str:
        """The address of elements."""
        return f"{self.scope.base('objects')} + {place} + {offset}"

    def _in_heap(self, address: str) -> str:
        """An address of the heap, as those of elements are."""
        return f"{self.scope.arithmetic.cast(I64, self.scope.base('heap'))} + {address}"

    @staticmethod
    def _number(place: Value) -> int | None:
        """The number of the array of a group whose place this is; None for any other place."""
        if isinstance(place, Operation) and place.name == "group_array":
            return place.fact(0, int)
        return None

    def do_element_load(self, operation: Operation, place: str, offset: str) -> str:
        own = self._number(operation.arguments[0])
        if own is not None:
            return self.scope.helper(f"group_load_{self._bytes(operation)}", f"group_{own}", offset)
        return self._load(self._bytes(operation), self._elements(place, offset))

    def do_element_store(self, operation: Operation, place: str, offset: str, value: str) -> None:
        own, bytes_ = self._number(operation.arguments[0]), self._bytes(operation)
        if own is not None:
            store = self.scope.helper(f"group_store_{bytes_}", f"group_{own}", offset, value)
            self.scope.lines.add(f"{store};")
            return
        address = self._elements(place, offset)
        unmarked = self.scope.shared.choices.unmarked
        if operation not in unmarked:
            self._store(bytes_, address, value)
            return
        if unmarked[operation]:
            self.scope.lines.open(f"if ({unmarked[operation]}) {{")
            self._store(bytes_, address, value)
            self.scope.lines.again("} else {")
        self.scope.lines.add(f"{self.scope.helper(f'object_set_{bytes_}', address, value)};")
        if unmarked[operation]:
            self.scope.lines.close()

    def do_update_element(self, operation: Operation, place: str, offset: str, operand: str) -> str:
        name = f"{operation.fact(1, Atomic).value}_{self._bytes(operation)}"
        own = self._number(operation.arguments[0])
        if own is not None:
            return self.scope.helper(f"group_{name}", f"group_{own}", offset, operand)
        return self.scope.helper(f"object_{name}", self._elements(place, offset), operand)

    def do_compare_exchange_element(
        self, operation: Operation, place: str, offset: str, expected: str, value: str
    ) -> str:
        name = f"compare_exchange_{self._bytes(operation)}"
        own = self._number(operation.arguments[0])
        if own is not None:
            return self.scope.helper(f"group_{name}", f"group_{own}", offset, expected, value)
        return self.scope.helper(f"object_{name}", self._elements(place, offset), expected, value)

    def do_canonicalise_elements(self, operation: Operation, *operands: str) -> None:
        t = operation.fact(0, Element).type
        nans = self.scope.arithmetic.any_nan(t, operands[2::3])
        self.scope.lines.open(f"if ({self.scope.helper('unlikely', nans)}) {{")
        places = zip(operation.arguments[::3], operands[::3], operands[1::3], strict=True)
        for value, place, offset in places:
            own = self._number(value)
            if own is not None:
                made = self.scope.helper(f"group_canonical_{t}", f"group_{own}", offset)
                self.scope.lines.add(f"{made};")
                continue
            # Elements overlap no others, so the last store's value is there. To use the operands
            # instead would keep their bits in registers in the path without NaNs.
            made = self.scope.helper(f"object_canonical_{t}", self._elements(place, offset))
            self.scope.lines.add(f"{made};")
        self.scope.lines.close()

    def do_fill_elements(
        self, operation: Operation, place: str, offset: str, count: str, value: str
    ) -> None:
        name = f"object_fill_{self._bytes(operation)}"
        fill = self.scope.helper(name, self._elements(place, offset), count, value)
        self.scope.lines.add(f"{fill};")

    def do_move_elements(
        self,
        operation: Operation,
        to_place: str,
        to_offset: str,
        from_place: str,
        from_offset: str,
        size: str,
    ) -> None:
        source = self._elements(from_place, from_offset)
        self._move(self._elements(to_place, to_offset), source, size)

    def do_elements_from_heap(
        self, operation: Operation, place: str, offset: str, address: str, size: str
    ) -> None:
        self._move(self._elements(place, offset), self._in_heap(address), size)

    def do_elements_to_heap(
        self, operation: Operation, address: str, place: str, offset: str, size: str
    ) -> None:
        source = self._elements(place, offset)
        self._move(self._in_heap(address), source, size, "heap_move")

    def _move(self, to: str, from_: str, size: str, helper: str = "object_move") -> None:
        move = self.scope.helper(helper, to, from_, size)
        self.scope.lines.add(f"{move};")
