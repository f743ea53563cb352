# SPDX-License-Identifier: Apache-2.0
"""Operations that may leave, as C statements: checks, polls, guards, payments.

At exits, cold functions write the frame and the registers, one for each list of types; so a check
costs the fast path one branch.
"""

from __future__ import annotations

from ferryvm.ir.c.context import (
    ACTIVITY,
    FAILURES,
    GUARD_SHIFT,
    HOST_STACK_LIMIT,
    UNFINISHED,
    result_type,
)
from ferryvm.ir.c.scope import FunctionScope
from ferryvm.ir.graph import FrameState, Operation, Phase, Value, Virtual
from ferryvm.ir.group.writer import record_body
from ferryvm.ir.headroom import frame_headroom
from ferryvm.ir.loop.poll import poll_costs
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64, Type

LEFT, FIRST_TAG, DISTANCES = 1, 2, 8
"""The field `exited` of what functions return: 0, `LEFT`, or `FIRST_TAG` and above for an
exception: `DISTANCES` times its tag, and the words from its first value to the end of its frame."""


class SideExits:
    """Prints operations that may leave, and exits for other parts."""

    def __init__(self, scope: FunctionScope) -> None:
        self.scope = scope
        self._costs = poll_costs(scope.body)
        self._at_entry = scope.shared.choices.at_entry

    def leave_if(self, p: str, operation: Operation, status: str, *fields: str) -> None:
        """Continue only if `p` does not hold; else leave in the operation's state."""
        assert operation.state is not None
        self.scope.lines.open(f"if ({self.scope.helper('unlikely', p)}) {{")
        for field in () if self._at_entry else fields:
            self.scope.lines.add(field)
        self.leave(operation.state, f"FERRY_{status}")
        self.scope.lines.close()

    def throw(self, end: Operation) -> None:
        """Leave where something is thrown: a caller may catch it."""
        assert end.state is not None
        distance = len(end.state.words) - end.fact(1, int)
        exited = FIRST_TAG + DISTANCES * end.fact(0, int) + distance
        self.leave(end.state, "FERRY_LEAVE", exited if self.scope.shared.catches else LEFT)

    def leave(self, state: FrameState, status: str, exited: int = LEFT) -> None:
        """Leave in a state: nothing follows. `exited`: as the function's caller gets it."""
        if self._at_entry:
            self.scope.lines.add(f"return {status};")
            return
        self.write(state)
        if state.unpaid:
            self.scope.lines.add(f"control->fuel += {state.unpaid};")
        frame = self.scope.base("frame")
        numbers = f"{self.scope.body.header_of(state)}, {len(state.words)}, {state.pc}"
        if state.phase is not None:
            self._write_record(state.phase)
        leaving = f"leave({self.scope.dialect.passed}, {frame}, {numbers}, {status})"
        if self.scope.number is None:
            self.scope.lines.add(f"return {leaving};")
        else:
            self.scope.lines.add(f"{leaving};")
            self.return_exited(str(exited))

    def write(self, state: FrameState) -> None:
        """Write the parts of a state that memory does not have."""
        for number, value in state.statics:
            assert isinstance(value.type, Type)
            slot = self.scope.arithmetic.to_slot(value.type, self._in_state(value))
            self.scope.lines.add(f"{self.scope.base('statics')}[{number}] = {slot};")
        if state.heap_pointer is not None:
            self.scope.lines.add(f"control->hp = {self.scope.value(state.heap_pointer)};")
        words = [word for word in state.words if word is not None]
        if words:
            types = tuple(None if word is None else word.word_type for word in state.words)
            letters = ("_" if t is None else "ilfd"[list(Type).index(t)] for t in types)
            name = "frame_" + "".join(letters)
            self.scope.shared.frames[name] = types
            values = ", ".join(self._in_state(w) for w in words)
            self.scope.lines.add(f"{name}({self.scope.base('frame')}, {values});")

    def _write_record(self, phase: Phase) -> None:
        """Write the record of the group whose items are in a phase."""
        records = self.scope.shared.records
        if phase.group not in records:
            body = record_body(self.scope.body, phase)
            records[phase.group] = f"{body.name}_{len(records)}", body
        name, _ = records[phase.group]
        region = self.scope.arithmetic.constant(I64, phase.region)
        given = [self.scope.dialect.passed, self.scope.base("frame"), region]
        given += [self._in_state(value) for value in phase.values]
        self.scope.lines.add(f"{name}({', '.join(given)});")
        self.scope.lines.add(f"++{ACTIVITY}[{UNFINISHED}];")

    def _in_state(self, value: Value) -> str:
        if isinstance(value, Virtual):
            assert isinstance(value.type, Type)
            return self.scope.arithmetic.canonical(value.type, self.scope.value(value.raw))
        return self.scope.value(value)

    def return_exited(self, exited: str) -> None:
        """Return after leaving."""
        if self.scope.number is None:
            self.scope.lines.add("return control->status;")
        elif self.scope.body.result is None:
            self.scope.lines.add(f"return {exited};")
        else:
            self.scope.lines.add(
                f"return ({result_type(self.scope.dialect, self.scope.body.result)}){{0, {exited}}};"
            )

    def do_trap_if(self, operation: Operation, p: str) -> None:
        if self.scope.has_headroom and frame_headroom(operation):
            return
        self.leave_if(p, operation, "TRAP", self.trap(operation))

    def trap(self, operation: Operation) -> str:
        """The statement that sets the kind of the trap."""
        kind = operation.static[0]
        assert isinstance(kind, Trap)
        self.scope.shared.traps.add(kind)
        return f"control->trap = TRAP_{kind.name};"

    def do_grow_if(self, operation: Operation, p: str, wanted: str) -> None:
        self.leave_if(p, operation, "GROW", f"control->wanted = {wanted};")

    def do_allocate_if(self, operation: Operation, p: str, wanted: str, type_: str) -> None:
        fields = f"control->wanted = {wanted};", f"control->wanted_type = {type_};"
        self.leave_if(p, operation, "ALLOCATE", *fields)

    def do_continue_launch_if(self, operation: Operation, p: str) -> None:
        self.leave_if(p, operation, "LAUNCH")

    def do_parallel_if(self, operation: Operation, p: str) -> None:
        self.leave_if(p, operation, "PARALLEL")

    def do_poll(self, operation: Operation) -> None:
        if not self.scope.shared.choices.polls:
            return
        budget = self.scope.base("budget")
        cost = self._costs[operation]
        # A poll that costs more than 1 may pass 0, and then it checks the flag.
        spent = f"--{budget} == 0" if cost == 1 else f"({budget} -= {cost}) <= 0"
        self.scope.lines.open(f"if ({self.scope.helper('unlikely', spent)}) {{")
        self.scope.lines.add(f"{budget} = {self.scope.shared.choices.poll_budget};")
        self.leave_if(self.scope.helper("interrupted", "control"), operation, "INTERRUPTED")
        self.scope.lines.close()

    def do_check_entry(self, operation: Operation) -> None:
        if operation.static[0] and not self.scope.shared.recursing:
            depth = self.scope.helper("host_stack")
            self.leave_if(f"{depth} < {HOST_STACK_LIMIT}", operation, "LEAVE")
        if not self.scope.level:  # copies run for a short time only
            self.leave_if(self.scope.helper("entered", "control"), operation, "INTERRUPTED")

    def do_guard(self, operation: Operation, fails: str) -> None:
        assert operation.state is not None
        number = self.scope.shared.guards.index(operation.fact(0, int))
        if self._at_entry:
            self.leave_if(fails, operation, f"GUARD | {number}u << {GUARD_SHIFT}")
            return
        self.scope.lines.open(f"if ({self.scope.helper('unlikely', fails)}) {{")
        if self.scope.dialect.entry:
            status = "FERRY_GUARD"
            self.scope.lines.add(f"control->exit_id = {number};")
        else:
            often = f"++{ACTIVITY}[{FAILURES + number}] >= {self.scope.shared.choices.guard_limit}"
            status = f"{often} ? FERRY_GUARD : FERRY_LEAVE"
        self.leave(operation.state, status)
        self.scope.lines.close()

    def do_pay(self, operation: Operation) -> None:
        count, wanted = operation.static
        self.leave_if(f"control->fuel < {wanted}", operation, "LEAVE")
        self.scope.lines.add(f"control->fuel -= {count};")
