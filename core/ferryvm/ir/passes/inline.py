# SPDX-License-Identifier: Apache-2.0
"""Inlining: the functions of launches' items, and what they call, become part of the launch's loop.

    before:  call 1 9 %next, %a …          after:  jump inlined.entry()
                                           inlined.entry …: the callee's blocks, its returns jump to
                                           after.b1(%result …): the rest of the block

So the loop over items is a loop like any other: passes hoist, version, unroll and pipeline it.

*States.* An exit of inlined code leaves several frames at once: those of the body, and above it
those of the calls that were inlined, in one list of words. They are the words of the call's state
up to the callee's frame; the callee's parameters; the callee's header, which the call's state has
as constants (return pc, distance); then the callee's locals and operands. `FrameState.header` is
the word where the header of the innermost frame is, its pc that of the innermost function. Statics
and the heap pointer are those of all frames: a static that a caller has not stored is one that the
callee does not see. A lowering needs `Body.header_of`, and nothing else: exits never go through a
caller any more. To recover the outer frames, walk the headers: the caller's pc is the return pc
minus one, its header is `distance` words below.

A call is inlined if its callee does not call itself, returns, is not too large, and if nothing
catches its exceptions: then a `throw` of the callee leaves. Calls in the callee are inlined first,
in place. (Muchnick: Advanced Compiler Design and Implementation, 1997, section 15.2.)

Requires bodies as lifted: it runs before all other passes. Preserves effects and exits. Leaves
jumps to `jump_threading`, and constants to `value_numbering`; functions without calls are removed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from ferryvm.ir.graph import (
    Block,
    Body,
    Edge,
    FrameState,
    Module,
    Operation,
    Parameter,
    Static,
    Terminator,
    Value,
)
from ferryvm.ir.loop.preheader import Labels
from ferryvm.ir.use import callees, substitute
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import I64, WORD_BYTES
from ferryvm.program import Program
from ferryvm.region.launch import CALL_DISTANCE, item_call

LARGEST = 1500
"""The largest number of operations of a callee, with what is inlined in it."""

_WORD_AT = {"call": 1, "call_indirect": 1, "result": 0, "throw": 1}
"""Operations with a word of the frame among their attributes, and which one that is."""


def inline_items(module: Module, program: Program, largest: int = LARGEST) -> int:
    """Inline the calls of items in the loops of launches, and the calls in what they call; the
    number of inlined calls of items. `largest`: operations of a callee that is inlined."""
    inliner = _Inliner(module, largest)
    for body in module.bodies:
        inliner.inline(body, lambda call: _is_item(call, program))
    if inliner.items:
        remove_uncalled(module)
    return inliner.items


def inline_all(module: Module, body: Body, largest: int = LARGEST) -> None:
    """Inline the calls of a body, and the calls in what it calls."""
    _Inliner(module, largest).inline(body, lambda _call: True)


def _is_item(call: Operation, program: Program) -> bool:
    pc = call.exit.pc
    return pc >= CALL_DISTANCE and item_call(program, pc - CALL_DISTANCE) == pc


class _Inliner:
    """Inlines calls of one module."""

    def __init__(self, module: Module, largest: int) -> None:
        self.module, self.largest = module, largest
        self.items = 0
        self._done: set[Body] = set()
        """Callees whose own calls have been inlined."""

    def inline(
        self, body: Body, is_wanted: Callable[[Operation], bool], most: int | None = None
    ) -> None:
        """Inline the wanted calls of a body, which has at most so many operations then."""
        for block in [*body.blocks]:
            here = block
            while (found := self._next(here, is_wanted)) is not None:
                place, callee = found
                if callee not in self._done:
                    self._done.add(callee)
                    self.inline(callee, lambda _call: True, self.largest)
                size = _size(callee)
                if size > self.largest or (most is not None and _size(body) + size > most):
                    break
                here = _Inlining(body, here, place, callee).run()
                self.items += 1

    def _next(
        self, block: Block, is_wanted: Callable[[Operation], bool]
    ) -> tuple[int, Body] | None:
        """The first call of a block to inline, by its index, and its callee."""
        for place, operation in enumerate(block.operations):
            if operation.name != "call" or not is_wanted(operation):
                continue
            callee = self.module.functions[operation.fact(0, int)]
            behind = block.operations[place + 1 : place + 2]
            is_caught = bool(behind) and behind[0].name == "caught"
            if not is_caught and not callee.recurs and _returns(callee):
                return place, callee
        return None


def _size(body: Body) -> int:
    return sum(len(block.operations) for block in body.blocks)


def _returns(body: Body) -> bool:
    return any(block.end.name == "return" for block in body.blocks)


class _Inlining:
    """The replacement of one call by its callee's blocks."""

    def __init__(self, body: Body, block: Block, place: int, callee: Body) -> None:
        self.body, self.block, self.place, self.callee = body, block, place, callee
        self.call = block.operations[place]
        self.base = self.call.fact(1, int)
        """The first word of the callee's frame."""
        self.values: dict[Value, Value] = {
            constant: body.constant(constant.type, constant.bits)
            for constant in callee.constants.values()
        }
        """Values of the body for those of the callee."""
        self.blocks: dict[Block, Block] = {}
        self.states: dict[FrameState, FrameState] = {}

    def run(self) -> Block:
        """Insert them; the block of the operations after the call."""
        body, block, callee = self.body, self.block, self.callee
        labels = Labels(body)
        for old in callee.blocks:
            new = self.blocks[old] = labels.block(old, "inlined")
            if old is not callee.blocks[0]:
                new.parameters = [Parameter(each.type) for each in old.parameters]
                self.values.update(zip(old.parameters, new.parameters, strict=True))
        entry = callee.blocks[0]
        self.values.update(zip(entry.parameters, self.call.arguments, strict=True))
        after = labels.block(block, "after")
        for old in callee.blocks:
            for operation in old.operations:
                self._operation(operation, self.blocks[old])
            self.blocks[old].terminator = self._end(old.end, after)
        self._continue(after)
        block.operations = block.operations[: self.place]
        block.terminator = _jump(self.blocks[entry], [], self.call.pc)
        at = body.blocks.index(block) + 1
        body.blocks[at:at] = [*self.blocks.values(), after]
        return after

    def _operation(self, old: Operation, block: Block) -> None:
        """Append the operation of the body for one of the callee, if there is one."""
        if old.name == "check_entry":  # the loops around it poll, and so do those in it
            return
        new = Operation(old.name, old.type, self._static(old), self._all(old.arguments))
        new.state, new.pc = self._state(old.state), old.pc
        block.operations.append(new)
        if old.name == "frame":
            offset = self.body.constant(I64, WORD_BYTES * self.base)
            new = Operation("add", I64, (I64,), (new, offset))
            new.pc = old.pc
            block.operations.append(new)
        self.values[old] = new

    def _static(self, old: Operation) -> tuple[Static, ...]:
        """The attributes of an operation; words of the callee's frame are counted from the
        body's."""
        at = _WORD_AT.get(old.name)
        if at is None:
            return old.static
        return (*old.static[:at], old.fact(at, int) + self.base, *old.static[at + 1 :])

    def _end(self, old: Terminator, after: Block) -> Terminator:
        if old.name == "return":
            return _jump(after, [*self._all(old.arguments)], old.pc)
        # Nothing in the body catches it.
        is_leaving = old.name == "throw" and self.body.is_root
        name, static = ("leave", ()) if is_leaving else (old.name, self._static(old))
        edges = tuple(
            Edge(self.blocks[edge.block], [*self._all(edge.arguments)], edge.is_back)
            for edge in old.edges
        )
        new = Terminator(name, static, self._all(old.arguments), self._state(old.state), edges)
        new.pc = old.pc
        return new

    def _continue(self, after: Block) -> None:
        """Give the block after the call its operations; its parameters are the results."""
        after.parameters = [Parameter(t) for t in self.callee.results]
        results: dict[int, Value] = dict(enumerate(after.parameters))
        new: dict[Value, Value] = {self.call: results[0]} if results else {}
        first = self.base + self.callee.place_of(1)
        for operation in self.block.operations[self.place + 1 :]:
            if operation.name == "result" and len(new) < len(results):
                new[operation] = results[operation.fact(0, int) - first + 1]
            else:
                after.operations.append(operation)
        after.terminator = self.block.end
        if new:
            substitute((after, *self.body.blocks), new)

    def _all(self, values: Iterable[Value]) -> tuple[Value, ...]:
        return tuple([self.values[value] for value in values])

    def _state(self, old: FrameState | None) -> FrameState | None:
        """The state of an exit of the callee, with the frame of the body below it."""
        if old is None:
            return None
        if old not in self.states:
            outer, inner, parameters = (
                self.call.exit,
                old.replace(self.values),
                self.callee.parameters,
            )
            words = (
                *outer.words[: self.base],
                *inner.words[:parameters],
                *outer.words[-HEADER_WORDS:],
                *inner.words[parameters + HEADER_WORDS :],
            )
            pointer = inner.heap_pointer
            self.states[old] = dataclasses.replace(
                inner,
                words=words,
                statics=tuple(sorted({**dict(outer.statics), **dict(inner.statics)}.items())),
                heap_pointer=outer.heap_pointer if pointer is None else pointer,
                header=self.base + self.callee.header_of(old),
            )
        return self.states[old]


def _jump(target: Block, arguments: list[Value], pc: int) -> Terminator:
    made = Terminator("jump", edges=(Edge(target, arguments),))
    made.pc = pc
    return made


def remove_uncalled(module: Module, function: int | None = None) -> None:
    """Remove functions that the root does not call any more; or all that `function` does not call,
    but itself."""
    reached: set[int] = set() if function is None else {function}
    worklist = [module.root if function is None else module.functions[function]]
    while worklist:
        for operation in worklist.pop().operations:
            for number in callees(operation):
                if number not in reached:
                    reached.add(number)
                    worklist.append(module.functions[number])
    module.functions = {n: body for n, body in module.functions.items() if n in reached}
