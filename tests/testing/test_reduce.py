# SPDX-License-Identifier: Apache-2.0
"""Reducing keeps the disagreement, passes the verifier, and gets down to a few instructions."""

from __future__ import annotations

import contextlib
import random

import pytest

import ferryvm
from ferryvm.backend import Code, Options, RefusalError
from ferryvm.errors import FerryError
from ferryvm.isa import BY_MNEMONIC
from ferryvm.isa.type import F32, F64, I32, I64, Type
from ferryvm.listing.encode import encode
from ferryvm.program import Program
from ferryvm.region.region import Region
from ferryvm.testing import Differ
from ferryvm.testing.bisect import Bisector, DivergenceMode
from ferryvm.testing.disagreement import showing
from ferryvm.testing.generate import LIMITS, generate
from ferryvm.testing.reduction import Reduction, reduce
from ferryvm.testing.reduction.interest import size
from ferryvm.testing.reduction.number import literal, simplicity
from ferryvm.testing.reduction.relist import relist
from ferryvm.testing.reduction.type_cut import without_types
from ferryvm.testing.reduction.unit import Units
from ferryvm.testing.schedule import Schedule
from ferryvm.verify import VerifyError, verify

from ..double.compiler import with_compiler
from ..double.meaning import with_wrong
from ..tier import nightly, sample
from .test_bisect import FLOATS, PROGRAM

LONG = 1e6
"""Seconds that no reduction here takes: what is found must not depend on the clock."""


def differ(bad: str) -> Differ:
    return Differ([bad], registry=with_wrong(), limits=LIMITS, most=20_000)


def reduced(bad: str, text: str) -> Reduction:
    program = ferryvm.assemble(text) if text.lstrip().startswith(".") else ferryvm.compile(text)
    found = reduce(differ(bad), bad, verify(program), LONG)
    assert found is not None
    assert found.is_complete
    return found


def mnemonics(program: Program) -> list[str]:
    lines = ferryvm.disassemble(program).splitlines()
    return [line.split()[0] for line in lines if line.startswith("    ")]


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        ("wrong-shift", ["i64.const", "i64.const", "i64.shl", "halt"]),
        nightly(("wrong-operands", ["i64.const", "i64.const", "i64.sub", "halt"])),
        nightly(("wrong-uncounted", ["i64.const", "i64.const", "i64.sub", "halt"])),
        ("wrong-return", ["call", "halt", "i64.const", "return"]),
        nightly(("wrong-raise", ["i64.const", "i64.const", "i64.mul", "halt"])),
        ("wrong-sp", ["i64.const", "halt"]),
    ],
)
def test_wrong_instruction_is_left_with_its_operands(bad: str, expected: list[str]) -> None:
    found = reduced(bad, PROGRAM)
    assert mnemonics(found.program) == expected
    assert found.signature.bad == bad
    again = Bisector(differ(bad), bad, verify(found.program)).find(found.signature.mode)
    assert again is not None
    assert again.mnemonic == found.signature.mnemonic


@pytest.mark.nightly
def test_arithmetic_in_the_callers_environment_is_left_with_its_operands() -> None:
    text, name = verify(ferryvm.compile(FLOATS)), "wrong-environment"
    found = reduce(differ(name), name, text, LONG, schedule=Schedule.ENVIRONMENT)
    assert found is not None
    assert mnemonics(found.program) == ["f64.const", "f64.const", "f64.add", "halt"]
    assert found.signature.environment != "usual"
    name = repr(found.signature.environment)
    assert str(found.signature).endswith(f"in the floating-point environment {name}")


@pytest.mark.nightly
def test_fault_of_leaving_after_three_instructions_keeps_three() -> None:
    found = reduced(
        "wrong-leaving", "(define total 5) (define (f x) (* x 2)) (f (f (f (+ total 1))))"
    )
    assert found.signature.mode is DivergenceMode.MOVED
    assert len(found.program.code) <= 10
    assert len(found.program.statics) == 1
    assert showing(differ("wrong-leaving"), verify(found.program)) is not None


