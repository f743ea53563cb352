# SPDX-License-Identifier: Apache-2.0
"""Types of `map`, `map!`, `reduce` and `scan`: functions take the values of elements, and yield
values."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ferryvm.isa import Type
from ferryvm.skiff import tree
from ferryvm.skiff.object_inference import Inference, ObjectRules
from ferryvm.skiff.skeleton_form import SYMBOLS
from ferryvm.skiff.type import (
    ERROR,
    INTEGERS,
    NOTHING,
    NUMBERS,
    VALUES,
    ArrayOf,
    SkiffType,
    Unknown,
    describe,
    find,
    fits,
    of,
    unify,
)

if TYPE_CHECKING:
    from ferryvm.skeleton.operation import Operation

_DOMAINS = dict.fromkeys(("and", "or", "xor"), INTEGERS)
"""The operands of operations that are not defined for all numbers."""
_NAMES = {INTEGERS: "integers", NUMBERS: "numbers"}


class SkeletonRules:
    """Rules for the nodes of skeletons."""

    def __init__(self, inference: Inference, objects: ObjectRules) -> None:
        self.inference, self.objects = inference, objects

    def reduce(self, node: tree.Reduce) -> SkiffType:
        """`reduce`."""
        value = self._elements("reduce", node.array, node.element, node.operation)
        if node.initial is not None:
            self.inference.expect(node.initial, value, "the initial value of 'reduce'")
        return value

    def scan(self, node: tree.Scan) -> SkiffType:
        """`scan`."""
        return ArrayOf(self._elements("scan", node.array, node.element, node.operation))

    def group_launch(self, node: tree.GroupLaunch) -> SkiffType:
        """`for-each-group`."""
        expect, function = self.inference.expect, node.function
        expect(node.count, of(Type.I64), "the number of items")
        if node.size is not None:
            expect(node.size, of(Type.I64), "the size of a group")
        for item in function.parameters[:2]:
            if not fits(item.type, of(Type.I64)):
                message = f"'{item.name}' of '{function.name}' is {describe(item.type)}"
                self._fault(node, f"{message}, the number of an item is i64")
        pairs = zip(node.arguments, function.parameters[2:], strict=True)
        for number, (argument, parameter) in enumerate(pairs, 3):
            what = f"argument {number} ('{parameter.name}') of '{function.name}'"
            expect(argument, parameter.type, what)
        return NOTHING

    def group_array(self, node: tree.GroupArray) -> SkiffType:
        """`group-array`."""
        if node.length is not None:
            self.inference.expect(node.length, of(Type.I64), "the length of 'group-array'")
        return ArrayOf(node.element)

    def group_operation(self, node: tree.GroupOperation) -> SkiffType:
        """`group-reduce` and the like, whose arrays have their values as they are."""
        expect, form, value = self.inference.expect, node.form, node.element
        expect(node.array, ArrayOf(value), f"the last operand of '{form}'")
        if not unify(Unknown(NUMBERS), value):
            found = f"the array of '{form}' has elements of {describe(value)}"
            return self._fault(node.array, f"{found}, one of i32 i64 f32 f64 is expected")
        expect(node.value, value, f"the value of '{form}'")
        for number in node.numbers:
            expect(number, of(Type.I64), f"the number of an item of '{form}'")
        if node.operation is None:
            return find(value)
        return self._combined(form, node.array, value, node.operation)

    def map(self, node: tree.Map) -> SkiffType:
        """`map` and `map!`."""
        function, expect = node.function, self.inference.expect
        name, count = function.name, len(node.arrays)
        if function.is_wrapper:
            name = name.partition(" ")[0]
            self.inference.function(function)
        if node.to is not None:
            expect(node.to, ArrayOf(node.to_element), f"the first operand of '{node.form}'")
        pairs = zip(node.shared, function.parameters[count:], strict=True)
        for number, (argument, parameter) in enumerate(pairs, 1 + count):
            what = f"argument {number} ('{parameter.name}') of '{name}'"
            expect(argument, parameter.type, what)
        for number, array in enumerate(node.arrays):
            element, parameter = node.elements[number], function.parameters[number]
            expect(array, ArrayOf(element), f"array {number + 1} of '{node.form}'")
            value = self.objects.value(element, False, array.place)
            if not fits(parameter.type, value):
                found = f"'{parameter.name}' of '{name}' is {describe(parameter.type)}"
                return self._fault(array, f"{found}, an element here is {describe(value)}")
        result = find(function.result)
        if result == NOTHING:
            message = f"'{name}' yields no value, '{node.form}' needs its values"
            return self._fault(node, message)
        if isinstance(result, Unknown):
            unify(result, Unknown(VALUES))
        if node.to is None:
            return ArrayOf(function.result)
        value = self.objects.value(node.to_element, True, node.to.place)
        if not fits(value, function.result):
            message = f"'{name}' yields {describe(function.result)}"
            return self._fault(node, f"{message}, an element here is {describe(value)}")
        return NOTHING

    def _elements(
        self,
        form: str,
        array: tree.Node,
        element: SkiffType,
        operation: Operation | tree.Function,
    ) -> SkiffType:
        """The type of the values of an array that an operation combines."""
        self.inference.expect(array, ArrayOf(element), f"the last operand of '{form}'")
        value = self.objects.value(element, False, array.place)
        return self._combined(form, array, value, operation)

    def _combined(
        self, form: str, array: tree.Node, value: SkiffType, operation: Operation | tree.Function
    ) -> SkiffType:
        """The type of the values of an array, which an operation combines."""
        fault = functools.partial(self._fault, array)
        if not isinstance(operation, tree.Function):
            domain = Unknown(_DOMAINS.get(operation.name, NUMBERS))
            if not unify(domain, value):
                found = f"the array of '{form}' has values of {describe(value)}"
                return fault(f"{found}, '{SYMBOLS[operation.name]}' takes {_NAMES[domain.domain]}")
            return value
        name = operation.name
        for parameter in operation.parameters:
            if not unify(parameter.type, value):
                found = f"'{parameter.name}' of '{name}' is {describe(parameter.type)}"
                return fault(f"{found}, an element here is {describe(value)}")
        if not unify(operation.result, value):
            found = f"'{name}' yields {describe(operation.result)}"
            return fault(f"{found}, '{form}' needs {describe(value)}, as the elements are")
        if not unify(Unknown(NUMBERS), value):
            return fault(f"'{form}' takes arrays of numbers, the elements are {describe(value)}")
        return find(value)

    def _fault(self, node: tree.Node, message: str) -> SkiffType:
        self.inference.faults.add(node.place, message)
        return ERROR
