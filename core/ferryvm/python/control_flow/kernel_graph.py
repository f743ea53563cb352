# SPDX-License-Identifier: Apache-2.0
"""The graphs of functions that launch the groups of a kernel, or the items of a group."""

from __future__ import annotations

import ast
import math

import numpy as np

from ferryvm.python.control_flow.graph import Assign, Known, Launch, Return
from ferryvm.python.control_flow.graph_builder import like, name_of
from ferryvm.python.control_flow.kernel_source import GroupArray, KernelSource, Role
from ferryvm.python.control_flow.lower import Lowering
from ferryvm.python.definition.source import MISSING, Source
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.value.kind import DTYPES

_DTYPES = {
    element.kind: np.dtype(name)
    for name, element in DTYPES.items()
    if name not in ("bool", "uint64")  # they have the elements of others
}
"""The dtypes by the names of ferryvm."""


class LaunchLowering(Lowering):
    """The graph of such a function."""

    def _lower(self) -> None:
        source = self._source
        assert isinstance(source, KernelSource)
        node: ast.AST = source.node
        layout = source.of.layout
        names = [*source.hidden, *source.parameters[len(source.hidden) :]]
        if source.of.role is Role.LAUNCH:
            role = Role.MEMBER if layout.group is None else Role.GROUP
            sizes: list[ast.expr] = [name_of(name, node) for name in layout.names("count")]
        else:
            role = Role.MEMBER
            assert layout.group is not None
            assert isinstance(node, ast.FunctionDef)
            node = node.body[0]  # the launch of groups stands at the definition
            sizes = [like(node, ast.Constant(size)) for size in layout.group]
            for each in source.group_arrays:
                self.graph.add(Assign(each.node, each.name, self._made(each)))
            for name, dtype in zip(source.values, source.of.values, strict=True):
                count = like(node, ast.Constant(math.prod(layout.group)))
                self.graph.add(Assign(node, name, self._zeros(node, count, Known(dtype, node))))
            arrays = [*source.values, *(each.name for each in source.group_arrays)]
            names = [*source.hidden, *arrays, *source.parameters[len(source.hidden) :]]
        arguments: list[ast.expr] = [name_of(name, node) for name in names]
        self.graph.add(Launch(node, source.of.other(role), sizes, arguments))
        self.graph.end(Return(node, Known(None, node)))

    def _made(self, array: GroupArray) -> ast.expr:
        """A new array of the group."""
        dtype = Known(self._dtype(array.dtype), array.dtype)
        return self._zeros(array.node, array.shape, dtype)

    def _zeros(self, node: ast.AST, shape: ast.expr, dtype: Known) -> ast.expr:
        call = ast.Call(Known(np.zeros, node), [shape], [ast.keyword("dtype", dtype)])
        return self.expressions.value(like(node, call))

    def _dtype(self, node: ast.expr) -> np.dtype[np.generic]:
        value = node.value if isinstance(node, ast.Constant) else self.expressions.constant(node)
        try:
            return group_dtype(value)
        except TypeError as error:
            raise NotCompilableError(node, str(error)) from None


def group_dtype(value: object) -> np.dtype[np.generic]:
    """The dtype of a group array. Raises TypeError."""
    if isinstance(value, str) and value in _DTYPES:
        return _DTYPES[value]
    is_type = isinstance(value, type) and issubclass(value, np.generic | int | float)
    if is_type or isinstance(value, np.dtype) or (isinstance(value, str) and len(value) > 3):
        return np.dtype(value)  # type: ignore[call-overload, no-any-return]  # one of these types
    shown = "a value that is not known" if value is MISSING else repr(value)
    names = ", ".join(map(repr, _DTYPES))
    raise TypeError(
        f"the dtype of a group array is one of {names}, or a type of NumPy; found {shown}"
    )


def lowering_of(source: Source) -> Lowering:
    """The graph of a function. Raises NotCompilableError."""
    if isinstance(source, KernelSource) and source.of.role in (Role.LAUNCH, Role.GROUP):
        return LaunchLowering(source)
    return Lowering(source)
