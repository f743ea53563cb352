# SPDX-License-Identifier: Apache-2.0
"""Programs made with the builder do what their functions say, on any path to a program."""

import math

import pytest

import ferryvm
from ferryvm.asm import parse, write
from ferryvm.build import F32, F64, I32, I64, BuildError, Function, Program, Signature
from ferryvm.isa import Type
from ferryvm.listing.encode import encode
from ferryvm.verify import verify


def value(p: Program, main: Function) -> int | float | None:
    """What the program's start function leaves."""
    p.start(main)
    return ferryvm.run(p.build(), "reference").value


def gcd(p: Program) -> Function:
    f = p.function("gcd", {"a": I64, "b": I64}, [I64])
    a, b = f.parameters
    rest = f.local("rest", I64)
    with f.block() as done, f.loop() as again:
        f.local_get(b)
        f.i64_eqz()
        f.br_if(done)
        f.local_get(a)
        f.local_get(b)
        f.i64_rem_s()
        f.local_set(rest)
        f.local_get(b)
        f.local_set(a)
        f.local_get("rest")
        f.local_set("b")
        f.br(again)
    f.local_get(a)
    return f


def test_a_function_with_locals_and_a_loop_runs() -> None:
    p = Program()
    f = gcd(p)
    main = p.function("main", results=[I64])
    main.i64_const(91)
    main.i64_const(35)
    main.call(f)
    assert value(p, main) == 7


def test_no_name_of_a_function_is_reserved() -> None:
    p = Program()
    names = ["main", "start", "start_", "", "two words", "i64"]
    for name in names:
        p.function(name)
    p.start(p.function("halt"))
    program = p.build()
    assert [f.name for f in program.functions] == ["start__", *names, "halt"]
    assert ferryvm.run(program).value is None
    assert ferryvm.assemble(ferryvm.disassemble(program)).functions == program.functions


@pytest.mark.parametrize("name", ["main", "zero"])
def test_the_first_function_of_assembly_has_any_name_and_main_may_be_another(name: str) -> None:
    other = "zero" if name == "main" else "main"
    text = (
        f".function {name}\n call {other}\n halt\n.function {other} -> i64\n i64.const 3\n return"
    )
    assert ferryvm.run(ferryvm.assemble(text)).value == 3


def test_a_program_without_a_start_function_halts_at_once() -> None:
    p = Program()
    p.export(gcd(p))
    program = p.build()
    assert ferryvm.run(program).value is None
    assert [tuple(export) for export in program.exports] == [("gcd", 1)]


def test_a_start_function_may_be_called_and_its_result_is_the_value() -> None:
    p = Program()
    calls = p.static("calls", I64)
    main = p.function("main", results=[I64])
    main.static_get(calls)
    main.i64_eqz()
    with main.if_():
        main.i64_const(1)
        main.static_set(calls)
        main.call(main)
        main.drop()
    main.static_get(calls)
    main.i64_const(41)
    main.i64_add()
    assert value(p, main) == 42


def test_statics_data_tables_and_hosts_are_the_programs() -> None:
    p = Program()
    show = p.host("print_i64", [I64])
    wide = p.static("wide", F32, 0.1)
    p.static("low", I32, -1)
    p.data(8, (-5).to_bytes(8, "little", signed=True))
    double = p.function("double", [I64], [I64])
    double.local_get(double.parameters[0])
    double.dup()
    double.i64_add()
    triple = p.function("triple", [I64], [I64])
    for _ in range(3):
        triple.local_get(triple.parameters[0])
    triple.i64_add()
    triple.i64_add()
    assert p.table(double, triple) == 0
    assert p.table(double) == 2
    main = p.function("main")
    for number in range(2):
        main.i64_const(0)
        main.i64_load(8)
        main.i32_const(number)
        main.call_indirect(Signature((I64,), (I64,)))
        main.host(show)
    main.static_get(wide)
    main.drop()
    p.start(main)
    program = p.build()
    assert ferryvm.run(program, "reference").output == "-10\n-15\n"
    assert [static.bits for static in program.statics] == [0x3DCCCCCD, 0xFFFF_FFFF]
    assert program.table == (1, 2, 1)


def test_literals_are_rounded_once_and_wrap_to_their_bits() -> None:
    p = Program()
    f = p.function("f")
    for number in (-1, 2**64 - 1, -(2**63)):
        f.i64_const(number)
    f.i32_const(True)
    f.f32_const(1 + 2**-24 + 2**-52)
    f.f64_const(math.nan)
    f.f64_const(-0.0)
    f.f64_const(3)
    f.halt()
    assert list(p.build().code.immediates)[1:-1] == [
        2**64 - 1,
        2**64 - 1,
        2**63,
        1,
        0x3F80_0001,
        0x7FF8_0000_0000_0000,
        2**63,
        0x4008_0000_0000_0000,
    ]


