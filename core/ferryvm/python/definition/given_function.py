# SPDX-License-Identifier: Apache-2.0
"""Functions that are arguments: each has code of its own, in which it is a constant.

    integrate(math.sin, 0.0, 1.0, 100)     code of `integrate` in which `f` is `math.sin`

A lambda that is made anew for each call has the code of one that is alike. CPython cannot tell them
apart, since compiled functions only call them, and pass them to others that do.
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ferryvm import record
from ferryvm.python.definition.dependency import are_alike
from ferryvm.python.definition.source import Source
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.value.kind import NONE, Constant, Kind
from ferryvm.python.value.value_kind import kind_of

MOST_GIVEN = 32
"""Functions that were arguments of one function, for which it has code."""

_TYPES = (int, float, bool, complex)


def is_function(value: object) -> bool:
    """True for a function that code can be made for when it is an argument."""
    if not callable(value):
        return False
    if isinstance(value, types.BuiltinFunctionType):
        return isinstance(value.__self__, types.ModuleType)
    if isinstance(value, type):
        return value in _TYPES
    return isinstance(value, types.FunctionType | np.ufunc) or hasattr(
        value, "__ferryvm_function__"
    )


class GivenFunctions:
    """The functions that were arguments of one function, the last ones."""

    def __init__(self, forget: Callable[[Constant], None]) -> None:
        """`forget` is called with the kind of a function that is dropped."""
        self._functions: list[Any] = []
        self._forget = forget

    def kind(self, value: object) -> Kind:
        """The kind of an argument; that of a function is one that is alike. Raises MisfitError."""
        if not is_function(value):
            return kind_of(value)
        known = self._functions
        if not known or known[-1] is not value:
            found = next((each for each in reversed(known) if are_alike(each, value)), value)
            others = [each for each in known if each is not found]
            for each in others[: 1 - MOST_GIVEN]:
                self._forget(Constant(each))
            self._functions = [*others[1 - MOST_GIVEN :], found]
            value = found
        return Constant(value)


@record.dataclass(frozen=True)
class GivenFunction:
    """A function with arguments that are functions, or None where one is called."""

    function: types.FunctionType
    free: tuple[str, ...]
    """Free names that are further arguments."""
    given: tuple[tuple[str, Constant], ...]
    """The parameters that are constants."""

    @functools.cached_property
    def source(self) -> Source:
        """Its source. Raises UnsupportedError."""
        return GivenSource(self.function, self.free, self.given)


def given_parameters(
    function: types.FunctionType, kinds: tuple[Kind, ...]
) -> tuple[tuple[str, Constant], ...]:
    """The parameters that are constants, for kinds of arguments."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    called: set[str] | None = None
    found = []
    for name, kind in zip(names, kinds, strict=False):
        if kind == NONE:
            called = _called(function) if called is None else called
        if isinstance(kind, Constant) and (
            is_function(kind.value) or (kind == NONE and called is not None and name in called)
        ):
            found.append((name, kind))
    return tuple(found)


def _called(function: types.FunctionType) -> set[str]:
    """The names that a function calls, and does not assign."""
    nodes = [*ast.walk(Source(function).node)]
    calls = {
        each.func.id
        for each in nodes
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
    }
    return calls - {
        each.id
        for each in nodes
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    }


class GivenSource(Source):
    """A function as it was written, of which some parameters are constants."""

    def __init__(
        self,
        function: types.FunctionType,
        free: tuple[str, ...],
        given: tuple[tuple[str, Constant], ...],
    ) -> None:
        self._given = {name: kind.value for name, kind in given}
        super().__init__(function, free)
        self._allowed = {id(use) for each in ast.walk(self.node) for use in self._uses(each)}
        for name, value in self._given.items():
            try:
                self._check(self.node, name, isinstance(value, types.FunctionType))
            except NotCompilableError as refusal:
                raise self.unsupported(refusal) from None

    @property
    def given(self) -> frozenset[str]:
        """Parameters that are constants."""
        return frozenset(self._given)

    def value(self, name: str) -> Any:
        """The present value of a parameter that is a constant, or a free name; MISSING."""
        return self._given[name] if name in self._given else super().value(name)

    def _check(self, node: ast.AST, name: str, is_python: bool) -> None:
        """Refuse assignments of a parameter, and what could tell Python functions that are alike
        apart."""
        for each in ast.iter_child_nodes(node):
            if isinstance(each, ast.Name) and each.id == name:
                if not isinstance(each.ctx, ast.Load):
                    message = f"{name!r} is a function that is an argument; assign another name"
                    raise NotCompilableError(each, message)
                if is_python and id(each) not in self._allowed:
                    raise NotCompilableError(
                        each,
                        f"{name!r} is a function that is an argument; call it here, or pass it to a"
                        " function of a module",
                    )
            if not _has_parameter(each, name):
                self._check(each, name, is_python)

    def _uses(self, node: ast.AST) -> Iterator[ast.expr]:
        """The parts of an expression that may be a Python function."""
        match node:
            case ast.Call():
                yield node.func
                if self._is_python(node.func):
                    yield from (*node.args, *(each.value for each in node.keywords))
                else:
                    yield from (each.value for each in node.keywords if each.arg == "key")
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
                yield node.left

    def _is_python(self, node: ast.expr) -> bool:
        """True for the name of a Python function that is defined outside."""
        value = self.outside(node)
        return isinstance(value, types.FunctionType) or hasattr(value, "__ferryvm_function__")


def _has_parameter(node: ast.AST, name: str) -> bool:
    """True for a function with a parameter of its own of this name."""
    if not isinstance(node, ast.FunctionDef | ast.Lambda):
        return False
    arguments = node.args
    plain = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return any(each.arg == name for each in plain)
