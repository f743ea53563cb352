# SPDX-License-Identifier: Apache-2.0
"""Words of a frame that a body stores before control leaves, so that its exits are short.

An exit writes every word of its frame that is not in memory. In a body with as many exits as locals
that is quadratic, in text and in the live values of LLVM. So in a body with large states the
analysis tracks the words in memory, as SSA values by position; if more than `MOST_WORDS` words of a
state are not there, all of them are stored once, on the path, and states have only the words that
are still missing.

    exit [a b c d e …]                store a b c d e …
    f = …                      ─>     exit [- - - - - …]
    exit [a b c d e f …]              f = …
                                      exit [- - - - - f …]

The alternative, a copy of all words in one shared block, needs a phi for each word and exit. The
stores are amortised: a stored word is missing only after it has changed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

from ferryvm.ir.graph import Block, Body, Constant, Edge, FrameState, Operation, Value, Virtual
from ferryvm.ir.loop.natural import find_loops
from ferryvm.isa.type import to_float
from ferryvm_backends.llvm.strip_mining import strip_mined_loops

MANY_WORDS = 3_000
"""Words of all states of a body above which some of them are stored early: below, the cost in hot
code exceeds the savings of shorter bodies."""

MANY_IN_GROUPS = 6_000
"""As `MANY_WORDS`, of a body with parallel regions: words that most exits have in common are stored
there anyhow (`group_store`), and exits share their writers, so early stores make code longer."""

MOST_WORDS = 16
"""Words that an exit writes, at most: runs of zeros count as one."""

_RUN = 4
"""Words of zeros, at least, that are written as one."""

FEW_EXITS = 4
"""Exits of a loop, outside of loops in it, for which nothing is stored in each iteration."""

_ATTEMPTS = 8
"""Times that loops are followed before their heads expect nothing of memory."""

Memory = dict[int, Value]
"""Words of the frame that memory has, by place."""


@dataclasses.dataclass
class EarlyStores:
    """The early stores of a body, and the stores that remain for its exits."""

    stores: dict[Operation, FrameState]
    """The stores before an operation: the words of this state."""
    states: dict[Operation, FrameState]
    """The states that exits leave in, without the words that memory has there."""


def state_words(body: Body) -> int:
    """Words that the states of a body name."""
    states = (o.state for block in body.blocks for o in (*block.operations, block.end))
    return sum(sum(word is not None for word in s.words) for s in states if s is not None)


def store_early(body: Body) -> EarlyStores | None:
    """The early stores of a body; None if its exits are short anyhow."""
    return _Stores(body).run() if state_words(body) > MANY_WORDS else None


def runs(words: Sequence[Value | None]) -> Iterator[tuple[int, int]]:
    """Place and length of each part of a frame that is written as one: a word, or a run of zeros.

    Lengths above 1 are of zeros.
    """
    place = 0
    while place < len(words):
        end = place
        while end < len(words) and _is_zero(words[end]):
            end += 1
        if end - place >= _RUN:
            yield place, end - place
            place = end
            continue
        for each in range(place, max(end, place + 1)):
            if words[each] is not None:
                yield each, 1
        place = max(end, place + 1)


def _is_zero(value: Value | None) -> bool:
    return isinstance(value, Constant) and not value.bits


def _same_key(value: Value) -> object:
    """Key that is equal for non-virtual values that are the same word of memory."""
    return value.bits if isinstance(value, Constant) else value


def _is_same(a: Value | None, b: Value | None) -> bool:
    """True if two values are the same word of memory."""
    if a is b:
        return True
    if a is None or b is None or isinstance(a, Virtual) != isinstance(b, Virtual):
        return False
    return _same_key(_raw(a)) == _same_key(_raw(b))


def _joined(parameter: Value, values: Sequence[Value | None]) -> Value | None:
    """The content of memory behind a join where it had these values, which the parameter is
    passed."""
    virtual = [isinstance(value, Virtual) for value in values]
    if not any(virtual):
        return parameter
    others = [value for value in values if not isinstance(value, Virtual)]
    # No constant but a NaN is another word when made canonical.
    if all(isinstance(v, Constant) and not _is_nan(v) for v in others):
        return Virtual(parameter)
    return None


def _is_nan(value: Constant) -> bool:
    return value.word_type.is_float and math.isnan(to_float(value.word_type, value.bits))


class _Stores:
    def __init__(self, body: Body) -> None:
        self.body = body
        self.incoming: dict[Block, list[tuple[Block, Edge]]] = {b: [] for b in body.blocks}
        for block in body.blocks:
            for edge in block.end.edges:
                self.incoming[edge.block].append((block, edge))
        self.excepted = _strip_blocks(body) | _blocks_with_few_exits(body)
        """Blocks in which nothing is stored early."""
        self.has_given_up = False
        """True if heads of loops expect nothing any more."""
        self.lost: dict[Block, set[int]] = {}
        """Words that a back edge does not have in memory as the loop head expects."""

    def run(self) -> EarlyStores:
        """The stores, after loop heads expect no more than their back edges provide."""
        for _ in range(_ATTEMPTS):
            if self._attempt():
                return self.early
        self.has_given_up = True
        self._attempt()
        return self.early

    def _attempt(self) -> bool:
        """Follow memory through all blocks; False if a head of a loop expected too much of it."""
        self.early = EarlyStores({}, {})
        self.after: dict[Block, Memory] = {}
        self.expected: dict[Block, Memory] = {}
        for block in self.body.blocks:
            memory = self.memory = self._at_start(block)
            for operation in block.operations:
                self._operation(block, operation)
            self._end(block)
            self.after[block] = memory
        return sum(self._note_lost(block) for block in self.expected) == 0

    def _note_lost(self, head: Block) -> bool:
        """Record the words that the back edges to a head do not have in memory; True if there are
        any."""
        before = len(self.lost.setdefault(head, set()))
        for source, edge in self.incoming[head]:
            if not edge.is_back:
                continue
            passed: dict[Value, Value] = dict(zip(head.parameters, edge.arguments, strict=True))
            after = self.after[source]
            for place, value in self.expected[head].items():
                raw = passed.get(_raw(value), _raw(value))
                found = after.get(place)
                if found is None or _same_key(_raw(found)) != _same_key(raw):
                    self.lost[head].add(place)
        return len(self.lost[head]) > before

    def _at_start(self, block: Block) -> Memory:
        """The content of memory at the start of a block."""
        incoming = self.incoming[block]
        onward = [(source, edge) for source, edge in incoming if not edge.is_back]
        back = [(source, edge) for source, edge in incoming if edge.is_back]
        if not onward or (back and self.has_given_up):
            return {}
        source = onward[0][0]
        if len(incoming) == 1 and not block.parameters:
            return dict(self.after[source])
        incoming = [*onward, *back]
        polls = [_poll_state(source) for source, _ in back]
        passed = {
            tuple(_same_key(e.arguments[number]) for _, e in incoming): parameter
            for number, parameter in enumerate(block.parameters)
        }
        found: Memory = {}
        for place, value in self.after[source].items():
            each = [value, *(self.after[s].get(place) for s, _ in onward[1:])]
            each += [_word(state, place) for state in polls]
            if all(_is_same(value, other) for other in each):
                found[place] = value
            elif None not in each:
                parameter = passed.get(tuple(_same_key(_raw(v)) for v in each if v is not None))
                joined = _joined(parameter, each) if parameter is not None else None
                if joined is not None:
                    found[place] = joined
        lost = self.lost.get(block, set())
        found = {place: value for place, value in found.items() if place not in lost}
        if back:
            self.expected[block] = dict(found)
        return found

    def _operation(self, block: Block, operation: Operation) -> None:
        memory = self.memory
        if operation.name == "word":
            memory[operation.fact(0, int)] = operation
            return
        state = operation.state
        if state is not None:
            self._exit(block, operation, operation, state)
        if operation.name in ("call", "call_indirect"):
            for place in [place for place in memory if place >= operation.fact(1, int)]:
                del memory[place]  # the callee's own

    def _end(self, block: Block) -> None:
        end = block.end
        if end.state is not None:
            self.early.states[end] = self._missing(end.state)
            return
        for edge in end.edges:
            state = edge.block.end.state
            if state is not None and len(self.incoming[edge.block]) == 1:
                if not edge.block.parameters and not edge.block.operations:
                    self._exit(block, end, None, state)
            elif not edge.is_back and any(e.is_back for _, e in self.incoming[edge.block]):
                self._enter_loop(block, edge)

    def _enter_loop(self, block: Block, edge: Edge) -> None:
        """Store before a loop the loop-invariant words that its polls need."""
        head = edge.block
        if len([e for _, e in self.incoming[head] if not e.is_back]) > 1:
            return
        for source, back in self.incoming[head]:
            state = _poll_state(source) if back.is_back else None
            if state is None:
                continue
            defined = self._defined_in_loop(head, source)
            words = tuple(
                None if word is None or _raw(word) in defined else word for word in state.words
            )
            self._exit(block, block.end, None, dataclasses.replace(state, words=words))

    def _defined_in_loop(self, head: Block, last: Block) -> set[Value]:
        """Values of the blocks from a head to its latch."""
        blocks = self.body.blocks
        found: set[Value] = set()
        for block in blocks[blocks.index(head) : blocks.index(last) + 1]:
            found.update(block.parameters)
            found.update(block.operations)
        return found

    def _exit(
        self, block: Block, before: Operation, exit_: Operation | None, state: FrameState
    ) -> None:
        """Record the words that an exit has to write; if there are many, store them before the
        operation."""
        missing = self._missing(state)
        if block not in self.excepted and sum(1 for _ in runs(missing.words)) > MOST_WORDS:
            stored = self.early.stores.get(before)
            words = missing.words
            if stored is not None:
                words = _united(stored.words, words)
            self.early.stores[before] = dataclasses.replace(missing, words=words)
            for place, word in enumerate(missing.words):
                if word is not None:
                    self.memory[place] = word
            missing = self._missing(state)
        if exit_ is not None:
            self.early.states[exit_] = missing

    def _missing(self, state: FrameState) -> FrameState:
        """A state without the words that memory has."""
        memory = self.memory
        words = tuple(
            None if word is None or _is_same(memory.get(place), word) else word
            for place, word in enumerate(state.words)
        )
        return dataclasses.replace(state, words=words)


def _united(
    first: Sequence[Value | None], then: Sequence[Value | None]
) -> tuple[Value | None, ...]:
    """The content of memory after two stores."""
    length = max(len(first), len(then))
    old = (*first, *[None] * (length - len(first)))
    new = (*then, *[None] * (length - len(then)))
    return tuple(b if b is not None else a for a, b in zip(old, new, strict=True))


def _raw(value: Value) -> Value:
    return value.raw if isinstance(value, Virtual) else value


def _word(state: FrameState | None, place: int) -> Value | None:
    return state.words[place] if state is not None and place < len(state.words) else None


def _poll_state(block: Block) -> FrameState | None:
    """The state of the poll in a block with a back edge; None where something comes behind the
    poll."""
    last = block.operations[-1] if block.operations else None
    return last.exit if last is not None and last.name == "poll" else None


def _blocks_with_few_exits(body: Body) -> set[Block]:
    """Blocks of loops that have few exits, such as those without checks."""
    innermost: dict[Block, Block] = {}
    for loop in find_loops(body):  # inner loops first
        for block in loop.members:
            innermost.setdefault(block, loop.header)
    exits: dict[Block, int] = {}
    for block, head in innermost.items():
        count = sum(operation.state is not None for operation in block.operations)
        # An exit in a block of its own is one of the block that leads there.
        tails = {edge.block for edge in block.end.edges} - innermost.keys()
        count += sum(tail.end.state is not None for tail in tails)
        exits[head] = exits.get(head, 0) + count
    return {block for block, head in innermost.items() if exits[head] <= FEW_EXITS}


def _strip_blocks(body: Body) -> set[Block]:
    """Blocks of the loops that run in strips, in which a store would prevent optimisation."""
    places = {block: place for place, block in enumerate(body.blocks)}
    found: set[Block] = set()
    for strip in strip_mined_loops(body):
        last = next(b for b in body.blocks if strip.poll in b.operations)
        found.update(body.blocks[places[strip.head] : places[last] + 1])
    return found
