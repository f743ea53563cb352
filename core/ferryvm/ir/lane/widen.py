# SPDX-License-Identifier: Apache-2.0
"""Operations of the scalar body in lanes: uniform ones as they are, the others for all lanes.

What is uniform or affine stays scalar. Partial operations get operands that are safe in lanes that
do not take part; where no lane may take part, so do uniform loads.
"""

from __future__ import annotations

from ferryvm.ir.graph import BOOLEAN, Constant, FrameState, Operation, Value, Virtual
from ferryvm.ir.lane.emission import Emission
from ferryvm.ir.lane.item import UnvectorisedError
from ferryvm.ir.lane.shape import UNIFORM, VARYING, computed_shape
from ferryvm.ir.lane.speculation import Speculation
from ferryvm.ir.lane.variable import LaneValue
from ferryvm.ir.operation import DIVISIONS, PURE, element_bytes
from ferryvm.ir.rule import Rules
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import CANONICAL_NAN, I64, Type

_FURTHEST_FIELD = 256
"""Fields that may be read of null: they are in the first page of the space of objects."""


class Widening:
    """Appends the operations of a scalar body in lanes."""

    def __init__(
        self,
        emission: Emission,
        shared: frozenset[Operation] = frozenset(),
        speculation: Speculation | None = None,
    ) -> None:
        """`shared`: pure operations that yield the same in each lane, as in the first one;
        `speculation`: where lanes give up, if none leaves alone."""
        self.emission, self._shared, self._speculation = emission, shared, speculation
        self._virtual: dict[Value, Virtual] = {}
        self._rules = Rules(self)
        self.resolve = self._unresolved
        """The value in lanes of a value of the scalar body; set by the owner."""

    @staticmethod
    def _unresolved(value: Value) -> LaneValue:
        raise AssertionError(value)

    def run(self, operation: Operation) -> LaneValue | None:
        """Append an operation; its value, if it has one. Raises UnvectorisedError."""
        self.emission.pc = operation.pc
        rule = self._rules.get(operation.name)
        found: LaneValue | None
        if rule is not None:
            found = rule(operation, *(self.resolve(a) for a in operation.arguments))
        elif operation.name in PURE:
            found = self._pure(operation)
        else:
            raise UnvectorisedError(f"it has the operation {operation.name!r}")
        return found

    def _pure(self, operation: Operation) -> LaneValue:
        emission = self.emission
        arguments = [self.resolve(a) for a in operation.arguments]
        shape = computed_shape(operation, [a.shape for a in arguments])
        if operation in self._shared:
            shape = UNIFORM
        if shape is VARYING:
            values = [emission.materialise(a) for a in arguments]
        else:
            values = [a.value for a in arguments]
        if operation.name in DIVISIONS:
            values[1] = self._divisor(operation, values[1], shape is VARYING)
        result = emission.emit(operation.name, operation.type, operation.static, tuple(values))
        return LaneValue(result, shape)

    def _divisor(self, operation: Operation, value: Value, is_varying: bool) -> Value:
        """A divisor that cannot trap in lanes that do not take part."""
        if isinstance(value, Constant) and value.bits:
            is_minus_one = value.bits == operation.fact(0, Type).mask
            if not is_minus_one or operation.name.endswith("_u"):
                return value
        emission = self.emission
        if emission.mask is emission.true:
            return value
        if not is_varying:  # a constant 0, too: the division stands where lanes trap
            return emission.chosen(value, 1)
        t = operation.fact(0, Type)
        return emission.emit("safe_divisor", value.type, (t,), (emission.mask, value))

    def _uniform(self, operation: Operation, *arguments: LaneValue) -> LaneValue:
        """An operation of uniform operands only."""
        if any(a.shape != UNIFORM for a in arguments):
            raise UnvectorisedError(f"{operation.name!r} has different operands in each item")
        values = tuple(self.emission.safe(a.value, 0) for a in arguments)
        return LaneValue(
            self.emission.emit(operation.name, operation.type, operation.static, values)
        )

    # --- reading ----------------------------------------------------------------------------

    def do_cast(self, operation: Operation, reference: LaneValue) -> LaneValue:
        return reference

    def do_static(self, operation: Operation) -> LaneValue:
        return self._uniform(operation)

    def do_frame(self, operation: Operation) -> LaneValue:
        return self._uniform(operation)

    def do_stack_limit(self, operation: Operation) -> LaneValue:
        return self._uniform(operation)

    def do_type_word(self, operation: Operation, *operands: LaneValue) -> LaneValue:
        return self._uniform(operation, *operands)

    def do_header_word(self, operation: Operation, reference: LaneValue) -> LaneValue:
        if reference.shape == UNIFORM:
            return self._uniform(operation, reference)
        return self._each("header_each", operation, reference)

    def do_field_load(self, operation: Operation, reference: LaneValue) -> LaneValue:
        if reference.shape == UNIFORM and operation.fact(1, int) < _FURTHEST_FIELD:
            return self._uniform(operation, reference)
        return self._each("field_each", operation, reference)

    def do_field_store(self, operation: Operation, reference: LaneValue, value: LaneValue) -> None:
        self._each("field_store_each", operation, reference, value)

    def do_element_load(
        self, operation: Operation, place: LaneValue, offset: LaneValue
    ) -> LaneValue:
        emission = self.emission
        if place.shape == offset.shape == UNIFORM:
            return self._uniform(operation, place, offset)
        if place.shape == UNIFORM and offset.shape == _bytes(operation):
            arguments = (emission.mask, place.value, offset.value)
            loaded = emission.emit("load_consecutive", I64, operation.static, arguments)
            return LaneValue(loaded, VARYING)
        return self._each("load_each", operation, place, offset)

    def do_heap_pointer(self, operation: Operation) -> LaneValue:
        return self._uniform(operation)

    def do_heap_capacity(self, operation: Operation) -> LaneValue:
        return self._uniform(operation)

    def do_heap_load(self, operation: Operation, address: LaneValue) -> LaneValue:
        emission, size = self.emission, operation.fact(0, int)
        if address.shape == UNIFORM and emission.is_full:
            return self._uniform(operation, address)
        if address.shape == size:
            arguments = (emission.mask, address.value)
            loaded = emission.emit("heap_load_consecutive", I64, operation.static, arguments)
            return LaneValue(loaded, VARYING)
        return self._each("heap_load_each", operation, address)

    def _each(self, name: str, operation: Operation, *arguments: LaneValue) -> LaneValue:
        """An access of each lane for itself."""
        emission = self.emission
        values = tuple(emission.materialise(a) for a in arguments)
        made = emission.emit(name, operation.type, operation.static, (emission.mask, *values))
        return LaneValue(made, VARYING)

    # --- changing ---------------------------------------------------------------------------

    def do_element_store(
        self, operation: Operation, place: LaneValue, offset: LaneValue, value: LaneValue
    ) -> None:
        self._store(operation, self.emission.mask, place, offset, self.emission.materialise(value))

    def _store(
        self, operation: Operation, mask: Value, place: LaneValue, offset: LaneValue, value: Value
    ) -> None:
        emission = self.emission
        elements = operation.static
        if place.shape == UNIFORM and offset.shape == _bytes(operation):
            arguments = (mask, place.value, offset.value, value)
            emission.emit("store_consecutive", None, elements, arguments)
            return
        where = emission.materialise(place), emission.materialise(offset)
        emission.emit("store_each", None, elements, (mask, *where, value))

    def do_update_element(self, operation: Operation, *operands: LaneValue) -> None:
        emission = self.emission
        values = map(emission.materialise, operands)
        emission.emit("update_each", None, operation.static, (emission.mask, *values))

    def do_canonicalise_elements(self, operation: Operation, *operands: LaneValue) -> None:
        emission, kind = self.emission, operation.fact(0, Element)
        t = kind.type
        for place, offset, found in zip(operands[::3], operands[1::3], operands[2::3], strict=True):
            value = emission.materialise(found)
            is_nan = emission.emit("compare", BOOLEAN, (t, Condition.NE), (value, value))
            mask = emission.both(emission.mask, is_nan)
            self._store(operation, mask, place, offset, emission.constant(I64, CANONICAL_NAN[t]))

    def do_heap_store(self, operation: Operation, address: LaneValue, value: LaneValue) -> None:
        self._heap_store(operation, self.emission.mask, address, self.emission.materialise(value))

    def _heap_store(
        self, operation: Operation, mask: Value, address: LaneValue, value: Value
    ) -> None:
        emission, size = self.emission, operation.static[0]
        bytes_ = size.bits // 8 if isinstance(size, Type) else size
        if address.shape == bytes_:
            arguments = (mask, address.value, value)
            emission.emit("heap_store_consecutive", None, (bytes_,), arguments)
            return
        arguments = (mask, emission.materialise(address), value)
        emission.emit("heap_store_each", None, (bytes_,), arguments)

    def do_canonicalise(self, operation: Operation, *operands: LaneValue) -> None:
        emission, t = self.emission, operation.fact(0, Type)
        for address, found in zip(operands[::2], operands[1::2], strict=True):
            value = emission.materialise(found)
            is_nan = emission.emit("compare", BOOLEAN, (t, Condition.NE), (value, value))
            mask = emission.both(emission.mask, is_nan)
            self._heap_store(operation, mask, address, emission.constant(I64, CANONICAL_NAN[t]))

    # --- context arrays of groups -----------------------------------------------------------

    def do_context_load(
        self, operation: Operation, array: LaneValue, index: LaneValue
    ) -> LaneValue:
        if index.shape == UNIFORM:
            return self._uniform(operation, array, index)
        arguments = (*self._own_elements(array, index), self.emission.mask)
        static = operation.static
        loaded = self.emission.emit("context_load_lanes", operation.type, static, arguments)
        return LaneValue(loaded, VARYING)

    def do_context_store(
        self, operation: Operation, array: LaneValue, index: LaneValue, value: LaneValue
    ) -> None:
        emission = self.emission
        where = self._own_elements(array, index)
        arguments = (*where, emission.materialise(value), emission.mask)
        emission.emit("context_store_lanes", None, operation.static, arguments)

    @staticmethod
    def _own_elements(array: LaneValue, index: LaneValue) -> tuple[Value, Value]:
        """The array and the first lane's number, if each lane accesses its item's element."""
        if array.shape != UNIFORM or index.shape != 1:
            raise UnvectorisedError("its items access elements of others in context arrays")
        return array.value, index.value

    # --- leaving ----------------------------------------------------------------------------

    def suspend(self, operation: Operation, p: Value, *, stops: bool = False) -> None:
        """Suspend the lanes of the mask in which a condition holds, in front of an operation."""
        emission = self.emission
        if self._speculation is not None:
            self._speculation.give_up_if(p)
            return
        flags = (stops, emission.is_full)
        state = self._state(operation.exit)  # first what it refers to
        made = emission.emit("suspend", BOOLEAN, flags, (emission.mask, p))
        made.state = state
        emission.mask = made

    def do_trap_if(self, operation: Operation, p: LaneValue) -> None:
        self.suspend(operation, p.value, stops=operation.fact(0, Trap) is not Trap.NONE)

    def do_guard(self, operation: Operation, p: LaneValue) -> None:
        self.suspend(operation, p.value)

    def do_continue_launch_if(self, operation: Operation, p: LaneValue) -> None:
        self.suspend(operation, p.value)

    def do_bounded(self, operation: Operation) -> None:
        self.emission.emit("bounded", None, operation.static)

    def do_poll(self, operation: Operation) -> None:
        emission = self.emission
        if self._speculation is not None:
            self._speculation.poll()
            return
        flags = (emission.is_full,)
        state = self._state(operation.exit)
        made = emission.emit("poll_lanes", BOOLEAN, flags, (emission.mask,))
        made.state = state
        emission.mask = made

    def _state(self, old: FrameState) -> FrameState:
        """A state in lanes."""
        words = tuple(None if w is None else self._word(w) for w in old.words)
        return FrameState(old.pc, words, header=old.header)

    def _word(self, value: Value) -> Value:
        if not isinstance(value, Virtual):
            return self.emission.materialise(self.resolve(value))
        raw = self.emission.materialise(self.resolve(value.raw))
        if raw not in self._virtual:
            self._virtual[raw] = Virtual(raw)
        return self._virtual[raw]


def _bytes(operation: Operation) -> int:
    elements = operation.static[0]
    assert isinstance(elements, Element | int)
    return element_bytes(elements)
