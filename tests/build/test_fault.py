# SPDX-License-Identifier: Apache-2.0
"""What is wrong is told at the line that says it, with what was found and what is allowed."""

import inspect
import re
from collections.abc import Callable

import pytest

from ferryvm.build import F32, F64, I32, I64, BuildError, Function, Program, Signature
from ferryvm.program import Program as Encoded


def wrong(p: Program, f: Function) -> list[tuple[Callable[[], object], str]]:
    """Calls that are refused in a function of (a i64) -> i64 with an i64 and an f64 on its stack,
    and what each is told."""
    other = Program()
    another = p.function("another")
    g = p.function("g", [I64], [I64])
    g.local_get(g.parameters[0])
    low = f.label("low", [I32])
    local = f.local("sum", F32)
    block = f.block()
    return [
        (lambda: f.i64_add(), r"i64_add takes \(i64 i64\), the stack has \(i64 f64\)"),
        (lambda: f.local_set("sum"), r"local_set takes \(f32\), the stack has \(i64 f64\)"),
        (lambda: f.select(), r"select takes \(t t i32\), the stack has \(i64 f64\)"),
        (lambda: f.call(g), r"call takes \(i64\), the stack has \(i64 f64\)"),
        (lambda: f.call(f.i64_add), r"call takes a function of this program, found <bound method"),
        (lambda: f.call(other.function("x")), r"call takes a function of this program"),
        (lambda: f.local_get("summ"), r"local_get: no local 'summ'; did you mean 'sum'\?"),
        (lambda: f.local_get(0), r"local_get takes a local, or its name, found 0"),
        (lambda: another.local_get(local), r"local_get takes a local of this function"),
        (lambda: f.static_get(other.static("s", I64)), r"static_get takes a static of this"),
        (lambda: f.host(other.host("h")), r"host takes a host import of this program"),
        (lambda: f.i64_const(1.5), r"i64_const takes an i64 as an int, found 1\.5"),
        (
            lambda: f.i32_const(1 << 32),
            r"i32_const: 4294967296 is out of range, -2147483648 to 4294967295 are allowed",
        ),
        (lambda: f.f64_const("1"), r"f64_const takes an f64 as a float, found '1'"),
        (lambda: f.f32_const(1e39), r"f32_const takes a finite f32; write math\.inf if"),
        (lambda: f.i64_load(-1), r"i64_load: -1 is out of range, 0 to 4294967295 are allowed"),
        (lambda: f.i64_load("x"), r"i64_load takes a byte offset, found 'x'"),
        (lambda: f.jump(another.label("l")), r"jump takes a label of this function"),
        (lambda: f.jump(block), r"jump takes a label of this function \(br takes a block\)"),
        (lambda: f.jump(low), r"label 'low' expects \(i32\), this jump comes with \(i64 f64\)"),
        (lambda: f.place(low), r"label 'low' expects \(i32\), control arrives with \(i64 f64\)"),
        (lambda: f.label("low"), r"there is already a label 'low'"),
        (lambda: f.jump_table(), r"jump_table takes one label or more, found none"),
        (lambda: f.call_indirect([I64]), r"call_indirect takes a Signature, found \[<Type"),
        (
            lambda: f.call_indirect(Signature((I64,))),
            r"call_indirect takes \(i64 i32\), the stack has \(i64 f64\)",
        ),
        (lambda: f.return_(), r"return_ takes \(i64\), the stack has \(i64 f64\)"),
        (lambda: f.local("a", I64), r"there is already a local 'a'"),
        (lambda: f.local("b", int), r"local 'b': a list of I32, I64, F32, F64 or"),
        (lambda: f.br(block), r"a branch goes to a block that is open, found <block>"),
        (lambda: f.br_table(), r"br_table takes one block or more, found none"),
        (lambda: f.else_(), r"else_ stands in an if, the innermost block is no block"),
        (lambda: f.if_().__enter__(), r"if takes \(i32\), the stack has \(i64 f64\)"),
        (lambda: f.block(parameters=[I32]).__enter__(), r"block takes \(i32\), the stack has"),
    ]


def ready() -> tuple[Program, Function]:
    p = Program()
    f = p.function("f", {"a": I64}, [I64])
    f.i64_const(1)
    f.f64_const(1)
    return p, f


@pytest.mark.parametrize("number", range(len(wrong(*ready()))))
def test_a_refused_call_names_its_line_and_leaves_the_function_as_it_was(number: int) -> None:
    p, f = ready()
    call, message = wrong(p, f)[number]
    before = f.stack, list(f.code.opcodes), list(f.code.immediates), list(f.code.relocations)
    with pytest.raises(BuildError, match=message) as caught:
        call()
    assert (f.stack, f.code.opcodes, f.code.immediates, f.code.relocations) == before
    lines, first = inspect.getsourcelines(wrong)
    assert caught.value.file == __file__
    assert first < caught.value.line < first + len(lines)
    assert str(caught.value).startswith(f"{__file__}:{caught.value.line}: function 'f'") or (
        "another" in str(caught.value)
    )
    f.drop()
    f.return_()
    p.build()


