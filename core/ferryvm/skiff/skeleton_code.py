# SPDX-License-Identifier: Apache-2.0
"""Calls of generated functions for `for-each-item`, `map`, `map!`, `reduce`, `scan`, and the
operations of groups, and these functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ferryvm.isa.element import Element
from ferryvm.listing import FunctionListing
from ferryvm.program import Signature
from ferryvm.skeleton.array_type import ArrayType
from ferryvm.skeleton.grid import Grid, grid
from ferryvm.skeleton.group_launch import USUAL_SIZE, GroupLaunch, group_launch
from ferryvm.skeleton.group_operation import (
    group_broadcast,
    group_broadcast_name,
    group_reduction,
    group_reduction_name,
    group_scan,
    group_scan_name,
)
from ferryvm.skeleton.mapping import Mapping, mapping
from ferryvm.skeleton.operation import Operation
from ferryvm.skeleton.reduction import reduction, reduction_name
from ferryvm.skeleton.scan import scan, scan_name
from ferryvm.skiff import tree
from ferryvm.skiff.object_code import Generator
from ferryvm.skiff.tree import Node
from ferryvm.skiff.type import ELEMENT_NAMES, ArrayOf, Named, SkiffType, default


class SkeletonCode:
    """Rules for the nodes of skeletons."""

    def __init__(self, generator: Generator, functions: dict[str, FunctionListing]) -> None:
        """`functions`: the generated ones by name, of the whole program."""
        self.generator, self.functions = generator, functions

    def reduce(self, node: tree.Reduce) -> None:
        """`reduce`."""
        operation = _operation(node.operation)
        array = self._array_type(node.element)
        has_initial = node.initial is not None
        if node.initial is not None:
            self.generator.value(node.initial)
        self.generator.value(node.array)
        name = reduction_name(operation, array, has_initial)
        self._add(name, lambda: reduction(operation, array, has_initial))
        self._call(node, name)

    def scan(self, node: tree.Scan) -> None:
        """`scan`."""
        operation, array = _operation(node.operation), self._array_type(node.element)
        self.generator.value(node.array)
        name = scan_name(operation, array)
        self._add(name, lambda: scan(operation, array))
        self._call(node, name)

    def group_operation(self, node: tree.GroupOperation) -> None:
        """`group-reduce` and the like."""
        values = self._array_type(node.element)
        for operand in (node.value, *node.numbers, node.array):
            self.generator.value(operand)
        if node.operation is None:
            name = group_broadcast_name(values)
            self._add(name, lambda: group_broadcast(values))
        elif node.form == "group-reduce":
            operation = _operation(node.operation)
            name = group_reduction_name(operation, values)
            self._add(name, lambda: group_reduction(operation, values))
        else:
            operation, is_exclusive = _operation(node.operation), node.form == "group-scan-before"
            name = group_scan_name(operation, values, is_exclusive=is_exclusive)
            self._add(name, lambda: group_scan(operation, values, is_exclusive=is_exclusive))
        self._call(node, name)

    def map(self, node: tree.Map) -> None:
        """`map` and `map!`."""
        function, value = node.function, self.generator.types.value
        types = tuple(value(parameter.type) for parameter in function.parameters)
        result = node.to_element if node.to is not None else function.result
        shared = (None,) * len(node.shared)
        of = Mapping(
            function.name,
            Signature(types, (value(function.result),)),
            (*(self._array_type(element) for element in node.elements), *shared),
            (self._array_type(result),),
            in_place=node.to is not None,
        )
        for operand in ([] if node.to is None else [node.to]) + node.shared + node.arrays:
            self.generator.value(operand)
        self._add(of.name, lambda: mapping(of))
        self._call(node, of.name)

    def grid(self, node: tree.Launch) -> None:
        """`for-each-item` of two or three dimensions, behind its arguments and sizes."""
        function, value = node.function, self.generator.types.value
        types = tuple(value(parameter.type) for parameter in function.parameters)
        of = Grid(function.name, Signature(types), len(node.sizes))
        self._add(of.name, lambda: grid(of))
        self._call(node, of.name)

    def group_launch(self, node: tree.GroupLaunch) -> None:
        """`for-each-group`."""
        value, function = self.generator.types.value, node.function
        made = [each for each in node.arguments if isinstance(each, tree.GroupArray)]
        of = GroupLaunch(
            function.name,
            Signature(tuple(value(parameter.type) for parameter in function.parameters)),
            tuple(
                self._array_type(each.element) if isinstance(each, tree.GroupArray) else None
                for each in node.arguments
            ),
        )
        for argument in node.arguments:
            if not isinstance(argument, tree.GroupArray):
                self.generator.value(argument)
        for array in made:
            if array.length is None:
                self.generator.emit(node, "i64.const", 0)
            else:
                self.generator.value(array.length)
        self.generator.value(node.count)
        if node.size is None:
            self.generator.emit(node, "i64.const", USUAL_SIZE)
        else:
            self.generator.value(node.size)
        self._add(of.name, lambda: group_launch(of))
        self._call(node, of.name)

    def _add(self, name: str, make: Callable[[], Sequence[FunctionListing]]) -> None:
        """Generate the function of that name, and those that it needs, unless they are there."""
        if name not in self.functions:
            for function in make():
                self.functions.setdefault(function.name, function)

    def _call(self, node: Node, name: str) -> None:
        self.generator.emit(node, "call", name)

    def _array_type(self, element: SkiffType) -> ArrayType:
        found = default(element)
        if isinstance(found, Named) and found.name in ELEMENT_NAMES:
            return ArrayType.of(Element(found.name))
        types = self.generator.types
        return ArrayType(types.reference(ArrayOf(found)), types.reference(found))


def _operation(operation: Operation | tree.Function) -> Operation:
    if isinstance(operation, tree.Function):
        return Operation(operation.name, is_function=True)
    return operation
