# SPDX-License-Identifier: Apache-2.0
"""Deferred canonicalisation: make a NaN canonical where its bits are observed, not where it is
computed.

Arithmetic yields the canonical NaN, which costs a comparison and a selection after each operation,
on the critical path of a loop. But arithmetic on any NaN yields some NaN, which is made canonical
again, so inside a computation the bits of a NaN are not observable. They are observable to stores,
reinterpretations, calls, returns and exits.

A *raw* value is one whose NaN may have any bits although the program's is canonical. Operands of
arithmetic become raw. A parameter becomes raw if all its arguments are canonical or raw; that of a loop, whose
first value is a word of memory with any bits, gets a raw one beside it. Where bits
are observed the pass inserts `canonical`. In the state of an exit that operation is virtual, in no
block: the exit computes it, since exits are rare.

Requires no other pass; runs late, since others would move the operation again. (No published source
is known to us. WebAssembly engines make NaNs canonical after each operation if determinism is
required; this is the same rule, sunk to its observers.)
"""

from __future__ import annotations

import math

from ferryvm.ir.control_flow_graph import edges_to
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Constant,
    Edge,
    FrameState,
    Operation,
    Parameter,
    Value,
    Virtual,
)
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.use import substitute
from ferryvm.isa.type import CANONICAL_NAN, Type, to_float

BLIND = frozenset(
    [
        "apply",
        "fadd",
        "fsub",
        "fmul",
        "fdiv",
        "ffma",
        "fsqrt",
        "fceil",
        "ffloor",
        "ftrunc",
        "fnearest",
        "compare",
        "promote",
        "demote",
        "canonical",
        "to_int_s",
        "to_int_u",
    ]
)
"""Operations that do not distinguish NaNs: their result does not depend on an operand's NaN bits,
or is only used after canonicalisation."""

_NEVER_NAN = frozenset({"apply", "to_float_s", "to_float_u", "canonical"})
"""Operations that yield no NaN except the canonical one."""


def defer_canonicalisation(body: Body) -> None:
    """Let computations work on raw values."""
    _separate_first_values(body)
    _Relaxation(body).run()
    remove_dead_code(body)


def _separate_first_values(body: Body) -> None:
    """Give loops their own parameters for floats whose first value may be any NaN, as one from
    memory may, and whose next ones are results of arithmetic. So that arithmetic works on raw
    values; what observes bits sees the first value itself in the first iteration:

        b0(%first, %x):  %seen = select %first, %word, %x
    """
    incoming = edges_to(body)
    users: dict[Value, list[Operation]] | None = None
    for block in body.blocks[1:]:
        edges = incoming[block]
        entries = [edge for edge in edges if not edge.is_back]
        if len(entries) != 1 or len(edges) < 2:
            continue
        found = [
            (index, parameter)
            for index, parameter in enumerate(block.parameters)
            if parameter.type in CANONICAL_NAN
            and not _is_canonical_value(entries[0].arguments[index])
            and all(_is_canonical_value(e.arguments[index]) for e in edges if e.is_back)
        ]
        if not found:
            continue
        if users is None:
            users = _arithmetic_users(body)
        found = [(index, parameter) for index, parameter in found if parameter in users]
        if found:
            _separate(body, block, entries[0], edges, found, users)


def _separate(
    body: Body,
    block: Block,
    entry: Edge,
    edges: list[Edge],
    found: list[tuple[int, Parameter]],
    users: dict[Value, list[Operation]],
) -> None:
    is_first = Parameter(BOOLEAN)
    seen: dict[Value, Value] = {}
    made: list[Operation] = []
    for index, parameter in found:
        first = entry.arguments[index]
        own = Parameter(parameter.type)
        seen[parameter] = selected = Operation("select", own.type, (), (is_first, first, own))
        selected.pc = block.pc
        made.append(selected)
        for user in users[parameter]:
            user.arguments = tuple([own if a is parameter else a for a in user.arguments])
        block.parameters[index] = own
    substitute(body.blocks, seen)
    block.parameters.append(is_first)
    block.operations[:0] = made
    for edge in edges:
        edge.arguments.append(body.constant(BOOLEAN, int(edge is entry)))
    before = next(source for source in body.blocks if entry in source.end.edges)
    for index, _ in found:
        first = entry.arguments[index]
        canonical = Operation("canonical", first.type, (first.word_type,), (first,))
        canonical.pc = block.pc
        before.operations.append(canonical)
        entry.arguments[index] = canonical