def test_an_empty_stack_and_a_blocks_floor_are_told_apart() -> None:
    p = Program()
    f = p.function("f")
    with pytest.raises(BuildError, match=r"drop takes \(t\), the stack has \(\)$"):
        f.drop()
    f.i64_const(1)
    with f.block(), pytest.raises(BuildError, match=r"has \(\), above what the block cannot take"):
        f.drop()


def test_the_source_position_is_told_too() -> None:
    f = Program().function("f")
    f.at("x.toy", 3, 9)
    with pytest.raises(BuildError, match=r"function 'f' \(x\.toy:3:9\): i64_add takes"):
        f.i64_add()


def unbuildable() -> list[tuple[Callable[[Program, Function], object], str, str]]:
    """Functions that are not whole, the line to blame (a part of it), and what is told."""

    def no_result(p: Program, f: Function) -> None:
        f.i64_const(1)

    def open_block(p: Program, f: Function) -> None:
        f.block().__enter__()

    def no_label(p: Program, f: Function) -> None:
        nowhere = f.label("nowhere")
        f.jump(nowhere)

    return [
        (no_result, "declared = p.function", r"function 'f' ends with \(i64\), \(\) is expected"),
        (open_block, "f.block().__enter__", r"this block has no end"),
        (no_label, "f.jump(nowhere)", r"label 'nowhere' is never placed"),
    ]


@pytest.mark.parametrize("number", range(3))
def test_a_function_that_is_not_whole_names_the_line_that_began_it(number: int) -> None:
    fill, line, message = unbuildable()[number]
    p = Program()
    declared = p.function("f")
    fill(p, declared)
    with pytest.raises(BuildError, match=message) as caught:
        p.build()
    with open(__file__, encoding="utf-8") as file:
        assert line in file.read().splitlines()[caught.value.line - 1]


def test_ends_of_blocks_are_checked() -> None:
    f = Program().function("f")
    missing = pytest.raises(BuildError, match=r"this block ends with \(i64\), the stack has \(\)")
    with missing, f.block(results=[I64]):
        pass
    f = Program().function("f")
    extra = pytest.raises(BuildError, match=r"this block ends with \(\), the stack has \(i32\)")
    with extra, f.block():
        f.i32_const(1)
    f = Program().function("f")
    f.i32_const(1)
    no_else = pytest.raises(BuildError, match=r"this if has no else_, which would leave \(i64\)")
    with no_else, f.if_(results=[I64]):
        f.i64_const(1)
    f = Program().function("f")
    f.i32_const(1)
    with f.if_():
        f.else_()
        with pytest.raises(BuildError, match="this if has its else_ already"):
            f.else_()


def test_faults_of_programs() -> None:
    p = Program()
    f = p.function("f", [I64])
    for call, message in (
        (lambda: p.function("f"), "there is already a function 'f'"),
        (lambda: p.function(3), "the name of a function is a str, found 3"),
        (lambda: p.function("g", [int]), "function 'g': a list of I32, I64, F32, F64 or"),
        (lambda: p.static("s", I64, 2.5), "static 's': an int is expected, found 2.5"),
        (lambda: p.static("s", I32, 1 << 32), "static 's': 4294967296 is out of range"),
        (lambda: p.static("s", F64, "x"), "static 's': a float is expected, found 'x'"),
        (lambda: p.host("h", [], [I64, I64]), "host import 'h': 2 types, at most 1 are"),
        (lambda: p.function("many", [I64] * 1001), "function 'many': 1001 types, at most 1000"),
        (lambda: p.tag("many", [I64] * 5), "tag 'many': 5 types, at most 4 are allowed"),
        (
            lambda: p.data(4, b"123") or p.data(0, b"12345"),
            "5 bytes of data at 0: 3 bytes are at 4",
        ),
        (lambda: p.data((1 << 32) - 1, b"12"), "address of data: 4294967295 is out of range"),
        (lambda: p.data(-1, b""), "address of data: -1 is out of range"),
        (lambda: p.data(0, "text"), "data at 0: bytes are expected, found 'text'"),
        (lambda: p.start(f), "start takes a function without parameters"),
        (lambda: p.start(None), "start takes a function of this program, found None"),
        (lambda: p.table(Program().function("f")), "table takes a function of this program"),
        (lambda: p.export(f) or p.export(f), "there is already a export 'f'"),
        (lambda: p.tag("t") and p.tag("t"), "there is already a tag 't'"),
    ):
        with pytest.raises(BuildError, match=re.escape(message)):
            call()  # type: ignore[no-untyped-call]  # a lambda
    assert isinstance(p.build(), Encoded)


def test_a_function_has_no_more_locals_than_the_verifier_allows() -> None:
    f = Program().function("f", [I64])
    for _ in range(1 << 15):
        f.local(None, I64)
    with pytest.raises(BuildError, match="there are 32768 locals, which is the most"):
        f.local(None, I64)
