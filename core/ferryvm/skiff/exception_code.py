# SPDX-License-Identifier: Apache-2.0
"""Code for `throw`, `try` and `finally`: ranges of code with their handlers.

An exception is a value under one tag. The cleanup of `finally` is there twice: behind the code that
it follows, and in a handler of all exceptions, which throws the record again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Protocol

from ferryvm.listing import ClauseListing, Item, Line
from ferryvm.program import Tag, record_types
from ferryvm.skiff import object_code, tree
from ferryvm.skiff.tree import Node, Variable
from ferryvm.skiff.type import NOTHING, default

TAG = "error"
"""The tag of Skiff's exceptions."""


class Generator(object_code.Generator, Protocol):
    """The part of the generator that these forms use."""

    items: list[Item]
    depth: int

    def statement(self, node: Node) -> None:
        """Generate code that leaves nothing."""

    def access(self, node: Node, variable: Variable, verb: str) -> None:
        """Get or set a variable."""


class ExceptionCode:
    """Rules for the nodes of exceptions."""

    def __init__(self, generator: Generator, tag: Tag) -> None:
        self.generator, self._tag = generator, tag
        self.clauses: list[ClauseListing] = []
        self.is_used = False
        """True if the function throws or catches."""

    def throw(self, node: tree.Throw) -> None:
        """`throw`."""
        self.is_used = True
        self.generator.value(node.value)
        self.generator.emit(node, "throw", TAG)

    def try_(self, node: tree.Try) -> None:
        """`try`."""
        self.guarded(node, self._emitter(node))

    def finally_(self, node: tree.Finally) -> None:
        """`finally`."""
        self.cleaned(node, self._emitter(node))

    def _emitter(self, node: Node) -> Callable[[Node], None]:
        is_nothing = default(node.type) == NOTHING
        return self.generator.statement if is_nothing else self.generator.value

    def guarded(self, node: tree.Try, emit: Callable[[Node], None]) -> None:
        """Generate `try`; `emit`: for its body and its handler."""
        generator = self.generator
        done, depth = generator.label("done"), generator.depth
        with self._covered("catch", TAG) as handler:
            emit(node.body)
        generator.emit(node, "jump", done)
        generator.place(handler)
        generator.depth = depth + 1
        generator.access(node, node.variable, "set")
        emit(node.handler)
        generator.place(done)

    def cleaned(self, node: tree.Finally, emit: Callable[[Node], None]) -> None:
        """Generate `finally`; `emit`: for its body."""
        generator = self.generator
        done, depth = generator.label("done"), generator.depth
        with self._covered("finally", None) as handler:
            emit(node.body)
        after = generator.depth
        generator.statement(node.cleanup)
        generator.emit(node, "jump", done)
        generator.place(handler)
        generator.depth = depth + len(record_types((self._tag,)))
        generator.statement(node.cleanup)
        generator.emit(node, "throw_record")
        generator.place(done)
        generator.depth = after

    @contextlib.contextmanager
    def _covered(self, kind: str, tag: str | None) -> Iterator[str]:
        """A context for code whose exceptions continue at the label, with the present operands."""
        generator = self.generator
        self.is_used = True
        start, end, handler = (generator.label(name) for name in ("try", "end", kind))
        depth, first = generator.depth, len(generator.items)
        generator.place(start)
        yield handler
        generator.place(end)
        if any(isinstance(item, Line) for item in generator.items[first:]):
            self.clauses.append(ClauseListing(start, end, handler, depth, tag, tag is None))