def _is_canonical_value(value: Value) -> bool:
    if isinstance(value, Constant):
        return value.type in CANONICAL_NAN and _is_canonical(value)
    return isinstance(value, Operation) and value.name in _NEVER_NAN


def _arithmetic_users(body: Body) -> dict[Value, list[Operation]]:
    """The operations that do not distinguish NaNs, by operand; terminators are none."""
    found: dict[Value, list[Operation]] = {}
    for block in body.blocks:
        for operation in block.operations:
            if operation.name in BLIND:
                for value in {*operation.arguments}:
                    found.setdefault(value, []).append(operation)
    return found


class _Relaxation:
    def __init__(self, body: Body) -> None:
        self.body = body
        self.raw = _raw_parameters(body)
        self.virtual: dict[Value, Operation] = {}
        """The virtual canonical value of a raw one, for states."""
        self.states: dict[FrameState, FrameState] = {}

    def run(self) -> None:
        for block in self.body.blocks:
            self._block(block)

    def _block(self, block: Block) -> None:
        made: dict[Value, Operation] = {}
        """Canonical values of raw parameters, computed in this block."""
        operations: list[Operation] = []

        def seen(value: Value) -> Value:
            """A value whose bits are observed."""
            if value not in self.raw:
                return value
            if value not in made:
                made[value] = Operation("canonical", value.type, (value.type,), (value,))
                operations.append(made[value])
            return made[value]

        for operation in (*block.operations, block.end):
            if operation.name in BLIND:
                operation.arguments = tuple(self._unwrapped(a) for a in operation.arguments)
            else:
                operation.arguments = tuple(seen(a) for a in operation.arguments)
            if operation.state is not None:
                operation.state = self._state(operation.state)
            if operation is not block.end:
                operations.append(operation)
        for edge in block.end.edges:
            edge.arguments = [
                self._unwrapped(a) if p in self.raw else seen(a)
                for p, a in zip(edge.block.parameters, edge.arguments, strict=True)
            ]
        block.operations = operations

    @staticmethod
    def _unwrapped(value: Value) -> Value:
        if isinstance(value, Operation) and value.name == "canonical":
            return value.arguments[0]
        return value

    def _state(self, state: FrameState) -> FrameState:
        found = self.states.get(state)
        if found is None:
            new: dict[Value, Value] = {}
            for value in state.values():
                if value.type in CANONICAL_NAN:  # a float
                    seen = self._virtual(value)
                    if seen is not value:
                        new[value] = seen
            found = self.states[state] = state.replace(new) if new else state
        return found

    def _virtual(self, value: Value) -> Value:
        raw = self._unwrapped(value)
        if raw is value and value not in self.raw:
            return value
        if raw not in self.virtual:
            self.virtual[raw] = Virtual(raw)
        return self.virtual[raw]


def _raw_parameters(body: Body) -> set[Value]:
    """Float parameters whose arguments are all canonical or raw."""
    incoming = edges_to(body)
    places = [
        (parameter, block, index)
        for block in body.blocks[1:]
        for index, parameter in enumerate(block.parameters)
        if isinstance(parameter.type, Type) and parameter.type.is_float
    ]
    raw: set[Value] = {parameter for parameter, _, _ in places}

    def is_fine(value: Value) -> bool:
        if isinstance(value, Parameter):
            return value in raw
        if isinstance(value, Constant):
            return _is_canonical(value)
        return isinstance(value, Operation) and value.name in _NEVER_NAN

    has_changed = True
    while has_changed:
        has_changed = False
        for parameter, block, index in places:
            if parameter in raw and not all(
                is_fine(edge.arguments[index]) for edge in incoming[block]
            ):
                raw.discard(parameter)
                has_changed = True
    return raw


def _is_canonical(constant: Constant) -> bool:
    t = constant.type
    assert isinstance(t, Type)
    value = to_float(t, constant.bits)
    return not math.isnan(value) or constant.bits == CANONICAL_NAN[t]
