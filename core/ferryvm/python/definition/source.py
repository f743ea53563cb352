# SPDX-License-Identifier: Apache-2.0
"""The syntax tree of a Python function, and what its free names refer to."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import re
import textwrap
import types
from collections.abc import Iterator
from typing import Any

from ferryvm.errors import Position
from ferryvm.python.definition.code_object import has_code, is_made_from
from ferryvm.python.fault import NotCompilableError, UnsupportedError

CALLING = "ferryvm: calls of built-in functions"
"""The module of functions that are made to call a built-in one: nobody wrote their lines."""

MISSING = object()
"""Stands for the value of a name that is not defined."""


class Source:
    """A Python function as it was written."""

    continued: Any = None
    """The code of its statements, once CPython has gone on with it."""

    def __init__(self, function: types.FunctionType, free: tuple[str, ...] = ()) -> None:
        """`free`: free names that are further parameters. Raises UnsupportedError if there is no
        source."""
        self.function, self.free = function, free
        self.name = function.__qualname__.rpartition("<locals>.")[2]
        code = function.__code__
        self.file = code.co_filename
        self.first = code.co_firstlineno
        # inspect.getsourcelines looks for the module first, in all files that are imported.
        linecache.checkcache(self.file)
        lines = linecache.getlines(self.file, function.__globals__)[self.first - 1 :]
        if not lines:
            raise UnsupportedError(
                "its source is not available; define it in a file or in a notebook, or pass its"
                " text to ferryvm.function",
                Position(self.file, self.first, 1),
                self.name,
            )
        self.code = code
        self.node = self._node(textwrap.dedent("".join(inspect.getblock(lines))))
        if not is_made_from(self.node, function):
            raise UnsupportedError(
                "its source has changed since it was defined; import its module again",
                Position(self.file, self.first, 1),
                self.name,
            )
        self.parameters = [*self._parameters(), *free]
        self.hidden: list[str] = []
        """Parameters for the place of an item of a launch."""
        self.varying: list[str] | None = None
        """Parameters that differ in items of a group; None if there is none."""
        own = {*code.co_varnames, *code.co_cellvars} - self.given
        self.variables = frozenset((*own, *free))
        """Names that are variables of the function itself."""
        self.assigned: tuple[str, ...] = ()
        """Variables of the function around it that it assigns, whose values it returns behind its
        own."""
        self.inner: dict[str, InnerFunction] = inner_functions(self)
        """The functions that are defined in it, by their names."""
        self._cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))

    @property
    def given(self) -> frozenset[str]:
        """Parameters that are constants of its code."""
        return frozenset()

    def _node(self, text: str) -> ast.FunctionDef | ast.Lambda:
        """The definition in a text. A lambda is part of a statement, which may be cut off."""
        wanted = self.function.__code__
        is_lambda = wanted.co_name == "<lambda>"
        trees: list[ast.AST]
        try:
            trees = [ast.parse(text)]
        except SyntaxError:
            trees = [*_lambdas_in(text)] if is_lambda else []
        nodes = [node for tree in trees for node in ast.walk(tree)]
        if is_lambda:
            lambdas = [each for each in nodes if isinstance(each, ast.Lambda)]
            alike = [each for each in lambdas if _has_parameters(each, wanted)]
            if len(alike) > 1:
                alike = [each for each in alike if has_code(each, wanted)]
            if alike:
                return alike[0]
            raise self._no_definition()
        for node in nodes:
            if isinstance(node, ast.FunctionDef) and node.name == wanted.co_name:
                return node
        raise self._no_definition()

    def _no_definition(self) -> UnsupportedError:
        message = "its definition is not found in the source; give it a name and lines of its own"
        return UnsupportedError(message, Position(self.file, self.first, 1), self.name)

    def _parameters(self) -> list[str]:
        arguments = self.node.args
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                message = f"it takes any number of arguments (*{extra.arg}); name each"
                raise UnsupportedError(message, self.position(extra), self.name)
        return [argument.arg for argument in _arguments(self.node)]

    def position(self, node: ast.AST) -> Position:
        """The position of a node."""
        line = getattr(node, "lineno", 1) + self.first - 1
        return Position(self.file, line, getattr(node, "col_offset", 0) + 1)

    def unsupported(self, refusal: NotCompilableError) -> UnsupportedError:
        """The error for a refusal."""
        is_written = self.function.__module__ != CALLING
        place = self.position(refusal.node) if is_written else None
        return UnsupportedError(refusal.message, place, self.name)

    def value(self, name: str) -> Any:
        """The present value of a free name: of a closure, the module, or built in; MISSING."""
        cell = self._cells.get(name)
        if cell is not None:
            try:
                return cell.cell_contents
            except ValueError:
                return MISSING
        found = self.function.__globals__.get(name, MISSING)
        return found if found is not MISSING else getattr(builtins, name, MISSING)

    def outside(self, node: ast.expr) -> object:
        """The value of a free name, or of an attribute of a module; MISSING for others."""
        if isinstance(node, ast.Name):
            is_own = node.id in self.variables or node.id in self.inner
            return MISSING if is_own else self.value(node.id)
        if isinstance(node, ast.Attribute):
            of = self.outside(node.value)
            if isinstance(of, types.ModuleType):
                return getattr(of, node.attr, MISSING)
        return MISSING


class FreeFunction:
    """A function whose code takes some of its free names as further arguments."""

    def __init__(self, function: types.FunctionType, names: tuple[str, ...]) -> None:
        self.function, self.names = function, names

    @functools.cached_property
    def source(self) -> Source:
        """Its source. Raises UnsupportedError."""
        return Source(self.function, self.names)


class InnerFunction:
    """A function that is defined in another one. It gets the variables of the other one as further
    arguments, with the values that they have at the call."""

    __module__ = ""

    def __init__(
        self,
        outer: Source,
        node: ast.FunctionDef | ast.Lambda,
        name: str,
        written: ast.Lambda | None = None,
    ) -> None:
        """`written`: a lambda as it was written, if variables of a comprehension have other names
        in it."""
        self.outer, self.node, self.name = outer, node, name
        self.code = _code_of(outer, node if written is None else written)
        before = node if written is None else written
        self._renamed = names_of(before) - names_of(node)
        """Variables of comprehensions, as they were written; from Python 3.12 on they are variables
        of the function around them, too."""

    @functools.cached_property
    def _reached(self) -> list[InnerFunction]:
        """This function, and the inner functions beside it that it uses, also through others."""
        found = [self]
        for each in found:
            others = [self.outer.inner.get(name) for name in each.code.co_freevars]
            found += [other for other in others if other is not None and other not in found]
        return found

    @functools.cached_property
    def captured(self) -> tuple[str, ...]:
        """The variables of the outer function that it uses, also through other inner functions."""
        found: set[str] = set()
        for each in self._reached:
            free = [name for name in each.code.co_names if name in self.outer.free]
            used = {*each.code.co_freevars, *free} - each._renamed
            found |= used & self.outer.variables
        if self._renamed:
            found |= {name for name in names_of(self.node) if name.startswith("%")}
        return tuple(sorted(found - self.outer.inner.keys()))

    @functools.cached_property
    def assigned(self) -> tuple[str, ...]:
        """The variables of the outer function that a call may assign (`nonlocal`). Its code returns
        their values, too, behind its own value."""
        found: set[str] = set()
        for each in self._reached:
            for node in ast.walk(each.node):
                if isinstance(node, ast.Nonlocal):
                    found |= {*node.names} & {*each.code.co_freevars}
        return tuple(name for name in self.captured if name in found)

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """Its parameters, with defaults that are written out. Raises NotCompilableError."""
        arguments = self.node.args
        plain = [*arguments.posonlyargs, *arguments.args]
        defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
        defaults += [*arguments.defaults, *arguments.kw_defaults]
        parameters = []
        for number, argument in enumerate(_arguments(self.node)):
            default = defaults[number]
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            if number >= len(plain):
                kind = inspect.Parameter.KEYWORD_ONLY  # type: ignore[assignment]  # of the same enumeration
            value: Any = inspect.Parameter.empty
            if default is not None:
                try:
                    value = ast.literal_eval(default)
                except ValueError:
                    message = "the default of a function in a function must be written out"
                    raise NotCompilableError(default, message) from None
            parameters.append(inspect.Parameter(argument.arg, kind, default=value))
        return inspect.Signature(parameters)

    @functools.cached_property
    def source(self) -> Source:
        """Its source, whose last parameters are the captured variables."""
        return InnerSource(self)


class InnerSource(Source):
    """An inner function as it was written."""

    def __init__(self, of: InnerFunction) -> None:
        outer = of.outer
        self.function, self.name, self.file, self.first = (
            outer.function,
            of.name,
            outer.file,
            outer.first,
        )
        self.code, self.node, self._outer = of.code, of.node, outer
        self.hidden, self.varying = [], None
        self.assigned = of.assigned
        self.free = tuple(name for name in outer.free if name in of.captured)
        self.parameters = [*self._parameters(), *of.captured]
        self.variables = frozenset((*of.code.co_varnames, *of.code.co_cellvars, *of.captured))
        others = outer.inner.items()
        visible = {name: each for name, each in others if name not in self.variables}
        self.inner = {**visible, **inner_functions(self)}

    @property
    def given(self) -> frozenset[str]:
        """Parameters of the outermost function that are constants of its code."""
        return self._outer.given

    def value(self, name: str) -> Any:
        """The present value of a free name of the outermost function; MISSING."""
        return self._outer.value(name)


def names_of(node: ast.AST) -> set[str]:
    """The names that are used in a definition."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def inner_functions(source: Source) -> dict[str, InnerFunction]:
    """The functions that are defined in a function, each by a name that nothing else has."""
    found: dict[str, InnerFunction] = {}
    names: list[str] = []
    for node in own_nodes(source.node):
        match node:
            case ast.FunctionDef():
                names.append(node.name)
                found[node.name] = InnerFunction(source, node, node.name)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as value):
                found[name] = InnerFunction(source, value, name)
            case ast.Name(ctx=ast.Store()):
                names.append(node.id)
    return {name: each for name, each in found.items() if names.count(name) == 1}


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's body, without those of functions in it."""
    body = [node.body] if isinstance(node, ast.Lambda) else getattr(node, "body", [])
    waiting: list[ast.AST] = [*body]
    while waiting:
        each = waiting.pop()
        yield each
        if not isinstance(each, ast.FunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(each)


def _code_of(outer: Source, node: ast.FunctionDef | ast.Lambda) -> types.CodeType:
    """The code of a function that is defined in another one, of which CPython knows the
    variables."""
    name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
    wanted = [argument.arg for argument in _arguments(node)]
    line = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
    waiting = [outer.code]
    while waiting:
        for each in waiting.pop().co_consts:
            if isinstance(each, types.CodeType):
                count = each.co_argcount + each.co_kwonlyargcount
                is_there = each.co_firstlineno == line + outer.first - 1
                is_there &= each.co_name == name and [*each.co_varnames[:count]] == wanted
                if is_there and (isinstance(node, ast.FunctionDef) or has_code(node, each)):
                    return each
                waiting.append(each)
    raise NotCompilableError(
        node, "the code of this function is not found; give it lines of its own"
    )


def _arguments(node: ast.FunctionDef | ast.Lambda) -> list[ast.arg]:
    arguments = node.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _has_parameters(node: ast.Lambda, code: types.CodeType) -> bool:
    names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    return names == list(code.co_varnames[: code.co_argcount])


def _lambdas_in(text: str) -> Iterator[ast.Expression]:
    """The trees of the lambdas that begin in the first line of a text that is no statement by
    itself, each as long as it can be."""
    for start in re.finditer(r"\blambda\b", text.partition("\n")[0]):
        before, part = "(" + " " * (start.start() - 1), text[start.start() :]
        for end in range(len(part), 0, -1):
            try:
                yield ast.parse(f"{before}{part[:end]}\n)", mode="eval")
                break
            except SyntaxError:
                continue
