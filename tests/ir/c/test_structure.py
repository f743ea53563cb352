# SPDX-License-Identifier: Apache-2.0
"""Random graphs of blocks as C, nested and flat, do what the blocks say."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path

import pytest

from ferryvm.ir.c import C11, Choices, module_text
from ferryvm.ir.c.structure import DEEPEST, structure
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Constant,
    Edge,
    FrameState,
    Module,
    Operation,
    Parameter,
    Terminator,
    Value,
)
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.declaration import declarations

from .native import COMPILERS, load, needs_compiler

BODIES = 40
MASK = (1 << 64) - 1


def constant(bits: int) -> Constant:
    return Constant(I64, bits)


def pure(block: Block, name: str, *arguments: Value) -> Operation:
    made = Operation(name, I64, (I64,), arguments)
    block.operations.append(made)
    return made


def random_body(number: int, random_: random.Random, blocks: int) -> Body:
    """A function (x, n): each block changes x, takes 1 from n, and leaves at a pc of its own when
    n is 0. Edges go anywhere, with the values of both passed straight or crossed."""
    body = Body(f"f{number}", number, 0, False, (I64,))
    entry = Block("entry", 0)
    entry.parameters = [Parameter(I64), Parameter(I64)]
    made = [Block(f"b{place}", place) for place in range(blocks)]
    for block in made:
        block.parameters = [Parameter(I64), Parameter(I64), Parameter(I64)]
    body.blocks = [entry, *made]
    first, second = entry.parameters
    entry.terminator = Terminator("jump", edges=(Edge(made[0], [first, constant(7), second]),))
    for place, block in enumerate(made):
        x, y, n = block.parameters
        mixed = pure(block, "add", pure(block, "mul", x, constant(6364136223846793005)), y)
        mixed = pure(block, "add", mixed, constant(place * 2 + 1))
        rest = pure(block, "sub", n, constant(1))
        is_over = Operation("compare", BOOLEAN, (I64, Condition.EQ), (rest, constant(0)))
        state = FrameState(place, (None, None, mixed, y))
        block.operations += [is_over, Operation("guard", None, (place,), (is_over,), state)]
        block.terminator = _end(block, made, random_, mixed, y, rest)
    return body


def _end(
    block: Block, made: list[Block], random_: random.Random, x: Value, y: Value, n: Value
) -> Terminator:
    kind = random_.choice(["jump", "branch", "branch", "branch", "switch", "return"])
    if kind == "return":
        return Terminator("return", (), (pure(block, "add", x, y),))
    count = {"jump": 1, "branch": 2, "switch": random_.randint(1, 4)}[kind]
    edges = []
    for _ in range(count):
        near = made[min(max(made.index(block) + random_.randint(-2, 3), 0), len(made) - 1)]
        to = random_.choice([near, near, random_.choice(made)])
        passed = random_.choice([[x, y, n], [y, x, n], [y, block.parameters[0], n]])
        edges.append(Edge(to, passed))
    high = pure(block, "shr_u", x, constant(61))
    if kind == "switch":
        return Terminator("switch", (), (high,), edges=tuple(edges))
    if kind == "jump":
        return Terminator("jump", edges=tuple(edges))
    p = Operation("compare", BOOLEAN, (I64, Condition.LT_U), (high, constant(4)))
    block.operations.append(p)
    return Terminator("branch", (), (p,), edges=tuple(edges))


def run(body: Body, x: int, n: int) -> tuple[int, int]:
    """What a body comes to, block by block: the pc where it left or -1, and a word."""
    block, values = (
        body.blocks[0],
        {body.blocks[0].parameters[0]: x, body.blocks[0].parameters[1]: n},
    )

    def bits(value: Value) -> int:
        return value.bits if isinstance(value, Constant) else values[value]  # type: ignore[index]

    while True:
        for operation in block.operations:
            a = [bits(argument) for argument in operation.arguments]
            match operation.name:
                case "add":
                    result = a[0] + a[1] & MASK
                case "sub":
                    result = a[0] - a[1] & MASK
                case "mul":
                    result = a[0] * a[1] & MASK
                case "shr_u":
                    result = a[0] >> a[1]
                case "compare":
                    result = a[0] == a[1] if operation.static[1] is Condition.EQ else a[0] < a[1]
                case _:
                    assert operation.state is not None
                    if a[0]:
                        return operation.state.pc, bits(operation.state.words[2])  # type: ignore[arg-type]
                    continue
            values[operation] = result  # type: ignore[index]
        end = block.end
        if end.name == "return":
            return -1, bits(end.arguments[0])
        edge = end.edges[0]
        if end.name == "branch" and not bits(end.arguments[0]):
            edge = end.edges[1]
        if end.name == "switch":
            edge = end.edges[min(bits(end.arguments[0]), len(end.edges) - 1)]
        passed = [bits(argument) for argument in edge.arguments]
        block = edge.block
        values.update(zip(block.parameters, passed, strict=True))


def caller(count: int) -> Body:
    """A region that calls function `word 2` with words 3 and 4, and stores what it returns."""
    body = Body("caller", count, 0, True, ())
    block = Block("entry", 0)
    words = [Operation("word", I64, (place,)) for place in (2, 3, 4)]
    empty = FrameState(99, (None, None))
    call = Operation("call_indirect", I64, (tuple(range(count)), 16), tuple(words), empty)
    store = Operation("set_static", None, (0,), (call,))
    block.operations = [*words, call, store]
    block.terminator = Terminator("leave", (), (), empty)
    body.blocks = [block]
    return body


@pytest.mark.rotate("form", most=1)
@needs_compiler
@pytest.mark.parametrize("form", ["nested", "flat"])
def test_any_graph_of_blocks_does_in_c_what_its_blocks_say(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if form == "flat":
        monkeypatch.setattr("ferryvm.ir.c.structure.DEEPEST", -1)
    random_ = random.Random(20261121)
    bodies = [random_body(n, random_, random_.randint(1, 14)) for n in range(BODIES)]
    module = Module("graphs", caller(BODIES), dict(enumerate(bodies)), False)
    text = module_text(module, C11, declarations(C11), Choices())
    assert ("for (;;)" in text) == (form != "flat")
    assert "const uint64_t t1 = " in text  # a circle of values passed
    library = load(text, tmp_path, COMPILERS[0])
    stack, statics = (ctypes.c_uint64 * 64)(), (ctypes.c_uint64 * 1)()
    control = ControlBlock()
    control.stack, control.statics = ctypes.addressof(stack), ctypes.addressof(statics)
    for number, body in enumerate(bodies):
        for x, n in ((1, 1), (0xABCDEF, 5), (0x1234_5678_9ABC_DEF0, 40), (3 << 61, 300)):
            control.fp, statics[0] = 0, 0
            stack[2], stack[3], stack[4] = number, x, n
            status = library.ferry_region(ctypes.byref(control))
            pc, word = run(body, x, n)
            found = (-1, statics[0]) if control.pc == 99 else (control.pc, stack[16 + 2])
            assert status == Status.LEAVE
            assert found == (pc, word), f"function {number} of {x:#x}, {n}"
            assert control.fp == (0 if pc < 0 else 16)


def chain(length: int) -> Body:
    body = Body("chain", 0, 0, False, (I64,))
    body.blocks = [Block(f"b{place}", place) for place in range(length)]
    body.blocks[0].parameters = [Parameter(I64)]
    for block, to in zip(body.blocks, body.blocks[1:], strict=False):
        p = Operation("compare", BOOLEAN, (I64, Condition.EQ), (body.blocks[0].parameters[0],) * 2)
        block.operations = [p]
        last = Edge(body.blocks[-1], [])
        block.terminator = Terminator("branch", (), (p,), edges=(Edge(to, []), last))
    body.blocks[-1].terminator = Terminator("return", (), (body.blocks[0].parameters[0],))
    return body


def test_what_would_nest_too_deep_is_printed_flat() -> None:
    assert structure(chain(DEEPEST)).inlined
    deep = structure(chain(10 * DEEPEST))
    assert not deep.inlined
    assert not deep.heads
    assert len(deep.order) == 10 * DEEPEST


def test_every_block_has_one_place() -> None:
    random_ = random.Random(7)
    for number in range(200):
        body = random_body(number, random_, random_.randint(1, 20))
        found = structure(body)
        listed = [block for blocks in found.after.values() for block in blocks]
        listed += [block for blocks in found.behind.values() for block in blocks]
        listed += [*found.inlined, body.blocks[0]]
        assert len(listed) == len(set(listed)) == len(found.order)
        assert set(listed) == set(found.order)
