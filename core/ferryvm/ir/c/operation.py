# SPDX-License-Identifier: Apache-2.0
"""Operations as C statements: storage, leaving, calls.

Where control leaves, the frame and the registers are written by functions out of the way, one for
each list of types; so a check costs what runs often one branch.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ferryvm.ir.c.context import (
    ACTIVITY,
    FAILURES,
    FORCED_IN,
    HOST_STACK_LIMIT,
    PrintingContext,
    function_name,
    result_type,
    spelled,
)
from ferryvm.ir.c.expression import Arithmetic
from ferryvm.ir.c.text import Lines
from ferryvm.ir.graph import Body, Boolean, Constant, FrameState, Operation, Value, Virtual
from ferryvm.ir.headroom import frame_headroom
from ferryvm.ir.loop.poll import poll_costs
from ferryvm.ir.operation import SAFEPOINTS
from ferryvm.isa.emitter import Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64, Type


class OperationPrinter(Arithmetic):
    """Prints the operations of one body, one after another."""

    has_room = False
    """The condition that the stack has room for all copies."""

    def __init__(
        self, shared: PrintingContext, body: Body, number: int | None, level: int = 0
    ) -> None:
        """`number`: the function's; None for the region's own. `level`: of a copy."""
        super().__init__(shared.dialect)
        self.level = level
        self.below = level + 1
        """The level of functions that recur as it does, and that it calls."""
        self.used = shared.helpers
        self.shared, self.body, self.number = shared, body, number
        self.lines = Lines()
        self.names: dict[Value, str] = {}
        self.types: dict[Value, str] = {}
        self.bases: set[str] = set()
        self._costs = poll_costs(body)
        """Which of the machine's segments it touches."""
        self._made = 0

    def _name(self, letter: str) -> str:
        """A name for what is no value of the IR."""
        self._made += 1
        return f"{letter}{self._made}"

    def _value(self, value: Value) -> str:
        if isinstance(value, Constant):
            if isinstance(value.type, Boolean):
                return "true" if value.bits else "false"
            return self.constant(value.type, value.bits)
        self.lines.use(value)
        return self.names[value]

    def _define(self, value: Value, text: str) -> None:
        self.names[value] = f"v{len(self.names)}"
        self.types[value] = spelled(self.dialect, value.type)
        self.lines.define(value, text)

    def _operation(self, operation: Operation) -> None:
        if self.shared.choices.forced and operation.name in SAFEPOINTS:
            self._leave_if(f"--{FORCED_IN} == 0", operation, "LEAVE")
        special = getattr(self, f"_do_{operation.name}", None)
        arguments = [self._value(a) for a in operation.arguments]
        if special is not None:
            result = special(operation, *arguments)
        else:
            result = getattr(self, operation.name)(*operation.static, *arguments)
        if operation.type is not None:
            self._define(operation, result)

    def _base(self, name: str) -> str:
        self.bases.add(name)
        return name

    def _do_word(self, operation: Operation) -> str:
        (index,), t = operation.static, operation.type
        assert isinstance(t, Type)
        return self.from_slot(t, f"{self._base('frame')}[{index}]")

    def _do_result(self, operation: Operation) -> str:
        return self._do_word(operation)

    def _do_frame(self, operation: Operation) -> str:
        return self.cast(I64, self._base("frame"))

    def _do_stack_limit(self, operation: Operation) -> str:
        return self.dialect.segments["stack_end"]

    def _do_heap_capacity(self, operation: Operation) -> str:
        return "control->heap_capacity"

    def _do_heap_pointer(self, operation: Operation) -> str:
        return "control->hp"

    def _do_set_heap_pointer(self, operation: Operation, value: str) -> None:
        self.lines.add(f"control->hp = {value};")

    def _do_function_field(self, operation: Operation, function: str) -> str:
        field = operation.static[0]
        assert isinstance(field, int)
        return f"{self.dialect.segments['functions']}[{function} * FERRY_DESCRIPTOR_WORDS + {int(field)}]"

    def _do_table_function(self, operation: Operation, index: str) -> str:
        return f"{self.dialect.segments['table']}[{index}]"

    # --- statics and heap -------------------------------------------------------------------

    def _do_static(self, operation: Operation) -> str:
        (number,), t = operation.static, operation.type
        assert isinstance(t, Type)
        return self.from_slot(t, f"{self._base('statics')}[{number}]")

    def _do_set_static(self, operation: Operation, value: str) -> None:
        t = operation.arguments[0].type
        assert isinstance(t, Type)
        self.lines.add(
            f"{self._base('statics')}[{operation.static[0]}] = {self.to_slot(t, value)};"
        )

    def _do_static_at(self, operation: Operation, index: str) -> str:
        return f"{self._base('statics')}[{index}]"

    def _do_set_static_at(self, operation: Operation, index: str, slot: str) -> None:
        self.lines.add(f"{self._base('statics')}[{index}] = {slot};")

    def _do_heap_load(self, operation: Operation, address: str) -> str:
        return self.helper(f"load_{operation.static[0]}", self._base("heap"), address)

    def _do_heap_store(self, operation: Operation, address: str, value: str) -> None:
        store = self.helper(f"store_{operation.static[0]}", self._base("heap"), address, value)
        self.lines.add(f"{store};")

    def _do_tell(self, operation: Operation, reason: str) -> None:
        """Nothing: nobody asks C code which versions of nests it runs."""

    def _do_canonicalise(self, operation: Operation, *operands: str) -> None:
        t = operation.fact(0, Type)
        size = t.bits // 8
        values = operands[1::2]
        nans = [self.compare(t, Condition.NE, value, value) for value in values]
        self.lines.open(f"if ({self.helper('unlikely', functools.reduce(self.any, nans))}) {{")
        for address, value in zip(operands[::2], values, strict=True):
            bits = self.to_slot(t, self.canonical(t, value))
            store = self.helper(f"store_{size}", self._base("heap"), address, bits)
            self.lines.add(f"{store};")
        self.lines.close()

    # --- leaving ----------------------------------------------------------------------------

    def _leave_if(self, p: str, operation: Operation, status: str, *fields: str) -> None:
        """Go on only if `p` does not hold; else leave in the operation's state."""
        assert operation.state is not None
        self.lines.open(f"if ({self.helper('unlikely', p)}) {{")
        for field in fields:
            self.lines.add(field)
        self._leave(operation.state, f"FERRY_{status}")
        self.lines.close()

    def _leave(self, state: FrameState, status: str) -> None:
        """Leave in a state: nothing follows."""
        self._write(state)
        if state.unpaid:
            self.lines.add(f"control->fuel += {state.unpaid};")
        frame = self._base("frame")
        numbers = f"{self.body.parameters}, {len(state.words)}, {state.pc}"
        leaving = f"leave({self.dialect.passed}, {frame}, {numbers}, {status})"
        if self.number is None:
            self.lines.add(f"return {leaving};")
        else:
            self.lines.add(f"{leaving};")
            self._left()

    def _write(self, state: FrameState) -> None:
        """Write what a state says that memory does not have."""
        for number, value in state.statics:
            assert isinstance(value.type, Type)
            slot = self.to_slot(value.type, self._in_state(value))
            self.lines.add(f"{self._base('statics')}[{number}] = {slot};")
        if state.heap_pointer is not None:
            self.lines.add(f"control->hp = {self._value(state.heap_pointer)};")
        words = [word for word in state.words if word is not None]
        if words:
            types = tuple(None if word is None else word.word_type for word in state.words)
            letters = ("_" if t is None else "ilfd"[list(Type).index(t)] for t in types)
            name = "frame_" + "".join(letters)
            self.shared.frames[name] = types
            values = ", ".join(self._in_state(w) for w in words)
            self.lines.add(f"{name}({self._base('frame')}, {values});")

    def _in_state(self, value: Value) -> str:
        if isinstance(value, Virtual):
            assert isinstance(value.type, Type)
            return self.canonical(value.type, self._value(value.raw))
        return self._value(value)

    def _left(self) -> None:
        """Return, having left."""
        if self.number is None:
            self.lines.add("return control->status;")
        elif self.body.result is None:
            self.lines.add("return 1;")
        else:
            self.lines.add(f"return ({result_type(self.dialect, self.body.result)}){{0, 1}};")

    def _do_trap_if(self, operation: Operation, p: str) -> None:
        if self.has_room and frame_headroom(operation):
            return
        self._leave_if(p, operation, "TRAP", self._trap(operation))

    def _trap(self, operation: Operation) -> str:
        kind = operation.static[0]
        assert isinstance(kind, Trap)
        self.shared.traps.add(kind)
        return f"control->trap = TRAP_{kind.name};"

    def _do_grow_if(self, operation: Operation, p: str, wanted: str) -> None:
        self._leave_if(p, operation, "GROW", f"control->wanted = {wanted};")

    def _do_poll(self, operation: Operation) -> None:
        if not self.shared.choices.polls:
            return
        budget = self._base("budget")
        cost = self._costs[operation]
        # One that takes more than 1 may pass 0, and then it is the one that looks.
        spent = f"--{budget} == 0" if cost == 1 else f"({budget} -= {cost}) <= 0"
        self.lines.open(f"if ({self.helper('unlikely', spent)}) {{")
        self.lines.add(f"{budget} = {self.shared.choices.poll_budget};")
        self._leave_if(self.helper("interrupted", "control"), operation, "INTERRUPTED")
        self.lines.close()

    def _do_check_entry(self, operation: Operation) -> None:
        if operation.static[0] and not self.shared.recursing:
            depth = self.helper("host_stack")
            self._leave_if(f"{depth} < {HOST_STACK_LIMIT}", operation, "LEAVE")
        if not self.level:  # what copies do is soon over
            self._leave_if(self.helper("entered", "control"), operation, "INTERRUPTED")

    def _do_guard(self, operation: Operation, fails: str) -> None:
        assert operation.state is not None
        number = self.shared.guards.index(operation.fact(0, int))
        self.lines.open(f"if ({self.helper('unlikely', fails)}) {{")
        if self.dialect.entry:
            status = "FERRY_GUARD"
            self.lines.add(f"control->exit_id = {number};")
        else:
            often = f"++{ACTIVITY}[{FAILURES + number}] >= {self.shared.choices.guard_limit}"
            status = f"{often} ? FERRY_GUARD : FERRY_LEAVE"
        self._leave(operation.state, status)
        self.lines.close()

    def _do_pay(self, operation: Operation) -> None:
        count, wanted = operation.static
        self._leave_if(f"control->fuel < {wanted}", operation, "LEAVE")
        self.lines.add(f"control->fuel -= {count};")

    # --- calls ------------------------------------------------------------------------------

    def _do_call(self, operation: Operation, *arguments: str) -> str | None:
        number, base = operation.fact(0, int), operation.fact(1, int)
        returned = self._name("r")
        result = self.shared.results[number]
        t = result_type(self.dialect, result)
        self.lines.add(f"const {t} {returned} = {self._call(number, base, arguments)};")
        return self._unwind(operation, returned)

    def _call(self, number: object, base: object, arguments: Sequence[str]) -> str:
        frame = self._base("frame")
        own = f"{frame} + {base}" if base else frame
        assert isinstance(number, int)
        level = 0
        if number in self.shared.recursing and self.number in self.shared.recursing:
            level = self.below
        name = function_name(number, level)
        return f"{name}({', '.join([self.dialect.passed, own, *arguments])})"

    def _unwind(self, operation: Operation, returned: str) -> str | None:
        """The result of a call that returned; where it left, leave too."""
        assert operation.state is not None
        has_left = returned if operation.type is None else f"{returned}.left"
        self.lines.open(f"if ({self.helper('unlikely', has_left)}) {{")
        self._write(operation.state)
        self._left()
        self.lines.close()
        return None if operation.type is None else f"{returned}.value"

    def _do_call_indirect(self, operation: Operation, function: str, *arguments: str) -> str | None:
        candidates, base = operation.static
        assert isinstance(candidates, tuple)
        if not candidates:  # the check of the signature has trapped
            return "0" if operation.type is not None else None
        returned = self._name("r")
        t = result_type(self.dialect, self.shared.results[candidates[0]])
        self.lines.add(f"{t} {returned};")
        self.lines.open(f"switch ({function}) {{")
        for number in candidates:
            called = self._call(number, base, arguments)
            self.lines.add(f"case {number}: {returned} = {called}; break;")
        self.lines.add(f"default: {self.helper('unreachable')};")
        self.lines.close()
        return self._unwind(operation, returned)
