# SPDX-License-Identifier: Apache-2.0
"""A body as a C function.

The region's own is `status region(control)`; any other `{value, exited} f(control, frame, …)`,
where `exited` is true if control left inside, so that every caller has to write its frame and
leave, too. Separate cold functions write frames, one for each list of types.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ferryvm.ir.c.access import Access
from ferryvm.ir.c.call import Calls
from ferryvm.ir.c.context import FORCED_IN, PrintingContext, head, result_type, spelled
from ferryvm.ir.c.group import Groups
from ferryvm.ir.c.object import Objects
from ferryvm.ir.c.scope import FunctionScope
from ferryvm.ir.c.side_exit import SideExits
from ferryvm.ir.c.structure import structure
from ferryvm.ir.graph import BOOLEAN, Block, Body, Edge, Operation, Parameter, Terminator, Value
from ferryvm.ir.operation import SAFEPOINTS
from ferryvm.ir.rule import Rules
from ferryvm.isa.type import F32, F64, I32, I64

_LEAVING = {"leave": "LEAVE", "trap": "TRAP", "halt": "HALT", "host": "HOST"}
"""Statuses of the terminators that leave."""


class FunctionPrinter:
    """Prints one body."""

    def __init__(
        self,
        shared: PrintingContext,
        body: Body,
        number: int | None,
        name: str,
        level: int = 0,
        *,
        is_cold: bool = False,
    ) -> None:
        """`name`: of the C function; `is_cold`: it rarely runs."""
        self.scope = scope = FunctionScope(shared, body, number, level)
        self.shared, self.body, self.number, self.dialect = shared, body, number, shared.dialect
        self.lines, self.names = scope.lines, scope.names
        self.exits = SideExits(scope)
        objects, calls = Objects(scope), Calls(scope, self.exits)
        self.groups = Groups(scope)
        self.rules = Rules(Access(scope), objects, self.exits, calls, self.groups)
        self.function, self.is_cold = name, is_cold
        self.structure = structure(body)
        self._placed: set[Block] = set()
        self._loop: tuple[Block, Block | None] | None = None
        """The head of the enclosing loop, and the blocks after it."""
        self._is_case = False
        """True if `break` would end a switch."""
        self._commented = -1
        """The instruction that the last comment describes."""

    def text(self) -> str:
        """The function."""
        entry = self.body.blocks[0]
        for place, parameter in enumerate(entry.parameters):
            self.names[parameter] = f"a{place}"
        joined = [
            p for block in self.structure.order if block is not entry for p in block.parameters
        ]
        for place, parameter in enumerate(joined):
            self.names[parameter] = f"p{place}"
        self._place(entry, None)
        return self._whole(joined)

    def with_headroom(self, plain: str, reach: int) -> str:
        """A copy that checks no stack limit; if fewer than `reach` bytes are left above the frame,
        the outermost copy calls the function `plain` instead, which checks."""
        self.scope.has_headroom = True
        if not self.scope.level:
            d = self.dialect
            entry = self.body.blocks[0]
            given = [d.passed, "frame", *(f"a{n}" for n in range(len(entry.parameters)))]
            end = f"{self.scope.frame_address()} + {self.scope.arithmetic.constant(I64, reach)}"
            self.lines.open(f"if (unlikely({end} > {d.segments['stack_end']})) {{")
            self.shared.helpers.add("unlikely")
            self.lines.add(f"return {plain}({', '.join(given)});")
            self.lines.close()
        return self.text()

    def too_deep(self) -> str:
        """A function that leaves at once, for calls that continue elsewhere."""
        entry = self.body.blocks[0]
        for place, parameter in enumerate(entry.parameters):
            self.names[parameter] = f"a{place}"
        for operation in entry.operations:
            if operation.name == "check_entry":
                assert operation.state is not None
                self.exits.leave(operation.state, "FERRY_RUNNING")
                break
            self._operation(operation)
        return self._whole([])

    def _whole(self, joined: Sequence[Parameter]) -> str:
        title = head(self.shared, self.body, self.number, self.function, cold=self.is_cold)
        lines = [title, "{"]
        lines += [f"    {line}" for line in self._prologue(joined)]
        lines += self.lines.text(self.names, self.scope.types)
        return "\n".join([*lines, "}", ""])

    def _prologue(self, joined: Sequence[Parameter]) -> list[str]:
        d = self.dialect
        lines = []
        if self.number is None and "frame" in self.scope.bases:
            stack = d.segments["stack"]
            first = f" - {self.body.parameters}" if self.body.parameters else ""
            lines.append(f"{d.frames}const frame = ({d.frames}){stack} + control->fp{first};")
        if "heap" in self.scope.bases:
            lines.append(f"{d.bytes}const heap = ({d.bytes}){d.segments['heap']};")
        if "objects" in self.scope.bases:
            lines.append(f"const {d.word} objects = {d.segments['objects']};")
        if "thrown" in self.scope.bases:
            lines.append(f"{d.frames}thrown;")
        if "statics" in self.scope.bases:
            lines.append(f"{d.words}const statics = ({d.words}){d.segments['statics']};")
        if "budget" in self.scope.bases:
            # Poll the flag here, too, for code with short runs or calls.
            first = (
                f"{self.scope.helper('entered', 'control')} ? 1 : {self.shared.choices.poll_budget}"
            )
            lines.append(f"{d.signed[I32]} budget = {first};")
        if self.groups.can_fail:
            lines.append(f"{d.types[BOOLEAN]} failed = false;")
        if "iterations" in self.scope.bases:
            lines.append(f"{d.types[I32]} iterations = 0;")
        by_type: dict[str, list[str]] = {}
        for value in (*joined, *self.lines.outside):
            by_type.setdefault(spelled(d, value.type), []).append(self.names[value])
        return lines + [f"{t} {', '.join(names)};" for t, names in by_type.items()]

    def _operation(self, operation: Operation) -> None:
        if self.shared.choices.forced and operation.name in SAFEPOINTS:
            self.exits.leave_if(f"--{FORCED_IN} == 0", operation, "LEAVE")
        arguments = [self.scope.value(a) for a in operation.arguments]
        is_guarded = self.groups.is_guarded(operation)
        if is_guarded:
            arguments = self.groups.operands(operation, arguments)
        if is_guarded and operation.type is None:
            self.groups.open()
            self._emit(operation, arguments)
            self.lines.close()
            return
        result = self._emit(operation, arguments)
        if operation.type is not None:
            result = self.groups.result(operation, result) if is_guarded else result
            self.scope.define(operation, result)

    def _emit(self, operation: Operation, arguments: Sequence[str]) -> str:
        rule = self.rules.get(operation.name)
        if rule is not None:
            return rule(operation, *arguments)  # type: ignore[no-any-return]  # a part's method
        emit = getattr(self.scope.arithmetic, operation.name)
        return emit(*operation.static, *arguments)  # type: ignore[no-any-return]  # an emitter's method

    # --- nesting of blocks ------------------------------------------------------------------

    def _place(self, block: Block, follow: Block | None) -> bool:
        """Print a block with the blocks nested in it; True if control can reach its end.

        `follow`: the block that control reaches then.
        """
        self._placed.add(block)
        self.lines.label(block)
        if block not in self.structure.heads:
            return self._block(block, follow)
        behind = self.structure.behind.get(block, [])
        around = self._loop, self._is_case
        self._loop, self._is_case = (block, behind[0] if behind else follow), False
        passes_floats = any(each.type in (F32, F64) for each in block.parameters)
        if passes_floats and "in_order" in self.dialect.helpers:
            self.lines.add(self.scope.helper("in_order"))
        self.lines.open("for (;;) {")
        self._block(block, block)
        self.lines.close()
        self._loop, self._is_case = around
        return self._chain(behind, follow, True)

    def _chain(self, blocks: Sequence[Block], follow: Block | None, falls: bool) -> bool:
        for block, next_ in zip(blocks, [*blocks[1:], follow], strict=False):
            falls = self._place(block, next_)
        return falls

    def _block(self, block: Block, follow: Block | None) -> bool:
        after = self.structure.after.get(block, [])
        self._commented = block.pc - (block is not self.body.blocks[0])
        for operation in block.operations:
            self._comment(operation)
            self._operation(operation)
        self._comment(block.end)
        falls = self._terminator(block.end, after[0] if after else follow)
        return self._chain(after, follow, falls)

    def _comment(self, operation: Operation) -> None:
        if operation.pc > self._commented:
            for line in self.shared.describe(self._commented + 1, operation.pc):
                self.lines.add(f"/* {line} */")
            self._commented = operation.pc

    def _edge(self, edge: Edge, follow: Block | None) -> bool:
        """Print an edge to a block; True if it falls through to the end."""
        self._pass(edge)
        block = edge.block
        if block in self.structure.inlined and block not in self._placed:
            return self._place(block, follow)
        if block is follow:
            return True
        if self._loop is not None and block is self._loop[0]:
            self.lines.add("continue;")
        elif self._loop is not None and block is self._loop[1] and not self._is_case:
            self.lines.add("break;")
        else:
            self.lines.jump(block)
        return False

    def _pass(self, edge: Edge) -> None:
        """Assign an edge's arguments, all at once."""
        carried = (
            edge.is_back
            and edge.block in self.structure.unchecked
            and "carried" in self.dialect.helpers
        )
        pending = [
            (parameter, self._carried(argument) if carried else self.scope.value(argument))
            for parameter, argument in zip(edge.block.parameters, edge.arguments, strict=True)
            if parameter is not argument
        ]
        pending = [(p, a) for p, a in pending if a != self.names[p]]
        while pending:
            free = [
                (p, a)
                for p, a in pending
                if not any(q is not p and _has_name(b, self.names[p]) for q, b in pending)
            ]
            for parameter, argument in free:
                self.lines.add(f"{self.names[parameter]} = {argument};")
                pending.remove((parameter, argument))
            if not free:  # a cycle: save one of its values in a temporary
                parameter, _ = pending[0]
                name = self.names[parameter]
                beside = self.scope.name("t")
                self.lines.add(f"const {spelled(self.dialect, parameter.type)} {beside} = {name};")
                pending = [(p, _name_pattern(name).sub(beside, a)) for p, a in pending]

    def _carried(self, value: Value) -> str:
        """A value that a loop passes to its next iteration."""
        text = self.scope.value(value)
        return self.scope.helper("carried", text) if value.type is F64 else text

    # --- terminators ------------------------------------------------------------------------

    def _terminator(self, end: Terminator, follow: Block | None) -> bool:
        """Print the terminator of a block; True if control falls through to `follow`."""
        arguments = [self.scope.value(a) for a in end.arguments]
        match end.name:
            case "jump":
                return self._edge(end.edges[0], follow)
            case "branch":
                return self._branch(arguments[0], end.edges, follow)
            case "switch":
                return self._switch(arguments[0], end.edges, follow)
            case "return":
                self._return(end, arguments)
            case "throw":
                self.exits.throw(end)
            case _:
                self._leave(end)
        return False

    def _leave(self, end: Terminator) -> None:
        assert end.state is not None
        if end.name == "trap":
            self.lines.add(self.exits.trap(end))
        if end.name == "host":
            self.lines.add(f"control->exit_id = {end.static[0]};")
        self.exits.leave(end.state, f"FERRY_{_LEAVING[end.name]}")

    def _branch(self, p: str, edges: Sequence[Edge], follow: Block | None) -> bool:
        yes, no = edges
        if self._is_short(no, follow) and not self._is_short(yes, follow):
            p, yes, no = f"!{p}", no, yes
        if yes.block is follow and not yes.arguments:
            p, yes, no = p[1:] if p.startswith("!") else f"!{p}", no, yes
        self.lines.open(f"if ({p}) {{")
        falls = self._edge(yes, follow)
        if not falls:
            self.lines.close()
            return self._edge(no, follow)
        if no.block is follow and not no.arguments:
            self.lines.close()
            return True
        self.lines.again("} else {")
        self._edge(no, follow)
        self.lines.close()
        return True

    def _is_short(self, edge: Edge, follow: Block | None) -> bool:
        """True if an edge is one jump, or leads to a block that leaves."""
        block = edge.block
        if edge.arguments or block is follow:
            return False
        is_placed_there = block in self.structure.inlined and block not in self._placed
        return not is_placed_there or not block.end.edges

    def _switch(self, index: str, edges: Sequence[Edge], follow: Block | None) -> bool:
        around, self._is_case = self._is_case, True
        self.lines.open(f"switch ({index}) {{")
        falls = False
        for number, edge in enumerate(edges):
            is_last = number == len(edges) - 1
            self.lines.open("default: {" if is_last else f"case {number}: {{")
            if self._edge(edge, follow):
                self.lines.add("break;")
                falls = True
            self.lines.close()
        self.lines.close()
        self._is_case = around
        return falls

    def _return(self, end: Terminator, values: Sequence[str]) -> None:
        body = self.body
        slots = [
            self.scope.arithmetic.to_slot(argument.word_type, value)
            for argument, value in zip(end.arguments, values, strict=True)
        ]
        if body.is_root:
            frame = self.scope.base("frame")
            first = slots[0] if slots else self.scope.arithmetic.constant(I64, 0)
            self.lines.add(
                f"go_back({self.dialect.passed}, {frame}, {body.parameters}, {first}, {len(slots)});"
            )
        for number, slot in enumerate(slots[1:], 1):
            place = number if body.is_root else body.place_of(number)
            self.lines.add(f"{self.scope.base('frame')}[{place}] = {slot};")
        if body.is_root:
            self.lines.add(f"return {self.shared.back};")
        elif values:
            pair = result_type(self.dialect, body.result)
            self.lines.add(f"return ({pair}){{{values[0]}, 0}};")
        else:
            self.lines.add(f"return {'failed' if self.groups.can_fail else 0};")


def _has_name(text: str, name: str) -> bool:
    """True if an expression has a name in it."""
    return _name_pattern(name).search(text) is not None


def _name_pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
