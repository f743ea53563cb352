# SPDX-License-Identifier: Apache-2.0
"""Structured control means what it means in WebAssembly, over flat code that the verifier takes."""

import contextlib
import functools
import random
from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.build import F64, I32, I64, Block, BuildError, Function, Program, Signature
from ferryvm.build.body import method_name
from ferryvm.isa import INSTRUCTIONS, Immediate, Type
from ferryvm.verify import verify


def results(p: Program, main: Function) -> list[int]:
    """What the program prints."""
    p.start(main)
    program = p.build()
    plain = ferryvm.run(program, "reference").output
    assert ferryvm.run(p.build(optimize=True), "reference").output == plain
    return [int(line) for line in plain.splitlines()]


def test_a_branch_takes_results_along_and_leaves_the_rest_behind() -> None:
    p = Program()
    show = p.host("print_i64", [I64])
    for types in ([], [I64], [I64, I64, I64]):
        f = p.function(f"f{len(types)}")
        f.i64_const(100)
        with f.block(results=types) as outer:
            f.f64_const(1)
            with f.block():
                f.i32_const(5)
                for number in range(len(types)):
                    f.i64_const(number)
                f.br(outer)
            for _ in types:
                f.i64_const(9)
            f.br(outer)
        for _ in range(len(types) + 1):
            f.host(show)
    main = p.function("main")
    for number in (0, 1, 3):
        main.call(p._functions[f"f{number}"])
    assert results(p, main) == [100, 0, 100, 2, 1, 0, 100]


@pytest.mark.parametrize("taken", [0, 1])
def test_br_if_leaves_the_stack_as_it_was_where_it_is_not_taken(taken: int) -> None:
    p = Program()
    show = p.host("print_i64", [I64])
    f = p.function("main")
    with f.block(results=[I64]) as b:
        f.i64_const(7)
        f.i64_const(8)
        f.i32_const(taken)
        f.br_if(b)
        f.i64_add()
    f.host(show)
    assert results(p, f) == [8 if taken else 15]


@pytest.mark.parametrize("index", range(5))
def test_br_table_goes_to_the_block_of_that_number(index: int) -> None:
    p = Program()
    show = p.host("print_i64", [I64])
    f = p.function("main")
    with f.block(results=[I64]) as a:
        f.f64_const(1)
        with f.block(results=[I64]) as b:
            with f.block(results=[I64]) as c:
                f.f64_const(2)
                f.i64_const(10)
                f.i32_const(index)
                f.br_table(a, b, c)
            f.i64_const(1)
            f.i64_add()
        f.i64_const(2)
        f.i64_add()
        f.swap()
        f.drop()
    f.host(show)
    assert results(p, f) == [{0: 10, 1: 12}.get(index, 13)]


@pytest.mark.parametrize("condition", [0, 1])
def test_an_if_with_parameters_takes_one_part(condition: int) -> None:
    p = Program()
    show = p.host("print_i64", [I64])
    f = p.function("main")
    f.i64_const(5)
    f.i32_const(condition)
    with f.if_(parameters=[I64], results=[I64]):
        f.i64_const(1)
        f.i64_add()
        f.else_()
        f.i64_const(1)
        f.i64_sub()
    f.i32_const(condition)
    with f.if_(parameters=[I64], results=[I64]):
        f.i64_const(2)
        f.i64_mul()
    f.host(show)
    assert results(p, f) == [12 if condition else 4]


def test_a_loop_with_parameters_starts_again_with_new_ones() -> None:
    p = Program()
    show = p.host("print_i64", [I64])
    f = p.function("main")
    f.i64_const(10)
    with f.loop(parameters=[I64], results=[I64]) as again:
        f.i64_const(3)
        f.i64_sub()
        f.dup()
        f.i64_const(0)
        f.i64_gt_s()
        f.br_if(again)
    f.host(show)
    assert results(p, f) == [-2]


def test_both_parts_of_an_if_may_leave() -> None:
    p = Program()
    f = p.function("f", {"a": I32}, [I64])
    f.local_get("a")
    with f.if_(results=[I64]):
        f.i64_const(1)
        f.return_()
        f.else_()
        f.i64_const(2)
        f.return_()
    assert not f.is_reachable
    verify(p.build())


def test_code_that_cannot_be_reached_takes_any_operand_but_not_a_wrong_one() -> None:
    p = Program()
    f = p.function("f", results=[I64])
    f.trap()
    f.i64_add()
    f.drop()
    f.select()
    f.drop()
    f.dup()
    f.swap()
    f.i32_const(1)
    with pytest.raises(ferryvm.FerryError, match=r"i64_add takes \(i64 i64\), the stack has"):
        f.i64_add()
    f.drop()
    with f.block(results=[I64]) as b:
        f.i64_const(1)
        f.br(b)
    with f.block(results=[F64]):
        f.trap()
        f.f64_add()
    f.call_indirect(Signature((F64,), (I64,)))
    verify(p.build())