def test_disagreement_of_other_backends_is_not_taken_for_the_same() -> None:
    # The shift goes wrong first; the multiplication, which would do as well, is another fault.
    found = reduced("wrong-shift", "(define a 3) (define b (<< a 40)) (* b (<< b 33))")
    assert found.signature.mnemonic == "i64.shl"
    assert "i64.mul" not in mnemonics(found.program)


@pytest.mark.nightly
def test_literals_become_simple() -> None:
    found = reduced("wrong-operands", "(define a 123456789) (- a 987654321)")
    literals = found.program.code.immediates.tolist()
    assert all(bits in (0, 1, (1 << 64) - 1) for bits in literals)


STATIC = """
.static s i64 = 0
.static t i64 = 36
.function main
i64.const 3
static.get t
i64.shl
static.set s
halt
"""

INDIRECT = """
.table f
.table g
.function main
i64.const 3
i32.const 1
call_indirect (i64) -> (i64)
halt
.function f (i64) -> (i64)
local.get 0
return 1
.function g (i64) -> (i64)
.local f64 i64
local.get 0
i64.const 50
i64.shl
return 1
"""

TABLE = """
.function main
.local i64
i32.const 1
jump_table A B C
:A
halt
:B
i64.const 7
i64.const 40
i64.shl
local.set 0
local.get 0
halt
:C
halt
"""


@pytest.mark.rotate("text", most=1)
@pytest.mark.parametrize(
    "text",
    [
        # What a shift is computed from comes out of a call, a loop, a table, the heap, a static.
        "(define (f n) (if (< n 1) 40 (f (- n 1)))) (<< 5 (f 9))",
        nightly("(define i 0) (while (< i 37) (set! i (+ i 1))) (<< 3 i)"),
        nightly("(i64.store 8 (heap.alloc 24) 35) (<< 1 (i64.load 8 0))"),
        STATIC,
        nightly(INDIRECT),
        nightly(TABLE),
    ],
)
def test_what_led_to_the_instruction_goes(text: str) -> None:
    found = reduced("wrong-shift", text)
    assert mnemonics(found.program) == ["i64.const", "i64.const", "i64.shl", "halt"]
    assert not found.program.statics
    assert not found.program.data
    assert not found.program.table


def test_backends_that_agree_give_nothing_to_reduce() -> None:
    assert reduce(differ("switch"), "switch", verify(ferryvm.compile("(+ 1 2)")), LONG) is None


@pytest.mark.nightly
def test_every_improvement_is_told_and_is_smaller_than_the_one_before() -> None:
    told: list[Program] = []
    program = verify(ferryvm.compile(PROGRAM))
    found = reduce(differ("wrong-shift"), "wrong-shift", program, LONG, improved=told.append)
    assert found is not None
    assert told[-1] is found.program
    sizes = [size(one) for one in told]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes) > 1


def test_interrupted_reduction_keeps_the_smallest_so_far() -> None:
    told: list[Program] = []

    def improved(program: Program) -> None:
        told.append(program)
        if len(told) == 3:
            raise KeyboardInterrupt

    program = verify(ferryvm.compile(PROGRAM))
    found = reduce(differ("wrong-shift"), "wrong-shift", program, LONG, improved=improved)
    assert found is not None
    assert not found.is_complete
    assert found.program is told[2]


def test_without_time_to_find_the_place_there_is_nothing_to_reduce() -> None:
    program = verify(ferryvm.compile(PROGRAM))
    with pytest.raises(FerryError, match=r"^no place where they part was found within 0 s$"):
        reduce(differ("wrong-shift"), "wrong-shift", program, 0.0)


