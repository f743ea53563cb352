# SPDX-License-Identifier: Apache-2.0
"""Structured control over flat code: block, loop, if, try, as WebAssembly has them.

    with f.block(results=[I64]) as b:       b's code cannot pop operands from outside
        ...
        f.br(b)                             to the end, with an i64 on top, without others
        ...
                                            here an i64 must be on the stack, and nothing else

A block itself generates no code, only its jumps do. `br` to a loop goes to its start. (A label
alone, `f.label`, is a target of any jump of the function, if the operands agree.)
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from ferryvm.build.fault import caller
from ferryvm.build.instruction import Instructions
from ferryvm.build.shape import MismatchError, Shape, Special
from ferryvm.build.symbol import Label, Tag
from ferryvm.isa import Type
from ferryvm.isa.type import ValueType
from ferryvm.listing import ClauseListing

Types = tuple[ValueType, ...]


class Block:
    """A block of a function: created by `Function.block`, open within its `with` statement."""

    kind = "block"

    def __init__(self, function: Instructions, parameters: Types, results: Types) -> None:
        self.function, self.parameters, self.results = function, parameters, results
        self.place = caller()
        """The line that created it."""
        self.base: Shape
        """The operands below its parameters."""
        self.floor: Shape
        self.outer_floor: Shape
        self.end: Label
        """The label after its last instruction."""

    def __repr__(self) -> str:
        return f"<{self.kind}>"

    @property
    def target(self) -> tuple[Label, Types]:
        """The target of a `br` to this block, and the operands that the branch carries."""
        return self.end, self.results

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._close()

    def _open(self) -> None:
        f = self.function
        try:
            self.base = f._shape.pop_all(self.parameters)
        except MismatchError:
            raise f._mismatch(self.kind, self.parameters) from None
        self.outer_floor, self.floor = f._floor, self.base.push(Special.FLOOR)
        self.end = f._new_label(f"{self.kind}.end")
        self.end.shape = self.base.push_all(self.results).plain
        self.end.is_settled = True
        f._floor = self.floor
        f._shape = self.floor.push_all(self.parameters)
        f._blocks.append(self)

    def _close(self) -> None:
        f = self.function
        if not f._blocks or f._blocks[-1] is not self:
            raise f._fault(f"this {self.kind} ends while another one in it is open")
        is_reached = self._check_end()
        f._blocks.pop()
        f._floor = self.outer_floor
        f._define(self.end)
        f._shape = self.base.push_all(self.results)
        if not is_reached and not self.end.is_reached:
            f._end_path()

    def _check_end(self) -> bool:
        """Check the operands at the end of a part; True if the end is reachable."""
        f = self.function
        shape = f._shape
        if shape is self.floor.push_all(self.results):
            return shape.is_reachable
        try:
            below = shape.pop_all(self.results)
        except MismatchError:
            below = self.base
        if below.kind is not Special.ANYTHING and below is not self.floor:
            wanted = f"({' '.join(map(str, self.results))})"
            raise f._fault(f"this {self.kind} ends with {wanted}, the stack has {shape}")
        return shape.is_reachable


class Loop(Block):
    """A block for which `br` goes to its start."""

    kind = "loop"

    @property
    def target(self) -> tuple[Label, Types]:
        """Its start, and its parameters."""
        return self.start, self.parameters

    def _open(self) -> None:
        super()._open()
        f = self.function
        self.start = f._new_label("loop")
        self.start.shape = f._shape.plain
        f._define(self.start)


class If(Block):
    """A block that runs if an i32 is not 0, and after `else_` a part that runs if it is 0."""

    kind = "if"

    def _open(self) -> None:
        f = self.function
        f._effect(self.kind, (*self.parameters, Type.I32), (), None, {})
        self.otherwise: Label | None = f._new_label("else")
        f.jump_unless(self.otherwise)
        super()._open()

    def turn(self) -> None:
        """Begin the part that runs if the condition is 0. Raises BuildError if there is one."""
        f = self.function
        if self.otherwise is None:
            raise f._fault("this if has its else_ already")
        if self._check_end():
            f.jump(self.end)
        self._begin_other(self.otherwise)

    def _begin_other(self, label: Label) -> None:
        self.otherwise = None
        self.function._define(label)
        self.function._shape = self.floor.push_all(self.parameters)

    def _close(self) -> None:
        if self.otherwise is not None:
            if self.parameters != self.results:
                wanted = " ".join(map(str, self.results))
                raise self.function._fault(f"this if has no else_, which would leave ({wanted})")
            self._check_end()
            self._begin_other(self.otherwise)
        super()._close()


class Try(Block):
    """A block with handlers of the exceptions that leave it.

    `catch` ends the block's own code, or the previous handler. Handlers are not covered themselves.
    """

    kind = "try"

    def _open(self) -> None:
        super()._open()
        f = self.function
        self.start = f._new_label("try")
        f._define(self.start)
        self.covered: Label | None = None
        """The label after the covered code, once that has ended."""
        self.clauses: list[ClauseListing] = []

    def catch(self, tag: Tag) -> None:
        """Begin the handler of a tag; the exception's values are on the stack."""
        tag = self.function._tag("catch", tag)
        self._handler(tag.parameters, tag, False)

    def catch_all(self, record: bool = False) -> None:
        """Begin the handler of all tags; `record`: with the exception's record on the stack."""
        self._handler(self.function._record() if record else (), None, record)

    def _handler(self, caught: Types, tag: Tag | None, record: bool) -> None:
        f = self.function
        if not f._blocks or f._blocks[-1] is not self:
            raise f._fault("catch belongs to the innermost block, which is another one")
        is_reached = self._check_end()
        if self.covered is None:
            self.covered = f._new_label("try.covered")
            f._define(self.covered)
        if is_reached:
            f.jump(self.end)
        handler = f._new_label("catch")
        f._define(handler)
        f._shape = self.floor.push_all(caught)
        name = None if tag is None else tag.name
        depth = max(0, self.base.depth)
        names = self.start.name, self.covered.name, handler.name
        self.clauses.append(ClauseListing(*names, depth, name, record))

    def _close(self) -> None:
        super()._close()
        if self.covered is not None and self.start.pc != self.covered.pc:
            self.function._clauses += self.clauses


def check_open(function: Instructions, block: object) -> Block:
    """The block, if it is open in that function."""
    if isinstance(block, Block) and block in function._blocks:
        return block
    raise function._fault(f"a branch goes to a block that is open, found {block!r}")