def test_labels_work_across_blocks_if_operands_agree() -> None:
    p = Program()
    show = p.host("print_i64", [I64])
    f = p.function("main")
    out = f.label("out")
    back = f.label("back", [I64])
    f.i64_const(3)
    f.place(back)
    with f.loop(parameters=[I64]) as again:
        f.dup()
        f.host(show)
        f.i64_const(1)
        f.i64_sub()
        f.dup()
        f.i64_eqz()
        with f.if_(parameters=[I64], results=[I64]):
            f.drop()
            f.jump(out)
        f.dup()
        f.i64_const(2)
        f.i64_eq()
        f.jump_if(back)
        f.br(again)
    f.place(out)
    assert results(p, f) == [3, 2, 1]


class _Choice:
    """Random code of a function, with a model of nothing: the builder says what fits."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.p = Program()
        self.callee = self.p.function("callee", [I64, F64], [I64, I32])
        self.callee.i64_const(1)
        self.callee.i32_const(1)
        self.tag = self.p.tag("t", [F64])
        self.f = self.p.function("f", [I64, F64], [I64])
        self.open: list[Block] = []

    def types(self) -> list[Type]:
        return [
            self.random.choice([I64, I32, F64]) for _ in range(self.random.choice([0, 0, 1, 2]))
        ]

    def bring(self, types: list[Type]) -> None:
        """Have exactly these operands above the floor."""
        for _ in self.f.stack:
            self.f.drop()
        for t in types:
            getattr(self.f, f"{t}_const")(1)

    def code(self, depth: int) -> None:
        f = self.f
        for _ in range(self.random.randrange(1, 6)):
            choice = self.random.randrange(12)
            if choice < 4:
                getattr(f, f"{self.random.choice([I64, I32, F64])}_const")(2)
            elif choice == 4 and f.stack:
                self.random.choice([f.dup, f.drop])()
            elif choice == 5 and self.open:
                block = self.random.choice(self.open)
                for t in block.target[1]:
                    getattr(f, f"{t}_const")(3)
                self.random.choice([f.br, self.branch_if])(block)
            elif choice == 6 and self.open:
                block = self.random.choice(self.open)
                same = [each for each in self.open if each.target[1] == block.target[1]]
                for t in (*block.target[1], I32):
                    getattr(f, f"{t}_const")(3)
                f.br_table(*same)
            elif choice == 7:
                self.bring([I64, F64])
                f.call(self.callee)
            elif choice == 8:
                self.bring([I64])
                self.random.choice([f.return_, f.trap])()
            elif depth:
                self.block(depth)

    def branch_if(self, block: Block) -> None:
        self.f.i32_const(1)
        self.f.br_if(block)

    def block(self, depth: int) -> None:
        f = self.f
        kind = self.random.choice(["block", "loop", "if_", "try_"])
        parameters, ends = self.types(), self.types()
        for t in parameters:
            getattr(f, f"{t}_const")(4)
        if kind == "if_":
            f.i32_const(1)
        with getattr(f, kind)(results=ends, parameters=parameters) as block:
            self.open.append(block)
            self.code(depth - 1)
            self.bring(ends)
            if kind == "if_" and (parameters != ends or self.random.random() < 0.5):
                f.else_()
                self.code(depth - 1)
                self.bring(ends)
            if kind == "try_":
                block.catch(self.tag)
                self.code(depth - 1)
                self.bring(ends)
                block.catch_all(record=True)
                self.bring(ends)
            self.open.pop()


@pytest.mark.parametrize("seed", range(150))
def test_what_the_builder_takes_the_verifier_takes(seed: int) -> None:
    choice = _Choice(seed)
    choice.code(4)
    choice.bring([I64])
    verify(choice.p.build())
    verify(choice.p.build(optimize=True))


def _try(*attempts: Callable[[], None]) -> None:
    """The first of these calls that the builder takes."""
    for attempt in attempts:
        with contextlib.suppress(BuildError):
            attempt()
            return


@pytest.mark.parametrize("seed", range(100))
def test_flat_code_that_the_builder_takes_the_verifier_takes(seed: int) -> None:
    chance = random.Random(seed)
    p = Program()
    f = p.function("f", [I32], [I64])
    labels = [f.label() for _ in range(6)]
    unplaced = list(labels)
    chance.shuffle(unplaced)
    rows = [row for row in INSTRUCTIONS if row.immediate is Immediate.NONE]
    for _ in range(200):
        row, label = chance.choice(rows), chance.choice(labels)
        constant = chance.choice([f.i64_const, f.i32_const, f.f64_const])
        jumps = [functools.partial(jump, label) for jump in (f.jump_if, f.jump_unless)]
        choices = [
            getattr(f, method_name(row)),
            functools.partial(constant, 1),
            functools.partial(chance.choice(jumps)),
            functools.partial(f.local_get, f.parameters[0]),
            functools.partial(f.jump_table, *chance.choices(labels, k=3)),
            functools.partial(f.jump, label) if chance.random() < 0.1 else f.drop,
        ]
        if unplaced and chance.random() < 0.1:
            with contextlib.suppress(BuildError):
                f.place(unplaced[-1])
                unplaced.pop()
        chance.shuffle(choices)
        _try(*choices)
    for _ in f.stack:
        f.drop()
    f.i64_const(1)
    f.return_()
    for label in unplaced:
        f.place(label)
        f.trap()
    verify(p.build())
