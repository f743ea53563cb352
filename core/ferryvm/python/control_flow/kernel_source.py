# SPDX-License-Identifier: Apache-2.0
"""The functions of a program for a kernel, with parameters that say where an item is.

    launch of f   (counts, arguments)                         launches the groups, or items if there are none
    group of f    (group numbers, counts, arguments)          makes the arrays of the group, launches its members
    f             (indices, group numbers, counts, arrays, arguments)
    helpers       (arguments, indices, group numbers, counts) functions that ask for them, or wait

A group is a launch within an item of another launch (docs/parallel.md), so these are ordinary
functions.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import types
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ferryvm.python.definition.given_function import GivenSource
from ferryvm.python.definition.source import MISSING, own_nodes
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.hosted.work_item import group_array, group_size, is_work_item
from ferryvm.python.value.kind import Constant


class Role(enum.Enum):
    """The part of a launch that a function is."""

    LAUNCH = "launch of "
    GROUP = "group of "
    MEMBER = ""
    HELPER = " "


@dataclasses.dataclass(frozen=True)
class Layout:
    """The form of a launch."""

    dimensions: int
    group: tuple[int, ...] | None
    """The sizes of a group; None if there are no groups."""

    def names(self, what: str) -> list[str]:
        """The parameters for the axes: `index`, `group` and `count`, of items, or of groups if
        there are some."""
        return [f"%{what} {axis}" for axis in range(self.dimensions)]

    @property
    def shared(self) -> list[str]:
        """The parameters that are the same for the items of a group."""
        groups = [] if self.group is None else self.names("group")
        return [*groups, *self.names("count")]


@dataclasses.dataclass(frozen=True)
class KernelFunction:
    """A function of the program for a kernel."""

    function: types.FunctionType
    layout: Layout
    role: Role
    free: tuple[str, ...] = ()
    """Free names that are further arguments."""
    given: tuple[tuple[str, Constant], ...] = ()
    """The parameters that are functions, which are constants of the code."""
    values: tuple[str, ...] = ()
    """The dtypes of values that items of a group combine, for each of which a group has an
    array."""

    @functools.cached_property
    def source(self) -> KernelSource:
        """Its source. Raises UnsupportedError."""
        return KernelSource(self)

    def other(self, role: Role) -> KernelFunction:
        """The function of another role for the same kernel."""
        return dataclasses.replace(self, role=role)


class GroupArray(NamedTuple):
    """An array of a group."""

    name: str
    """The parameter that has it."""
    node: ast.Call
    shape: ast.expr
    dtype: ast.expr


class KernelSource(GivenSource):
    """A kernel, or a function that it calls, as it was written."""

    def __init__(self, of: KernelFunction) -> None:
        super().__init__(of.function, of.free, of.given)
        self.of, layout = of, of.layout
        own = self.parameters
        self.group_arrays: list[GroupArray] = []
        indices = layout.names("index")
        try:
            self._check_statements()
            if of.role in (Role.GROUP, Role.MEMBER):
                self.group_arrays = [*self._found_arrays(own)]
        except NotCompilableError as refusal:
            raise self.unsupported(refusal) from None
        match of.role:
            case Role.LAUNCH:
                self.hidden = layout.names("count")
            case Role.GROUP:
                self.hidden = layout.shared
            case _:
                self.hidden = [*indices, *layout.shared]
                if layout.group is not None:
                    self.varying = [*indices, *(own if of.role is Role.HELPER else ())]
        arrays = [each.name for each in self.group_arrays] if of.role is Role.MEMBER else []
        self.values = [f"%values {dtype}" for dtype in of.values]
        """Arrays for the values of a group."""
        if of.role is Role.HELPER:
            self.parameters = [*own, *self.hidden, *self.values]
        elif of.role is Role.MEMBER:
            self.parameters = [*self.hidden, *self.values, *arrays, *own]
        else:
            self.parameters = [*self.hidden, *own]
        self.name = f"{of.role.value}{self.name}".strip()

    def _check_statements(self) -> None:
        """Refuse statements that kernels have not."""
        for each in own_nodes(self.node):
            if isinstance(each, ast.Try):
                raise NotCompilableError(each, "cannot compile try in a kernel; test before")
            is_value = isinstance(each, ast.Return) and not _is_none(each.value)
            if is_value and self.of.role is not Role.HELPER:
                message = "a kernel returns nothing; store the value into an array"
                raise NotCompilableError(each, message)

    def _found_arrays(self, own: list[str]) -> Iterator[GroupArray]:
        body = self.node.body if isinstance(self.node, ast.FunctionDef) else []
        number = 0
        for statement in body:
            value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
            for each in value.elts if isinstance(value, ast.Tuple) else [value]:
                if isinstance(each, ast.Call) and self.outside(each.func) is group_array:
                    shape, dtype = self._arguments_of(each)
                    self._check_uniform(shape, own)
                    yield GroupArray(f"%array {number}", each, shape, dtype)
                    number += 1

    def _arguments_of(self, node: ast.Call) -> list[ast.expr]:
        given = dict(zip(("shape", "dtype"), node.args, strict=False))
        given |= {str(each.arg): each.value for each in node.keywords}
        if len(node.args) + len(node.keywords) != 2 or given.keys() != {"shape", "dtype"}:
            message = "group_array takes a shape and a dtype, as ferryvm.group_array(64, 'f64')"
            raise NotCompilableError(node, message)
        return [given["shape"], given["dtype"]]

    def _check_uniform(self, shape: ast.expr, own: list[str]) -> None:
        """Refuse a shape that may differ from item to item."""
        stored = {
            each.id
            for each in own_nodes(self.node)
            if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
        }
        for each in ast.walk(shape):
            match each:
                case ast.Name(id=name):
                    if name not in self.variables or (name in own and name not in stored):
                        continue
                    what = f"{name!r} is assigned in the kernel"
                case ast.Call(func=func) if is_work_item(self.outside(func)):
                    if self.outside(func) is group_size:
                        continue
                    what = f"{ast.unparse(func)}() differs from item to item"
                case _:
                    continue
            message = (
                f"the shape of a group array is one for all items, but {what}; constants, "
                "arguments that are not assigned, and group_size() may be in it"
            )
            raise NotCompilableError(each, message)

    def array_of(self, node: ast.Call) -> GroupArray | None:
        """The array of a group that a call stands for."""
        place = node.lineno, node.col_offset
        found = (a for a in self.group_arrays if (a.node.lineno, a.node.col_offset) == place)
        return next(found, None)


def _is_none(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def needs_item(function: types.FunctionType, test: Callable[[object], bool] = is_work_item) -> bool:
    """True for a function that may ask for the place of an item, or wait, or calls one that does.
    `test`: for one of the functions that do."""
    seen: set[types.FunctionType] = set()
    waiting = [function]
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        for value in _values(each):
            if test(value):
                return True
            called = getattr(value, "__ferryvm_function__", value)
            if isinstance(called, types.FunctionType):
                waiting.append(called)
    return False


def _values(function: types.FunctionType) -> Iterator[object]:
    """The values of the names in a function, and of attributes of these names that modules have."""
    code = function.__code__
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it has no value yet
            continue
    for name in code.co_names:
        value = function.__globals__.get(name, MISSING)
        yield value
        if isinstance(value, types.ModuleType):
            for attribute in code.co_names:
                yield _attribute(value, attribute)


def _attribute(module: types.ModuleType, name: str) -> object:
    """A value of a module; MISSING. Public ones may be defined at their first use, as ours are;
    others are not asked for, since they may be deprecated."""
    if name in vars(module):
        return vars(module)[name]
    is_public = name in getattr(module, "__all__", ())
    return getattr(module, name, MISSING) if is_public else MISSING
