# SPDX-License-Identifier: Apache-2.0
"""The code of a function under construction: variables, places, exceptions, operands."""

from __future__ import annotations

import abc
import ast
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ferryvm.build import Function, Host, Local, Program, Static, Struct, Tag
from ferryvm.errors import Position
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64, Type
from ferryvm.machine.host import HostFunction
from ferryvm.python.codegen.host_statement import executing
from ferryvm.python.codegen.widened_list import widened_item
from ferryvm.python.control_flow.compared import ComparedFloats
from ferryvm.python.control_flow.dead_local import LocalKey, push_zero
from ferryvm.python.control_flow.kernel_source import KernelFunction
from ferryvm.python.definition.site import EXCEPTIONS, Site, Sites
from ferryvm.python.definition.source import InnerFunction, Source
from ferryvm.python.value.kind import INT, Array, Either, Kind, List, Text
from ferryvm.python.value.text_value import codes

_SPARES = 4
"""Locals of each type for the operands of one operation."""


class Shared:
    """The program, and the parts that its functions share."""

    def __init__(self) -> None:
        self.program = Program()
        self.sites = Sites()
        self.error: Tag = self.program.tag("python", [I64, I64])
        """The tag of exceptions, with the numbers of the site and of the type."""
        self.limit: Tag = self.program.tag("python limit", [I64])
        """The tag that nothing catches: Python raises the exception, or would go on. It has the
        number of the site."""
        self.arrays: list[tuple[Any, Static]] = []
        """Arrays that free names refer to, and the statics that hold them."""
        self.hosts: list[HostFunction] = []
        """Host functions that execute statements."""
        self.lists: Struct | None = None
        """The struct type of lists, if the program has any."""
        self.list_kinds: dict[List, None] = {}
        """The kinds of lists that variables have."""
        self.widened: dict[Kind, Either] = {}
        """The kinds of items that lists have in the place of others."""
        self.reads_kinds = False
        """True if code reads the kind of a list, so that it depends on `list_kinds`."""
        self.changed: set[int] = set()
        """The numbers of kinds of items that change in lists."""
        self.group_values: set[str] = set()
        """The dtypes of the values that items of a group combine."""
        self.has_effects = False
        """True if it changes arrays, or calls a host function."""
        self._made: dict[str, Function] = {}
        self._texts: dict[str | bytes, Any] = {}

    def array(self, array: Any, kind: Array) -> Static:
        """The static that holds an array that a free name refers to."""
        for known, static in self.arrays:
            if known is array:
                return static
        name = f"array {len(self.arrays)}"
        static = self.program.static(name, kind.element.array)
        self.arrays.append((array, static))
        return static

    def text(self, value: str | bytes) -> Static:
        """The static that holds the array of a text that is known."""
        if value not in self._texts:
            self._texts[value] = codes(value)
        return self.array(self._texts[value], Text(type(value)).array)

    def host(
        self, source: Source, statement: ast.stmt, names: list[str], kinds: list[Kind]
    ) -> Host:
        """The host function that executes a statement with variables of these kinds."""
        name = f"statement {len(self.hosts)}"
        slots = [slot for kind in kinds for slot in kind.slots]
        self.hosts.append(executing(name, source, statement, names, kinds))
        return self.program.host(name, slots)

    def function(self, name: str, make: Callable[[Program, str], Function]) -> Function:
        """A function that compiled code needs, made at its first use."""
        if name not in self._made:
            self._made[name] = make(self.program, name)
        return self._made[name]


class Compiled(NamedTuple):
    """A function of the program for certain kinds of arguments."""

    function: Function
    results: list[Kind]
    """The kinds of values that it may return."""


class Functions(Protocol):
    """The other functions of the program."""

    def check(
        self,
        function: types.FunctionType | InnerFunction | KernelFunction,
        kinds: tuple[Kind, ...],
        caught: frozenset[type[BaseException]],
        node: ast.AST,
    ) -> None:
        """Raise CalleeError for a function that cannot be compiled for these kinds of arguments."""

    def compiled(
        self,
        function: types.FunctionType | InnerFunction | KernelFunction,
        kinds: tuple[Kind, ...],
        caught: frozenset[type[BaseException]],
        target: Kind | None = None,
        node: ast.AST | None = None,
        for_: ast.AST | None = None,
    ) -> Compiled:
        """The compiled function, with the kinds of results that are known so far; for calls of
        which clauses get these exceptions. `target`: the kind that all results have. `node`: the
        call, which is left out if the function cannot be compiled; `for_`: an operation that needs
        the function in any case."""


