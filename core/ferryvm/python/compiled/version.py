# SPDX-License-Identifier: Apache-2.0
"""Code of a function for each combination of kinds that its variables have.

A block is compiled once for each combination with which control arrives: a variable that holds an
int at first and a float later has a version of the loop for each, and no value carries its kind at
run time (basic block versioning: Chevalier-Boisvert and Feeley, ECOOP 2015, section 3).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Sequence

from ferryvm.build import Function, Label
from ferryvm.isa.type import I64
from ferryvm.python.codegen import (
    array_store,
    atomic_code,
    function_value,
    kernel_code,
    list_code,
    method_code,
    raising,
    statement_check,
    text_code,
    unpacking,
)
from ferryvm.python.codegen.body import Body
from ferryvm.python.codegen.code import Functions, Shared
from ferryvm.python.codegen.iteration import advance, begin
from ferryvm.python.codegen.mixed_item import MixedItemsError
from ferryvm.python.codegen.statement_check import Refusals
from ferryvm.python.compiled.barrier_version import BarrierVersions
from ferryvm.python.compiled.either_version import ItemVersions
from ferryvm.python.compiled.pause import FunctionMap, Point
from ferryvm.python.compiled.shared_barrier import SharedBarrier
from ferryvm.python.control_flow.dead_local import DeadLocals, Environment, environment
from ferryvm.python.control_flow.graph import (
    Assign,
    Atomic,
    Barrier,
    Block,
    Branch,
    Call,
    CallValue,
    Delete,
    DeleteItem,
    Evaluate,
    GroupOperation,
    Host,
    Iterate,
    Jump,
    Launch,
    Method,
    Next,
    Raise,
    RaiseAgain,
    Return,
    Statement,
    Store,
    Terminator,
    Unpack,
    live_after,
    reads,
)
from ferryvm.python.control_flow.graph_builder import name_of
from ferryvm.python.control_flow.lower import Lowering
from ferryvm.python.definition.source import InnerFunction, Source
from ferryvm.python.fault import (
    EitherItemError,
    LargeIntegerError,
    NotCompilableError,
    UnknownItemsError,
)
from ferryvm.python.hosted.builtin import contains
from ferryvm.python.value.kind import (
    BOOL,
    Constant,
    Kind,
    List,
    Raised,
    less_known,
    united,
)
from ferryvm.python.value.result import is_returned

MOST_VERSIONS = 64
"""Versions of one block."""


class Versions:
    """The code of one function."""

    def __init__(
        self,
        shared: Shared,
        source: Source,
        lowering: Lowering,
        functions: Functions,
        function: Function,
        kinds: Sequence[Kind],
        results: list[Kind],
        target: Kind | None,
        caught: frozenset[type[BaseException]],
        dead: DeadLocals,
        barriers: BarrierVersions,
    ) -> None:
        """`results`: the kinds of results that are known so far; others are appended, and the code
        is not complete then. `target`: the kind to which results are converted, if they are.
        `caught`: the exceptions that clauses of its callers get."""
        self._body, self._shared = Body(shared, source, function, functions), shared
        self._points: list[Point] = []
        self._body.counters, self._body.compared = lowering.counters, lowering.compared
        self._source, self._functions, self._results = source, functions, results
        self._known, self._converted = len(results), target
        self._caught_outside = caught
        self._labels: dict[tuple[int, int, Environment], Label] = {}
        self._waiting: list[tuple[Block, int, Environment]] = []
        self._counts: dict[tuple[int, int], int] = {}
        self._refusals = Refusals()
        self._dead = dead
        dead.begin(function, lowering.blocks)
        self._barriers, self._shared_barriers = barriers, dict[int, SharedBarrier]()
        barriers.begin(lowering.divergent)
        self._items = ItemVersions(self._body, barriers, self._go)
        parameters = iter(function.parameters)
        for name, kind in zip(source.parameters, kinds, strict=True):
            self._body.declare(name, kind, [next(parameters) for _ in kind.slots])
        arguments = dict(zip(source.parameters, kinds, strict=True))
        first = lowering.blocks[0]
        self._go(source.node, first, 0, arguments)
        while self._waiting:
            self._compile(*self._waiting.pop())
        for each in self._shared_barriers.values():
            self._points.append(each.emit(self._body, dead))
        self._refusals.finish()
        barriers.finish()
        dead.finish(self._body.every_local())

    # --- versions ---------------------------------------------------------------------------

    def _go(
        self,
        node: ast.AST,
        block: Block,
        index: int,
        kinds: dict[str, Kind],
        items: Container[str] = (),
    ) -> None:
        """Go on at a statement of a block with variables of these kinds. `items`: more that it
        reads."""
        live: Container[str] = block.live if index == 0 else live_after(block, index)
        if items:
            live = {name for name in kinds if name in live or name in items}
        self._body.f.jump(self._label(node, block, index, environment(kinds, live)))

    def _label(self, node: ast.AST, block: Block, index: int, env: Environment) -> Label:
        key = block.number, index, env
        label = self._labels.get(key)
        if label is None:
            place = block.number, index
            self._counts[place] = self._counts.get(place, 0) + 1
            if self._counts[place] > MOST_VERSIONS:
                names = ", ".join(name for name, _ in env if not name.startswith("%"))
                names = names or "values in this statement"
                message = f"the kinds of {names} change too often; give each variable one type"
                raise NotCompilableError(node, message)
            label = self._labels[key] = self._body.f.label()
            self._waiting.append((block, index, env))
        self._dead.leads_to(key)
        self._barriers.leads_to(key)
        return label

    def _compile(self, block: Block, index: int, env: Environment) -> None:
        body = self._body
        key = block.number, index, env
        label = self._labels[key]
        body.f.place(label)
        body.env = dict(env)
        assert label.pc is not None
        cleared = self._dead.at(label.pc, key, block, env)
        self._barriers.at(key)
        if cleared:
            self._point(block, index)
            for each in cleared:
                body.clear(each)
        for number in range(index, len(block.statements)):
            statement = block.statements[number]
            self._point(block, number)
            if number == index and self._has_merged(statement.node, block, index, env):
                return
            if self._is_left(statement, block, number):
                return
            if kernel_code.is_waiting(statement) and self._is_elsewhere(block, number, index, key):
                return
            body.at(statement.node)
            is_call = isinstance(statement, Call | CallValue)
            if self._caught(block, statement.node, lambda: self._statement(block, number), is_call):  # noqa: B023  # called at once
                return
            if self._items.are_split(statement.node, block, number + 1):
                return
        self._end(block)

    def _is_elsewhere(
        self, block: Block, number: int, index: int, key: tuple[int, int, Environment]
    ) -> bool:
        """True if a barrier begins a version of its own, or is one instruction with others.
        `index`, `key`: of the present version."""
        statement, body = block.statements[number], self._body
        if number > index:
            self._go(statement.node, block, number, body.env)
            return True
        of = self._barriers.class_of(key)
        if of is None:
            return False
        if of not in self._shared_barriers:
            self._shared_barriers[of] = SharedBarrier(statement, block, number, of)
        self._shared_barriers[of].prepare(body)
        behind = environment(body.env, live_after(block, number + 1))
        label = self._label(statement.node, block, number + 1, behind)
        version = block.number, number + 1, behind
        self._shared_barriers[of].come(body, label, version, self._dead)
        return True

    def _has_merged(self, node: ast.AST, block: Block, index: int, env: Environment) -> bool:
        """Go on in another version, where lists have items of known kinds that are not known here;
        False if there is none. Otherwise each such list would double the code of what follows."""
        for (number, place, other), label in self._labels.items():
            if (number, place) == (block.number, index) and other != env and len(other) == len(env):
                pairs = [*zip(env, other, strict=True)]
                if all(mine == its or _is_less_known(mine, its) for mine, its in pairs):
                    for (name, kind), (_, known) in pairs:
                        if kind != known:
                            self._body.get(name, kind)
                            list_code.adapt(self._body, node, kind, known)
                            self._body.set(name, known)
                    self._dead.leads_to((number, place, other))
                    self._barriers.leads_to((number, place, other))
                    self._body.f.jump(label)
                    return True
        return False

    def _caught(
        self, block: Block, node: ast.AST, emit: Callable[[], bool], is_call: bool = False
    ) -> bool:
        """Add code whose exceptions go to the handler of a block, if it has one; its result."""
        handler, body, caught = block.handler, self._body, self._caught_in(block)
        if block.handled is not None or handler is None or not handler.taken[0]:
            return body.emitted(emit, caught)
        before = dict(body.env)
        with body.f.try_() as attempt:
            has_ended = body.emitted(emit, caught)
            attempt.catch(body.error)
            raising.set_caught(body, node, handler, is_call)
            self._go(node, handler.block, 0, {**before, handler.name: Raised()})
        return has_ended

    def _statement(self, block: Block, number: int) -> bool:
        """Add the code of a statement; True if the block goes on elsewhere."""
        body, statement = self._body, block.statements[number]
        match statement:
            case Assign():
                self._assign(statement)
            case Evaluate():
                for _ in body.push(statement.value).slots:
                    body.f.drop()
            case Unpack():
                unpacking.unpack(body, statement)
            case Store():
                array_store.store(body, statement)
            case Method():
                method_code.call(body, statement)
            case DeleteItem():
                method_code.delete(body, statement)
            case Delete():
                del body.env[statement.name]
            case Host():
                body.call_host(sorted(reads(statement)), statement.statement)
            case Iterate():
                body.set(statement.name, begin(body, statement.value))
            case Call():
                return self._call(statement, block, number)
            case CallValue():
                called = function_value.resolved(body, statement)
                if isinstance(called, Call):
                    return self._call(called, block, number)
                self._assign(called)
            case Atomic():
                atomic_code.update(body, statement)
            case Barrier() | GroupOperation() | Launch():
                kernel_code.emit(body, statement, self._functions)
        return False

    def _assign(self, statement: Assign) -> None:
        body = self._body
        body.compared.check_value(body.kind, statement.value)
        body.set(statement.name, body.push(statement.value))

    def _end(self, block: Block) -> None:
        body, end = self._body, block.end
        assert end is not None
        self._point(block, len(block.statements))
        self._barriers.ends(block.number)
        if self._is_left(end, block, len(block.statements)):
            return
        body.at(end.node)
        if isinstance(end, Jump):
            self._go(end.node, end.to, 0, body.env)
        else:
            self._caught(block, end.node, lambda: self._leave(end))

    def _leave(self, end: Terminator) -> bool:
        body = self._body
        match end:
            case Jump():
                self._go(end.node, end.to, 0, body.env)
            case Branch():
                known = body.known_condition(end.condition)
                if known is not None:
                    self._go(end.node, end.yes if known else end.no, 0, body.env)
                    return True
                body.compared.check(body.kind, end.condition)
                body.push_condition(end.condition)
                body.f.jump_if(self._target(end.node, end.yes))
                self._go(end.node, end.no, 0, body.env)
            case Next():
                self._next(end)
            case Return():
                self._return(end)
            case Raise():
                raising.raise_(body, end)
            case RaiseAgain():
                raising.raise_again(body, end)
        return True

    def _point(self, block: Block, index: int) -> None:
        """State that the code of a statement, or of the end of a block, begins here."""
        here = self._body.f.label()
        self._body.f.place(here)
        assert here.pc is not None
        self._points.append(Point(here.pc, block, index, dict(self._body.env)))

    @property
    def map(self) -> FunctionMap:
        """The places of its statements."""
        return FunctionMap(self._source, self._points, self._body.all_locals)

    def _is_left(self, step: Statement | Terminator, block: Block, number: int) -> bool:
        """True if a statement cannot be executed with the kinds of its variables: one has no value,
        which raises an exception, or the items of a list are not known, which CPython sorts out."""
        if isinstance(step, Call) and isinstance(step.function, InnerFunction):
            function_value.check_captured(self._body, step.node, step.function)
        if statement_check.is_unassigned(self._body, self._source, step):
            return True
        try:
            if isinstance(step, CallValue):
                step = function_value.resolved(self._body, step)
            statement_check.check(self._body, step)
            if isinstance(step, Call):
                self._check_callee(step, block)
            if isinstance(step, Iterate):
                for name in sorted(reads(step)):
                    self._look_up_kind(name_of(name, step.node), block, number)
        except EitherItemError as error:
            item, place = error.item, step.node
            self._caught(block, place, lambda: self._items.split(place, item, block, number))
            return True
        except UnknownItemsError as error:
            self._look_up_kind(error.node, block, number)
            message = "items of a list that may be any here"
            self._body.throw(error.node, IndexError, message, is_limit=True)
            return True
        except LargeIntegerError as error:
            self._body.throw(error.node, OverflowError, error.message, is_limit=True)
            return True
        except NotCompilableError as error:
            if isinstance(error, MixedItemsError):
                raise
            self._refusals.refuse((block.number, number), error)
            self._body.throw(error.node, TypeError, error.message, is_limit=True)
            return True
        self._refusals.possible.add((block.number, number))
        return False

    def _look_up_kind(self, node: ast.AST, block: Block, number: int) -> None:
        """Go on at a statement with the kind that the list in a variable has by now."""
        body, f = self._body, self._body.f
        kind = body.env.get(node.id) if isinstance(node, ast.Name) else None
        if not isinstance(node, ast.Name) or kind != List(None):
            return
        self._shared.reads_kinds = True
        self._barriers.splits()
        (of,) = body.locals(node.id, kind)
        for known in [*self._shared.list_kinds]:
            if known != kind and united(kind, known) == known:
                f.local_get(of)
                f.struct_get(body.list_struct["kind"])
                f.i64_const(known.number)
                f.i64_eq()
                with f.if_():
                    f.local_get(of)
                    f.local_set(body.locals(node.id, known)[0])
                    self._go(node, block, number, {**body.env, node.id: known})

    def _target(self, node: ast.AST, block: Block) -> Label:
        return self._label(node, block, 0, environment(self._body.env, block.live))

    # --- statements -------------------------------------------------------------------------

    def _check_callee(self, step: Call, block: Block) -> None:
        """Raise CalleeError for a function that cannot be compiled for arguments of a call."""
        kinds = function_value.argument_kinds(self._body, step)
        self._functions.check(step.function, kinds, self._caught_in(block), step.node)

    def _caught_in(self, block: Block) -> frozenset[type[BaseException]]:
        """The exceptions that clauses get from code of a block."""
        if block.handled is not None:  # the exception would refer to the one that is being handled
            return frozenset()
        if block.handler is None:
            return self._caught_outside
        taken, passing = block.handler.taken
        return taken | (self._caught_outside & passing)

    def _call(self, statement: Call, block: Block, number: int) -> bool:
        """Call a compiled function; True if its results have several kinds, or it never returns, so
        that the block goes on elsewhere."""
        body = self._body
        if statement.function is contains:
            wanted, values = statement.arguments
            if text_code.contains(body, statement.node, wanted, values):
                body.set(statement.name, BOOL)
                return False
        kinds, caught = function_value.argument_kinds(body, statement), body.caught
        found = self._functions.compiled(statement.function, kinds, caught, None, statement.node)
        for argument in statement.arguments:
            function_value.push_argument(body, argument)
        body.at(statement.node)
        body.f.call(found.function)
        if not found.results:
            body.f.trap()
            return True
        if len(found.results) == 1:
            body.set(statement.name, found.results[0])
            return False
        for kind in reversed(found.results):
            for local in reversed(body.locals(statement.name, kind)):
                body.f.local_set(local)
        self._barriers.splits()
        which = body.spare(I64)
        body.f.local_set(which)
        for place, kind in enumerate(found.results):
            with body.f.block() as other:
                if place < len(found.results) - 1:
                    body.f.local_get(which)
                    body.f.i64_const(place)
                    body.f.i64_ne()
                    body.f.br_if(other)
                self._go(statement.node, block, number + 1, {**body.env, statement.name: kind})
        return True

    def _next(self, end: Next) -> None:
        body = self._body
        before = dict(body.env)

        def over() -> None:
            body.env = dict(before)
            self._go(end.node, end.end, 0, body.env)

        item, after = advance(body, end.node, end.iterator, before[end.iterator], over)
        if item is None:
            return
        body.set(end.name, item)
        body.env[end.iterator] = after
        if self._items.are_split(end.node, end.body, 0):
            return
        self._go(end.node, end.body, 0, body.env)

    def _return(self, end: Return) -> None:
        body, f = self._body, self._body.f
        kind = body.kind(end.value)
        if isinstance(kind, Constant) and not is_returned(kind):
            raise NotCompilableError(end.node, f"cannot return {kind}")
        if self._converted is not None:
            body.push_converted(end.value, self._converted)
            f.return_()
            return
        if kind not in self._results:
            self._results.append(kind)
        number = self._results.index(kind)
        if number >= self._known:
            f.trap()
            return
        if self._known == 1:
            body.push(end.value)
        else:
            f.i64_const(number)
            for other in self._results[: self._known]:
                if other == kind:
                    body.push(end.value)
                    continue
                body.zeros(other)
        f.return_()


def _is_less_known(mine: tuple[str, Kind], its: tuple[str, Kind]) -> bool:
    """True if a variable has a value here of which more is known there."""
    return mine[0] == its[0] and mine[1] in less_known(its[1])
