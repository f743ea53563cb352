# SPDX-License-Identifier: Apache-2.0
"""A program for a Python function and certain kinds of arguments, with all functions that it
calls."""

from __future__ import annotations

import ast
import dataclasses
import types
from collections.abc import Container, Sequence
from typing import Any

from ferryvm.build import Function
from ferryvm.machine.host import HostFunction
from ferryvm.program import Program
from ferryvm.python.codegen.code import Compiled, Shared
from ferryvm.python.codegen.mixed_item import MixedItemsError
from ferryvm.python.codegen.widened_list import widened
from ferryvm.python.compiled.barrier_version import BarrierVersions
from ferryvm.python.compiled.pause import FunctionMap
from ferryvm.python.compiled.version import Versions
from ferryvm.python.control_flow.dead_local import DeadLocals
from ferryvm.python.control_flow.kernel_graph import lowering_of
from ferryvm.python.control_flow.kernel_source import KernelFunction, Layout, Role
from ferryvm.python.control_flow.lower import Lowering
from ferryvm.python.definition.dependency import Dependencies
from ferryvm.python.definition.given_function import GivenFunction, given_parameters
from ferryvm.python.definition.site import Sites
from ferryvm.python.definition.source import FreeFunction, InnerFunction, Source
from ferryvm.python.fault import CalleeError, NotCompilableError, UnsupportedError
from ferryvm.python.hosted.hosted import is_hosted
from ferryvm.python.value import list_argument
from ferryvm.python.value.kind import INT, Either, Kind, List, either, has_list
from ferryvm.python.value.list_layout import declare
from ferryvm.python.value.result import result_types

_Function = types.FunctionType | InnerFunction | FreeFunction | GivenFunction | KernelFunction
_Key = tuple[_Function, tuple[Kind, ...], Kind | None, frozenset[type[BaseException]]]
"""A function, the kinds of its arguments, the kind that its results are converted to, and the
exceptions that clauses of its callers get."""

MOST_FUNCTIONS = 1000
"""Functions of a program, by kinds of arguments."""

MOST_KINDS, MOST_SLOTS = 16, 256
"""Kinds of the items of a list, and their words in all. Where a list of tuples gets tuples that are
made of its items, each further kind would make another one."""