class Code(abc.ABC):
    """Code of one function, as what makes it for operators and calls needs it."""

    def __init__(self, shared: Shared, source: Source, function: Function) -> None:
        self.f = function
        self.env: dict[str, Kind] = {}
        """The kinds of variables here."""
        self._shared, self._source = shared, source
        self.counters: frozenset[str] = frozenset()
        self.compared = ComparedFloats((), ())
        """Variables that are never negative."""
        self.caught: frozenset[type[BaseException]] = frozenset()
        """Exceptions that a clause in compiled code gets, if code here raises them. CPython raises
        all others."""
        self.node: ast.AST | None = None
        """The construct that the code here is for."""
        self.all_locals: dict[tuple[str, Kind], list[Local]] = {}
        """The locals of each variable, by its kind."""
        self.error = shared.error
        """The tag of exceptions."""
        self._spares: dict[Type, list[Local]] = {}
        self._next_spare: dict[Type, int] = {}

    # --- variables --------------------------------------------------------------------------

    def declare(self, name: str, kind: Kind, locals_: list[Local]) -> None:
        """State the locals of a parameter."""
        self.all_locals[name, kind] = locals_

    def locals(self, name: str, kind: Kind) -> list[Local]:
        """The locals of a variable while it has a kind."""
        found = self.all_locals.get((name, kind))
        if found is None:
            found = [self.f.local(None, slot) for slot in kind.slots]
            self.all_locals[name, kind] = found
        return found

    def set(self, name: str, kind: Kind) -> None:
        """Pop a value into a variable."""
        kind = self.compared.kind(name, kind)
        for local in reversed(self.locals(name, kind)):
            self.f.local_set(local)
        self.env[name] = kind
        if isinstance(kind, List) and kind.item is not None:
            self._shared.list_kinds[kind] = None

    def get(self, name: str, kind: Kind) -> None:
        """Push the value of a variable."""
        for local in self.locals(name, kind):
            self.f.local_get(local)

    def spare(self, word: Type) -> Local:
        """A local for an operand of one operation, which is not used across others."""
        pool = self._spares.setdefault(word, [])
        number = self._next_spare.get(word, 0)
        self._next_spare[word] = (number + 1) % _SPARES
        if number == len(pool):
            pool.append(self.f.local(None, word))
        return pool[number]

    def known_text(self, value: str | bytes) -> Static:
        """The static that holds the array of a text that is known."""
        return self._shared.text(value)

    def scratch(self, name: str) -> Local:
        """A local for an integer that one statement needs."""
        return self.locals(name, INT)[0]

    def call_hosted(
        self, node: ast.AST, function: Callable[..., Any], kinds: list[Kind], result: Kind
    ) -> None:
        """Call a function of this package, whose arguments are on the stack."""
        found = self.hosted(function, tuple(kinds), result)
        self.at(node)
        self.f.call(found)

    def zeros(self, kind: Kind) -> None:
        """Push any value of a kind."""
        for slot in kind.slots:
            push_zero(self.f, slot)

    def has_effect(self) -> None:
        """State that the code changes arrays, or what others see in another way."""
        self._shared.has_effects = True

    def group_values(self, dtype: str) -> Local | None:
        """The array for values of a dtype that items of a group combine; None if the function gets
        none yet."""
        self._shared.group_values.add(dtype)
        found = self.all_locals.get((f"%values {dtype}", Array(dtype, 1)))
        return None if found is None else found[0]

    def list_of(self, item: Kind) -> List:
        """The kind of a list that gets items of a kind."""
        return List(widened_item(item, self._shared.widened))

    def call_host(self, names: Sequence[str], statement: ast.stmt) -> None:
        """Call a host function that executes a statement, with the variables of these names that
        have values."""
        names = [name for name in names if name in self.env]
        kinds = [self.env[name] for name in names]
        self.has_effect()
        host = self._shared.host(self._source, statement, names, kinds)
        for name, kind in zip(names, kinds, strict=True):
            self.get(name, kind)
        self.f.host(host)

    def changes(self, kind: List) -> None:
        """State that lists of a kind change."""
        self._shared.changed.add(kind.number)

    def every_local(self) -> Mapping[LocalKey, Local]:
        """The locals of all variables and operands."""
        found: dict[LocalKey, Local] = {}
        for (name, kind), locals_ in self.all_locals.items():
            found |= {(name, kind, number): local for number, local in enumerate(locals_)}
        for word, locals_ in self._spares.items():
            found |= {(word, None, number): local for number, local in enumerate(locals_)}
        return found

    def clear(self, key: LocalKey) -> None:
        """Give a local its first value."""
        name, kind, number = key
        if isinstance(name, Type):
            pool = self._spares.setdefault(name, [])
            while len(pool) <= number:
                pool.append(self.f.local(None, name))
            local = pool[number]
        else:
            assert isinstance(kind, Kind)
            local = self.locals(name, kind)[number]
        push_zero(self.f, local.type)
        self.f.local_set(local)

    def shared(self, name: str, make: Callable[[Program, str], Function]) -> Function:
        """A function that compiled code needs."""
        return self._shared.function(name, make)

    @property
    def list_struct(self) -> Struct:
        """The struct type of lists."""
        assert self._shared.lists is not None
        return self._shared.lists

    # --- places and exceptions --------------------------------------------------------------

    def position(self, node: ast.AST) -> Position:
        """The position of an operation: of a binary operator, behind its left operand, where no
        other operation is."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        if isinstance(node, ast.BinOp | ast.Compare):
            line = getattr(node.left, "end_lineno", line)
            column = getattr(node.left, "end_col_offset", column)
        elif isinstance(node, ast.Subscript):
            line = getattr(node.value, "end_lineno", line)
            column = getattr(node.value, "end_col_offset", column)
        return Position(self._source.file, line + self._source.first - 1, column + 1)

    def at(self, node: ast.AST) -> None:
        """Give the following code the position of a node."""
        self.node, place = node, self.position(node)
        self.f.at(place.file, place.line, place.column)

    def _site(
        self, node: ast.AST, type_: type[BaseException], message: str | None, is_limit: bool
    ) -> Site:
        return Site(type_, message, self.position(node), self._source.name, is_limit)

    def throw(
        self,
        node: ast.AST,
        type_: type[BaseException],
        message: str | None,
        is_limit: bool = False,
    ) -> None:
        """Raise an exception."""
        self.at(node)
        number = self._shared.sites.number(self._site(node, type_, message, is_limit))
        self.f.i64_const(number)
        if is_limit or type_ not in self.caught:
            self.f.throw(self._shared.limit)
        else:
            self.f.i64_const(EXCEPTIONS.index(type_))
            self.f.throw(self._shared.error)

    def push_site(self, node: ast.AST) -> None:
        """Push the number of the site at which a call may raise."""
        number = self._shared.sites.number(self._site(node, BaseException, None, False))
        self.f.i64_const(number)

    def emitted(self, emit: Callable[[], bool], caught: frozenset[type[BaseException]]) -> bool:
        """The result of a function that adds code whose exceptions are caught, if of these
        types."""
        self.caught = caught
        found = emit()
        self.caught = frozenset()
        return found

    def throw_if(
        self,
        node: ast.AST,
        type_: type[BaseException],
        message: str | None,
        is_limit: bool = False,
    ) -> None:
        """Pop an i32, and raise an exception if it is not 0."""
        with self.f.if_():
            self.throw(node, type_, message, is_limit)

    def trap(
        self,
        node: ast.AST,
        kind: Trap,
        type_: type[BaseException],
        message: str | None,
        is_limit: bool = False,
    ) -> None:
        """State what a trap of the code at a node is in Python."""
        self._shared.sites.traps(kind, self._site(node, type_, message, is_limit))

    # --- expressions ------------------------------------------------------------------------

    @abc.abstractmethod
    def kind(self, node: ast.expr) -> Kind:
        """The kind of an expression's value. Raises NotCompilableError."""

    @abc.abstractmethod
    def push(self, node: ast.expr) -> Kind:
        """Push the value of an expression. Raises NotCompilableError."""

    @abc.abstractmethod
    def push_as(self, node: ast.expr, kind: Kind) -> None:
        """Push the value of an expression, converted as operators do. Raises NotCompilableError."""

    @abc.abstractmethod
    def slots(self, node: ast.expr) -> list[Local]:
        """Locals with the slots of an expression's value. Raises NotCompilableError."""

    @abc.abstractmethod
    def push_slot(self, node: ast.expr, number: int) -> None:
        """Push one slot of an expression's value. Raises NotCompilableError."""

    @abc.abstractmethod
    def hosted(
        self, function: Callable[..., Any], kinds: tuple[Kind, ...], target: Kind
    ) -> Function:
        """The compiled form of a function that takes these kinds and returns one. Raises
        NotCompilableError."""

    def range_length(self, step: int) -> None:
        """Turn start and stop of a range on the stack into its length, modulo 2^64."""
        f = self.f
        stop, start = self.spare(I64), self.spare(I64)
        f.local_set(stop)
        f.local_set(start)
        if step < 0:
            start, stop = stop, start
        f.local_get(stop)
        f.local_get(start)
        f.i64_gt_s()
        with f.if_([I64]):
            f.local_get(stop)
            f.local_get(start)
            f.i64_sub()
            if abs(step) != 1:
                f.i64_const(1)
                f.i64_sub()
                f.i64_const(abs(step))
                f.i64_div_u()
                f.i64_const(1)
                f.i64_add()
            f.else_()
            f.i64_const(0)

    def stepped_length(self) -> None:
        """Turn start, stop and step of a range on the stack into its length, modulo 2^64."""
        f = self.f
        step, stop, start = (self.spare(I64) for _ in range(3))
        for local in (step, stop, start):
            f.local_set(local)
        f.local_get(step)
        f.i64_const(0)
        f.i64_lt_s()
        with f.if_([I64]):
            self._counted(stop, start, step, is_down=True)
            f.else_()
            self._counted(start, stop, step, is_down=False)

    def _counted(self, low: Local, high: Local, step: Local, is_down: bool) -> None:
        """Push how many steps there are from one number up to another one."""
        f = self.f
        f.local_get(low)
        f.local_get(high)
        f.i64_lt_s()
        with f.if_([I64]):
            f.local_get(high)
            f.local_get(low)
            f.i64_sub()
            f.i64_const(1)
            f.i64_sub()
            if is_down:
                f.i64_const(0)
                f.local_get(step)
                f.i64_sub()
            else:
                f.local_get(step)
            f.i64_div_u()
            f.i64_const(1)
            f.i64_add()
            f.else_()
            f.i64_const(0)