def test_a_program_can_be_built_grow_and_be_built_again() -> None:
    p = Program()
    f = p.function("f", results=[I64])
    f.i64_const(1)
    first = p.build()
    g = p.function("g", results=[I64])
    g.call(f)
    assert value(p, g) == 1
    assert len(first.functions) == 2
    f.i64_const(1)
    f.i64_add()
    assert ferryvm.run(p.build()).value == 2


def test_the_start_function_named_last_counts() -> None:
    p = Program()
    for number in (1, 2):
        f = p.function(f"f{number}", results=[I64])
        f.i64_const(number)
        p.start(f)
    assert ferryvm.run(p.build()).value == 2


def test_positions_are_the_source_map_and_a_trap_names_one() -> None:
    p = Program()
    f = p.function("f", results=[I64])
    f.at("x.toy", 1)
    f.i64_const(1)
    with f.at("x.toy", 2, 7):
        f.i64_const(0)
        f.i64_div_s()
    p.start(f)
    with pytest.raises(ferryvm.TrapError, match=r"x\.toy:2:7: trap: integer division by zero"):
        ferryvm.run(p.build())
    assert p.build().source_map.rows == ((2, 0, 1, 1), (3, 0, 2, 7), (5, 0, 1, 1))


def test_the_listing_the_text_and_the_arrays_are_one_program() -> None:
    p = Program()
    p.start(gcd_of_two(p))
    straight = p.build()
    listing = p.listing()
    assert parse(write(listing)).functions == listing.functions
    again = encode(listing)
    assert again.code.tobytes() == straight.code.tobytes()
    optimized = p.build(optimize=True)
    assert len(optimized.code) < len(straight.code)
    assert ferryvm.run(optimized, "reference").value == 6


def gcd_of_two(p: Program) -> Function:
    f = gcd(p)
    main = p.function("main", results=[I64])
    main.i64_const(12)
    main.i64_const(16)
    for _ in range(2):
        main.i64_const(1)
        main.i64_add()
    main.call(f)
    return main


def test_exceptions_are_caught_by_clauses_in_their_order() -> None:
    p = Program()
    problem = p.tag("problem", [I64, F64])
    other = p.tag("other")
    callee = p.function("callee", results=[I64])
    callee.i64_const(1)
    f = p.function("f", results=[I64])
    f.f64_const(0)
    with f.try_(results=[I64]) as outer:
        f.i64_const(7)
        with f.try_(results=[I64], parameters=[I64]) as inner:
            f.call(callee)
            f.i64_add()
            inner.catch(problem)
            f.drop()
            inner.catch_all()
            f.i64_const(3)
        outer.catch(other)
        f.i64_const(4)
        outer.catch_all(record=True)
        for _ in range(4):
            f.drop()
    f.swap()
    f.drop()
    program = p.build()
    verify(program)
    tags = [(clause.tag, clause.depth, clause.record) for clause in program.clauses]
    assert tags == [(0, 1, False), (None, 1, False), (1, 1, False), (None, 1, True)]
    inner_clause, _, outer_clause, _ = program.clauses
    assert outer_clause.start < inner_clause.start
    assert inner_clause.end < outer_clause.end


@pytest.mark.parametrize(("thrown", "expected"), [(0, 11), (1, 107), (2, 1008)])
def test_a_thrown_exception_goes_on_at_its_handler(thrown: int, expected: int) -> None:
    p = Program()
    tag, other = p.tag("tag", [I64]), p.tag("other", [I64])
    callee = p.function("callee", {"n": I64}, [I64])
    for number, kind in ((1, tag), (2, other)):
        callee.local_get("n")
        callee.i64_const(number)
        callee.i64_eq()
        with callee.if_():
            callee.i64_const(6 + number)
            callee.throw(kind)
    callee.i64_const(10)
    main = p.function("main", results=[I64])
    main.i64_const(1)
    with main.try_(results=[I64]) as t:
        main.i64_const(thrown)
        main.call(callee)
        t.catch(tag)
        main.i64_const(99)
        main.i64_add()
        t.catch_all(record=True)
        for _ in range(3):  # the values' slots that the tag has not
            main.drop()
        main.i64_const(999)
        main.i64_add()
        main.swap()
        main.drop()
    main.i64_add()
    assert value(p, main) == expected


def test_a_try_that_covers_nothing_has_no_clauses() -> None:
    p = Program()
    f = p.function("f")
    with f.try_() as t:
        t.catch_all()
    assert p.build().clauses == ()
    verify(p.build())


@pytest.mark.parametrize(
    ("types", "named"),
    [([I64, F32], False), ((I64, F32), False), ({"a": I64, "b": F32}, True)],
)
def test_parameters_are_types_with_names_or_without(types: list[Type], named: bool) -> None:
    p = Program()
    f = p.function("f", types)
    assert [local.type for local in f.parameters] == [I64, F32]
    if named:
        f.local_get("b")
        assert f.stack == (F32,)
    else:
        with pytest.raises(BuildError, match="no local 'b'"):
            f.local_get("b")
