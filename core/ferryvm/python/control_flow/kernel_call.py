# SPDX-License-Identifier: Apache-2.0
"""Calls in kernels: of functions that say where an item is, of barriers, and of functions that ask.

ferryvm.item()        group * size + index          parameters of the function, see `kernel_source`
ferryvm.barrier()     a statement of the graph
f(x)                  f(x, indices, group numbers, counts), if `f` asks for them
"""

from __future__ import annotations

import ast
import dataclasses
import types

from ferryvm.python.control_flow.call_argument import CallArguments
from ferryvm.python.control_flow.graph import Atomic, Barrier, Evaluate, GroupOperation, Known
from ferryvm.python.control_flow.graph_builder import like, name_of
from ferryvm.python.control_flow.kernel_source import KernelFunction, KernelSource, Role, needs_item
from ferryvm.python.definition.source import InnerFunction
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.hosted.atomic_update import is_update
from ferryvm.python.hosted.raw import Unchecked, index_product, index_sum
from ferryvm.python.hosted.work_item import (
    barrier,
    group_array,
    group_count,
    group_number,
    group_size,
    is_group_operation,
    is_work_item,
    item,
    item_count,
)


class KernelCalls(CallArguments):
    """The lowering of such calls in one function."""

    def rewritten(self, node: ast.Call, function: object) -> ast.expr | None:
        """The value of a call that other expressions stand for; None for others."""
        if is_work_item(function):
            return self._of_item(node, function)
        if getattr(function, "__ferryvm_launches__", False):
            message = "a kernel is launched by Python; call a function here"
            raise NotCompilableError(node, message)
        if is_update(function):
            return self._updated(node, function)
        return super().rewritten(node, function)

    def evaluate(self, node: ast.Expr) -> None:
        """Add the statement that evaluates an expression whose value is not used."""
        value, block = self.value(node.value), self.graph.block
        last = block.statements[-1] if block is not None and block.statements else None
        if isinstance(last, Atomic) and isinstance(value, ast.Name) and value.id == last.name:
            last.name = None
        else:
            self.graph.add(Evaluate(node, value))

    def _updated(self, node: ast.Call, function: object) -> ast.expr:
        """The former value of an element that is updated."""
        assert isinstance(function, types.FunctionType)
        name = self.graph.temporary()
        self.graph.add(Atomic(node, name, function, self.arguments_of(node, function)))
        return name_of(name, node)

    def called(
        self, node: ast.Call, function: types.FunctionType | InnerFunction
    ) -> tuple[types.FunctionType | InnerFunction | KernelFunction, list[ast.expr]]:
        """The function to compile for a call, and its arguments."""
        source = self._source
        arguments = self.arguments_of(node, function)
        if not isinstance(source, KernelSource) or not isinstance(function, types.FunctionType):
            return function, arguments
        if not needs_item(function):
            return function, arguments
        helper = dataclasses.replace(
            source.of, function=function, role=Role.HELPER, free=(), given=()
        )
        names = (*source.hidden, *source.values)
        return helper, [*arguments, *(name_of(name, node) for name in names)]

    def _of_item(self, node: ast.Call, function: object) -> ast.expr:
        source, name = self._source, getattr(function, "__name__", "")
        if not isinstance(source, KernelSource):
            message = (
                f"ferryvm.{name} belongs in a kernel, or in a function of a module that one calls"
            )
            raise NotCompilableError(node, message)
        layout = source.of.layout
        if layout.group is None and function not in (item, item_count):
            message = f"ferryvm.{name} needs groups; pass group= to ferryvm.launch"
            raise NotCompilableError(node, message)
        if function is barrier:
            self.graph.add(Barrier(node))
            return Known(None, node)
        if function is group_array:
            array = source.array_of(node)
            if array is None:
                message = (
                    "group_array is the value of an assignment of its own in the kernel, outside of if, "
                    "loops and other functions, as in tile = ferryvm.group_array(64, 'f64')"
                )
                raise NotCompilableError(node, message)
            return name_of(array.name, node)
        if isinstance(function, types.FunctionType) and is_group_operation(function):
            result, number = self.graph.temporary(), self._number(node, layout.group or ())
            arguments = self.arguments_of(node, function)
            self.graph.add(GroupOperation(node, result, function, arguments, number))
            return name_of(result, node)
        axis = self._axis(node, name, layout.dimensions)
        return self._index(node, function, axis, layout.group)

    def _number(self, node: ast.Call, group: tuple[int, ...]) -> ast.expr:
        """The number of the item in its group, in row-major order."""
        found: ast.expr = name_of("%index 0", node)
        for axis, size in enumerate(group[1:], 1):
            length: list[ast.expr] = [found, like(node, ast.Constant(size))]
            row = like(node, ast.Call(Known(index_product, node), length, []))
            pair: list[ast.expr] = [row, name_of(f"%index {axis}", node)]
            found = like(node, ast.Call(Known(index_sum, node), pair, []))
        return found

    def _axis(self, node: ast.Call, name: str, dimensions: int) -> int:
        given = [*node.args, *(each.value for each in node.keywords if each.arg == "axis")]
        if len(given) != len(node.args) + len(node.keywords) or len(given) > 1:
            raise NotCompilableError(node, f"ferryvm.{name} takes an axis, or nothing")
        value = getattr(self.value(given[0]), "value", None) if given else 0
        if type(value) is not int or not 0 <= value < dimensions:
            plural = "s" if dimensions > 1 else ""
            message = (
                f"ferryvm.{name} takes an axis that is written out; the launch has {dimensions} "
                f"dimension{plural}"
            )
            raise NotCompilableError(node, message)
        return value

    def _index(
        self, node: ast.Call, function: object, axis: int, group: tuple[int, ...] | None
    ) -> ast.expr:
        """An index or a size along an axis."""

        def parameter(what: str) -> ast.expr:
            return name_of(f"%{what} {axis}", node)

        def combined(how: Unchecked, one: ast.expr, other: ast.expr) -> ast.expr:
            return like(node, ast.Call(Known(how, node), [one, other], []))

        size = like(node, ast.Constant(1 if group is None else group[axis]))
        if function is group_size:
            return size
        if function is group_number:
            return parameter("group")
        if function is group_count or (function is item_count and group is None):
            return parameter("count")
        if function is item_count:
            return combined(index_product, parameter("count"), size)
        if function is item and group is not None:
            first = combined(index_product, parameter("group"), size)
            return combined(index_sum, first, parameter("index"))
        return parameter("index")
