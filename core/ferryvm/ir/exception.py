# SPDX-License-Identifier: Apache-2.0
"""Exceptions: a throw that is caught in its function is a jump; one that crosses calls is an edge
of the caller.

    caller    %1: i64 = call 3 2 %0 @14 [...]           callee   throw 5 4 @31 [_ _ %0 %1 i64:7]
              %2: i64 = caught (5 6)                               │
              switch %2 b1(%1) catch2() catch3()   <───────────────┘ its frame written, as at
                        0 returned, 1 tag 5, 2 tag 6                 exits

A caller that does not catch an exception of its callee writes its own frame and throws the
exception on. If no caller catches it, control leaves the region in the state before the throw, with
all frames.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping

from ferryvm.ir.call import CallLifter
from ferryvm.ir.graph import Block, Edge, Operation, Parameter, Terminator, Value
from ferryvm.ir.variable import Variables
from ferryvm.isa import Immediate
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import I64, Reference, Type, as_number
from ferryvm.program import MAX_TAG_VALUES, Clause
from ferryvm.region.code import caught_locally
from ferryvm.region.escape import escaping

MOST_TAGS = 16
"""The largest number of tags of a program whose records are thrown without an exit: each takes a
block."""


class ExceptionLifter(CallLifter):
    """Lifts throws, and calls that catch."""

    is_root: bool
    counting: bool
    exceptions: bool
    """True if exceptions cross calls without an exit."""
    caught: Operation | None = None
    """The `caught` at the end of the current block."""

    @abc.abstractmethod
    def edge_to(self, pc: int) -> Edge:
        """The edge from the current node to an instruction of the function."""

    # --- throwing ---------------------------------------------------------------------------

    def throw(self) -> None:
        clause = caught_locally(self.verified, self.pc)
        if clause is not None:
            words, tag = self.variables.words, self.immediate
            values = words[len(words) - len(self.program.tags[tag].parameters) :]
            self._enter_handler(clause, tag, values)
            self.end("jump", (), (clause.handler,))
        elif self.row(self.pc).immediate is not Immediate.TAG:
            self._throw_record()
        elif self._is_thrown:
            count = len(self.program.tags[self.immediate].parameters)
            self._stop("throw", self.immediate, len(self._words_before) - count)
        else:
            self._stop("leave")  # an interpreter finds the handler

    @property
    def _is_thrown(self) -> bool:
        """True if callers may catch the exceptions of this body."""
        return self.exceptions and not self.is_root

    def _throw_record(self) -> None:
        """Throw the exception of a record: a block for each tag, and one for the exit."""
        tags = range(len(self.program.tags))
        caught = self._caught_by(self.pc, tags)
        is_known = self._is_thrown or caught
        # The engine looks at the types of references in the record.
        if not is_known or not 0 < len(tags) <= MOST_TAGS or self.program.record_references:
            self._stop("leave")
            return
        first = len(self._words_before) - MAX_TAG_VALUES
        number, here, above = self._words_before[first - 1], self._here(), self.block
        slots = self._words_before[first:]

        def values(tag: int) -> list[Value]:
            if self.counting:
                self.emit(Operation("pay", None, (1, 1), (), here))
            types = map(as_number, self.program.tags[tag].parameters)
            found = zip(types, slots, strict=False)
            return [self.from_slot(t, self._low_bits(t, slot)) for t, slot in found]

        found = self._handler_edges(caught, values)
        leave = self._new_block("leave", self.pc)
        self._stop("leave")
        for tag in tags if self._is_thrown else ():
            if tag not in found:
                found[tag] = Edge(self._new_block("throw", self.pc), [])
                self.close(Terminator("throw", (tag, first), (), here))
        edges = tuple(found.get(tag) or Edge(leave, []) for tag in (*tags, None))
        self._close_switch(above, number, edges)

    def _new_block(self, name: str, pc: int) -> Block:
        """A new block of the body, in which operations are appended from now on."""
        block = Block(f"{name}{len(self.body.blocks)}", pc)
        self.body.blocks.append(block)
        self.open(block)
        return block

    # --- catching ---------------------------------------------------------------------------

    def _clause(self, pc: int, tag: int) -> Clause | None:
        """The clause of the function that catches a tag thrown at an instruction."""
        covering = self.verified.clauses.covering(pc)
        return next((clause for clause in covering if clause.tag in (None, tag)), None)

    def _catch(self, callees: list[int]) -> None:
        self.caught = None
        if not self.exceptions or not self.verified.clauses.covering(self.pc):
            return
        thrown = sorted(escaping(self.verified, callees))
        tags = tuple(self._caught_by(self.pc, thrown))
        if tags:
            self.caught = self.emit(Operation("caught", I64, (tags,)))

    def _low_bits(self, t: Type, word: Value) -> Value:
        """The slot of a value of type `t` in a word of a record: programs may have set the bits of
        the word that the type does not have."""
        return word if t.bits == 64 else self.bit_and(I64, word, self.constant(I64, t.mask))

    def _caught_by(self, pc: int, tags: Iterable[int]) -> dict[int, Clause]:
        """The tags thrown at an instruction that the function catches, with their clauses."""
        found = ((tag, self._clause(pc, tag)) for tag in tags)
        return {tag: clause for tag, clause in found if clause is not None}

    def _end_caught(self, caught: Operation) -> None:
        """Terminate the block of a call that catches exceptions of its callee."""

        def values(tag: int) -> list[Value]:
            types = map(as_number, self.program.tags[tag].parameters)
            return [self.emit(Operation("thrown", t, (at,))) for at, t in enumerate(types)]

        above, tags = self.block, caught.fact(0, tuple)
        returned = self.edge_to(self.pc + 1)
        found = self._handler_edges(self._caught_by(self.pc, tags), values)
        self._close_switch(above, caught, (returned, *(found[tag] for tag in tags)))

    def _close_switch(self, block: Block, number: Value, edges: tuple[Edge, ...]) -> None:
        self.block, self.is_open = block, False
        self.close(Terminator("switch", (), (number,), edges=edges))

    def _handler_edges(
        self, caught: Mapping[int, Clause], values: Callable[[int], list[Value]]
    ) -> dict[int, Edge]:
        """The edges to the handlers of tags, from blocks that compute the `values` of each."""
        before = self.variables
        found: dict[int, Edge] = {}
        groups: dict[int, list[tuple[int, Clause]]] = {}
        """Tags and their clauses by handler: it has one edge from here."""
        for tag, clause in caught.items():
            groups.setdefault(clause.handler, []).append((tag, clause))
        for handler, group in groups.items():
            blocks: list[tuple[Block, list[Value]]] = []
            for tag, clause in group:
                block = self._new_block("caught", handler)
                self.variables = before.copy()
                self._enter_handler(clause, tag, values(tag))
                blocks.append((block, self.variables.words[self._first_operand :]))
                found[tag] = Edge(block, [])
            if len(blocks) > 1:
                self._join_caught(before, handler, blocks)
            self.close(Terminator("jump", edges=(self.edge_to(handler),)))
        self.variables = before
        return found

    def _join_caught(
        self, before: Variables, handler: int, blocks: list[tuple[Block, list[Value]]]
    ) -> None:
        """Continue in a block after these blocks, with parameters for the operands."""
        join = self._new_block("handler", handler)
        operands = [Parameter(as_number(t)) for t in self.verified.operand_types(handler)]
        join.parameters += operands
        for block, passed in blocks:
            block.terminator = Terminator("jump", edges=(Edge(join, passed),))
        self.variables = before.copy()
        self.variables.words[self._first_operand :] = operands

    @property
    def _first_operand(self) -> int:
        """The index of the first operand among the words of the frame."""
        return len(self.frame_types) + HEADER_WORDS

    def _enter_handler(self, clause: Clause, tag: int, values: list[Value]) -> None:
        """Cut the operands to those that a clause keeps, and push the exception."""
        words = self.variables.words
        del words[self._first_operand + clause.depth :]
        if clause.tag is not None:
            words += values
        elif clause.record:
            words += self._record(tag, values)

    def _record(self, tag: int, values: list[Value]) -> list[Value]:
        """The words of the record of an exception, see `record_types`."""
        types, none = self.program.tags[tag].parameters, self.constant(I64, 0)
        references: list[Value] = []
        numbers: list[Value] = []
        for t, value in zip(types, values, strict=True):
            slot = self.to_slot(as_number(t), value)
            if isinstance(t, Reference):
                references.append(slot)
                slot = none
            numbers.append(slot)
        references += [none] * (self.program.record_references - len(references))
        numbers += [none] * (MAX_TAG_VALUES - len(numbers))
        return [*references, self.constant(I64, tag), *numbers]