def test_without_time_after_that_the_program_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_over(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ferryvm.testing.reduction._search", is_over)
    program = verify(ferryvm.compile(PROGRAM))
    found = reduce(differ("wrong-shift"), "wrong-shift", program)
    assert found is not None
    assert found.program is program.program
    assert (found.tried, found.is_complete) == (0, False)


@pytest.mark.parametrize("number", sample([1, 0, *range(2, 12)], 1))
def test_starting_choices_give_the_program_back(number: int) -> None:
    program = generate(5, number)
    units = Units(verify(program))
    again = units.build([choice.start for choice in units.choices])
    reachable = [pc for pc in range(len(program.code)) if verify(program).is_reachable(pc)]
    assert len(again.code) <= len(reachable)
    (comparison,) = Differ(["switch"], "threaded", limits=LIMITS).compare(verify(again))
    (before,) = Differ(["switch"], "threaded", limits=LIMITS).compare(verify(program))
    assert comparison.instructions == before.instructions


@pytest.mark.parametrize("number", sample(range(6), 2))
def test_most_choices_give_valid_programs(number: int) -> None:
    units = Units(verify(generate(6, number)))
    chance = random.Random(number)
    valid = 0
    for _ in range(40):
        share = chance.random()
        chosen = [
            choice.start if chance.random() < share else chance.randint(0, choice.start)
            for choice in units.choices
        ]
        try:
            verify(units.build(chosen))
        except VerifyError:
            continue
        valid += 1
    assert valid >= 20


def test_no_choice_kept_leaves_filler_alone() -> None:
    whole = generate(6, 1)
    units = Units(verify(whole))
    program = units.build([0] * len(units.choices))
    *filler, last = mnemonics(program)
    assert last == "halt"
    assert len(filler) < len(whole.code) // 10
    assert all(name in ("drop", "ref.null") or name.endswith(".const") for name in filler)
    assert not program.statics
    assert not program.data
    assert len(program.functions) == 1


TYPED = """
.struct gone a i64
.struct base n i32
.struct node extends base next node
.static held node
.function main
    i32.const 7
    ref.null node
    struct.new node
    static.set held
    static.get held
    call number
    halt
.function number (node) -> (i32)
    local.get 0
    struct.get node.n
    return
"""


@pytest.mark.parametrize("stays", [False, True])
def test_unused_types_are_cut_and_the_others_renumbered(stays: bool) -> None:
    listing, _ = relist(verify(ferryvm.assemble(TYPED)))
    without_types(listing, [stays, False, False])
    program = encode(listing)
    names = [t.name for t in program.types]
    assert names == (["gone", "base", "node"] if stays else ["base", "node"])
    assert ferryvm.run(program, "switch").value == 7


@pytest.mark.parametrize("t", list(Type))
def test_literals_have_simple_numbers_and_come_back(t: Type) -> None:
    chance = random.Random(str(t))
    for bits in [0, 1, t.mask, t.mask >> 1, *(chance.getrandbits(t.bits) for _ in range(200))]:
        assert literal(t, simplicity(t, bits), bits) == bits
    simple = {I32: [0, I32.mask, 1], I64: [0, I64.mask, 1]}.get(t, [])
    assert [simplicity(t, bits) for bits in simple] == list(range(len(simple)))
    if t in (F32, F64):
        assert literal(t, 0, 77) == 0


def test_choices_that_make_no_program_are_refused_not_wrong() -> None:
    units = Units(verify(generate(6, 2)))
    refused = 0
    for flag in range(0, len(units.choices), 4):
        chosen = [choice.start for choice in units.choices]
        chosen[flag] = 0
        with contextlib.suppress(FerryError):  # anything else fails the test
            verify(units.build(chosen))
            continue
        refused += 1
    assert refused < len(units.choices) // 16


def raising(region: Region, options: Options) -> Code:
    """Raises wherever a region multiplies."""
    if BY_MNEMONIC["i64.mul"].opcode in region.verified.program.code.opcodes:
        raise KeyError("mul")
    raise RefusalError("nothing to multiply")


def test_program_of_which_a_compiler_makes_no_code_is_reduced_to_what_it_fails_at() -> None:
    found = with_compiler(raising, "raising")
    differ = Differ(["raising"], "switch", found, LIMITS, 20_000)
    text = "(define i 3) (+ (* i 2) 1)"
    reduction = reduce(differ, "raising", verify(ferryvm.compile(text)), LONG)
    assert reduction is not None
    assert "i64.mul" in mnemonics(reduction.program)
    assert len(reduction.program.code) <= 8
    how = "raising makes no code of the program: in a compiler: KeyError (test_reduce.py:"
    assert str(reduction.signature).startswith(how)