class Unit:
    """The program of one function for certain kinds of arguments, exported as `function`."""

    def __init__(
        self,
        function: types.FunctionType,
        kinds: Sequence[Kind],
        target: Kind | None = None,
        free: tuple[str, ...] = (),
        layout: Layout | None = None,
    ) -> None:
        """`kinds`: of its arguments, then of the free names `free`, which are further ones;
        `target`: the kind to which all results are converted; `layout`: that of launches, if it is
        a kernel, for which the first arguments are the numbers of items, or of groups if there are
        some. Raises UnsupportedError."""
        self._function = function
        self._sources: dict[_Function, tuple[Source, Lowering]] = {}
        self._results: dict[_Key, list[Kind]] = {}
        entry: _Function
        if layout is None:
            entry = _for_given(function, tuple(kinds), free)
        else:
            given = given_parameters(function, tuple(kinds))
            entry = KernelFunction(function, layout, Role.LAUNCH, free, given)
            kinds = (*(INT for _ in range(layout.dimensions)), *kinds)
        self._key: _Key = entry, tuple(kinds), target, frozenset()
        # The kinds of results of recursive functions are found by repetition, from none on.
        self._lists: dict[List, None] = {}
        self._dead: dict[_Key, DeadLocals] = {}
        self._barriers: dict[_Key, BarrierVersions] = {}
        self._widened: dict[Kind, Either] = {}
        self._impossible: dict[_Key, UnsupportedError] = {}
        """Functions that cannot be compiled for the kinds of arguments of a call."""
        known, found, reads_kinds = -1, 0, False
        while known < found:
            known = found
            try:
                self._build()
            except MixedItemsError as mixed:
                if not self._widen(mixed):
                    raise self._refused(self._compiling, mixed) from None
                if any(
                    len(both.kinds) > MOST_KINDS or len(both.slots) > MOST_SLOTS
                    for both in self._widened.values()
                ):
                    message = (
                        f"items of a list have more than {MOST_KINDS} kinds, or {MOST_SLOTS} values "
                        "in all kinds; store items of one form, or use a list for each form"
                    )
                    refusal = NotCompilableError(mixed.node, message)
                    raise self._refused(self._compiling, refusal) from None
                known, found, reads_kinds = -1, 0, False
                continue
            except RecursionError:
                message = "an expression has too many parts; assign some of them to variables"
                raise UnsupportedError(message, None, function.__name__) from None
            except NotCompilableError as refusal:
                key = self._compiling
                if key not in self._callers or isinstance(key[0], KernelFunction):
                    raise self._refused(key, refusal) from None
                self._impossible[key] = self._refused(key, refusal)
                self._forget()
                known, found, reads_kinds = -1, 0, False
                continue
            found = sum(1 + len(kinds) for kinds in self._results.values())
            reads_kinds |= self._shared.reads_kinds  # the sum must not fall
            found += len(self._lists) * reads_kinds
            found += sum(each.count for each in self._barriers.values())
            found += self._add_values()
            found += sum(lowering.compared.dropped for _, lowering in self._sources.values())

    def _widen(self, mixed: MixedItemsError) -> bool:
        """Let lists of one kind of items have another kind, too, and begin again; False if they
        have."""
        before = dict(self._widened)
        both = either(mixed.item, mixed.other)
        changed = {mixed.item, mixed.other} if mixed.are_lists else {mixed.item}
        changed |= {kind for kind, to in before.items() if to in changed}
        self._widened |= dict.fromkeys(changed - {both}, both)
        function, kinds, *others = self._key
        self._key = (function, tuple(widened(kind, self._widened) for kind in kinds), *others)  # type: ignore[assignment]  # as before
        self._forget()
        return self._widened != before

    def _forget(self) -> None:
        """Forget what the present program was found to need."""
        for each in (self._results, self._lists, self._dead, self._barriers):
            each.clear()

    def _add_values(self) -> int:
        """Give the groups of a kernel arrays for values that were found to be combined; the number
        of these arrays."""
        entry, *others = self._key
        if isinstance(entry, KernelFunction):
            values = tuple(sorted({*entry.values, *self._shared.group_values}))
            self._key = (dataclasses.replace(entry, values=values), *others)  # type: ignore[assignment]  # as before
        return len(self._shared.group_values)

    def _build(self) -> None:
        self._shared = Shared()
        self._shared.list_kinds, self._shared.widened = self._lists, self._widened
        self.maps: dict[str, FunctionMap] = {}
        """The places of the statements of its functions, by the functions' names."""
        self._made: dict[_Key, Compiled] = {}
        self._waiting: list[tuple[_Key, Function]] = []
        self._callers: dict[_Key, tuple[_Key, ast.AST]] = {}
        """The first call of each function: the function that calls it, and where."""
        self._users: dict[_Key, tuple[_Key, ast.AST]] = {}
        """Likewise the first operation that needs a function."""
        entry = self._compiled(self._key)
        exported = entry.function
        self.made = 0
        """The word of the outermost frame with the lists among the arguments, if there are some."""
        if self.has_lists:
            assert self._shared.lists is not None
            struct, program = self._shared.lists, self._shared.program
            exported, made = list_argument.entry(program, struct, exported, self._key[1])
            self.made = made.word
        self._shared.program.export(exported, "function")
        while self._waiting:
            key, function = self._waiting.pop()
            source, lowering = self._source(key[0])
            self._compiling = key
            found = self._results[key]
            dead = self._dead.setdefault(key, DeadLocals())
            barriers = self._barriers.setdefault(key, BarrierVersions())
            versions = Versions(
                self._shared,
                source,
                lowering,
                self,
                function,
                key[1],
                found,
                *key[2:],
                dead,
                barriers,
            )
            self.maps[function.name] = versions.map

    def _refused(self, key: _Key, refusal: NotCompilableError) -> UnsupportedError:
        """The error for a refusal, at the call of a built-in function if it is in its code."""
        if isinstance(refusal, CalleeError):
            return refusal.refusal
        node, users = refusal.node, self._users | self._callers
        while key in users and is_hosted(self._source(key[0])[0].function):
            key, node = users[key]
        return self._source(key[0])[0].unsupported(NotCompilableError(node, refusal.message))

    def _source(self, function: _Function) -> tuple[Source, Lowering]:
        if function not in self._sources:
            is_plain = isinstance(function, types.FunctionType)
            source = Source(function) if is_plain else function.source  # type: ignore[arg-type, union-attr]  # by its type
            try:
                self._sources[function] = source, lowering_of(source)
            except NotCompilableError as refusal:
                raise source.unsupported(refusal) from None
        return self._sources[function]

    def check(
        self,
        function: _Function,
        kinds: tuple[Kind, ...],
        caught: frozenset[type[BaseException]],
        node: ast.AST,
    ) -> None:
        """Raise CalleeError for a function that cannot be compiled for these kinds of arguments."""
        if self._impossible:
            refusal = self._impossible.get((self._for_call(function, kinds), kinds, None, caught))
            if refusal is not None:
                raise CalleeError(node, refusal)

    def _for_call(self, function: _Function, kinds: tuple[Kind, ...]) -> _Function:
        """The function to compile for a call."""
        if isinstance(function, types.FunctionType):
            return _for_given(function, kinds)
        if isinstance(function, KernelFunction) and function.role is Role.HELPER:
            given = given_parameters(function.function, kinds)
            return dataclasses.replace(function, given=given)
        return function

    def compiled(
        self,
        function: _Function,
        kinds: tuple[Kind, ...],
        caught: frozenset[type[BaseException]],
        target: Kind | None = None,
        node: ast.AST | None = None,
        for_: ast.AST | None = None,
    ) -> Compiled:
        """The compiled function, with the kinds of results that are known so far; for calls of
        which clauses get these exceptions. `target`: the kind to which the results are converted.
        `node`, `for_`: see `Functions.compiled`."""
        key = self._for_call(function, kinds), kinds, target, caught
        if node is not None:
            self._callers.setdefault(key, (self._compiling, node))
        elif for_ is not None:
            self._users.setdefault(key, (self._compiling, for_))
        return self._compiled(key)

    def _compiled(self, key: _Key) -> Compiled:
        function, kinds, target, _ = key
        found = self._made.get(key)
        if found is None:
            source, lowering = self._source(function)
            uses_lists = lowering.uses_lists or any(map(has_list, kinds))
            if uses_lists and not self._shared.lists:
                self._shared.lists = declare(self._shared.program)
            if len(self._made) == MOST_FUNCTIONS:
                message = f"{MOST_FUNCTIONS} functions are called, by kinds of arguments"
                raise UnsupportedError(message, None, source.name)
            known = list(self._results.setdefault(key, [] if target is None else [target]))
            names: dict[str, object] = {}
            for name, kind in zip(source.parameters, kinds, strict=True):
                for number, slot in enumerate(kind.slots):
                    names[f"{name}.{number}" if number else name] = slot
            title = source.name
            while title in self._titles():
                title += "'"
            made = self._shared.program.function(title, names, result_types(known) if known else ())  # type: ignore[arg-type]  # types by name
            found = self._made[key] = Compiled(made, known)
            self._waiting.append((key, made))
        return found

    def _titles(self) -> set[str]:
        return {compiled.function.name for compiled in self._made.values()}

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of its arguments, in which lists may have further kinds of items."""
        return self._key[1]

    @property
    def has_lists(self) -> bool:
        """True if there are lists among the arguments."""
        return any(map(has_list, self._key[1]))

    @property
    def changed(self) -> Container[int]:
        """The numbers of kinds of items that change in lists."""
        return self._shared.changed

    @property
    def program(self) -> Program:
        """The program. The peephole would change where statements are; compilers need none."""
        return self._shared.program.build()

    @property
    def sites(self) -> Sites:
        """The places at which it raises exceptions."""
        return self._shared.sites

    @property
    def results(self) -> list[Kind]:
        """The kinds of results of the function."""
        return self._results[self._key]

    @property
    def arrays(self) -> list[tuple[Any, str]]:
        """Arrays that free names refer to, and the names of the statics that hold them."""
        return [(array, static.name) for array, static in self._shared.arrays]

    @property
    def hosts(self) -> list[HostFunction]:
        """The host functions that it calls."""
        return self._shared.hosts

    @property
    def has_effects(self) -> bool:
        """True if it may change arrays."""
        return self._shared.has_effects

    @property
    def line(self) -> int:
        """The line of the function's definition."""
        source, _ = self._source(self._key[0])
        return source.position(source.node).line

    @property
    def dependencies(self) -> Dependencies:
        """The values outside of it that it was made for."""
        found = Dependencies(self._function)
        for source, lowering in self._sources.values():
            if not is_hosted(source.function):
                found.add(source, lowering.captured, lowering.expressions.attributes)
        return found


def _for_given(
    function: types.FunctionType, kinds: tuple[Kind, ...], free: tuple[str, ...] = ()
) -> _Function:
    """The function to compile for kinds of arguments, and free names that are further ones."""
    given = () if is_hosted(function) else given_parameters(function, kinds)
    if given:
        return GivenFunction(function, free, given)
    return FreeFunction(function, free) if free else function
