# SPDX-License-Identifier: Apache-2.0
"""IR that is written can be read, and is the same; a text that says nothing is refused."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import ferryvm
from ferryvm.ir.graph import BOOLEAN, Constant
from ferryvm.ir.lift import lift
from ferryvm.ir.operation import IrError
from ferryvm.ir.parse import parse_module
from ferryvm.ir.passes import optimise
from ferryvm.ir.text import constant_text, module_text
from ferryvm.ir.verify import verify_module
from ferryvm.isa.type import F32, F64, I32, I64
from ferryvm.region.region import regions
from ferryvm.testing.generate import ProgramKind
from ferryvm.verify import Verified, verify

from ..random_program import small_programs
from ..tier import nightly, sample

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = [
    nightly(file) if file.stem in ("words", "nbody") else file
    for file in sorted((ROOT / "examples").glob("*.skiff"))
]


def check_round_trip(verified: Verified) -> None:
    for region in regions(verified):
        for counting in (False, True):
            for level in (0, 2):
                module = lift(region, counting, exceptions=True)
                optimise(module, level)
                text = module_text(module)
                again = parse_module(text)
                verify_module(again, verified)
                assert module_text(again) == text
                assert again.counting is counting


@pytest.mark.rotate("file", most=4)
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_what_was_written_is_read_and_written_the_same(file: Path) -> None:
    check_round_trip(verify(ferryvm.read(file)))


@pytest.mark.nightly
@pytest.mark.parametrize("count", sample([1, 8], 1))
@pytest.mark.parametrize("kind", [ProgramKind.BYTECODE, ProgramKind.SKIFF])
def test_ir_of_random_programs_is_read_and_written_the_same(kind: ProgramKind, count: int) -> None:
    for program in small_programs(7, kind, 0, count):
        check_round_trip(program)


def constant(text: str) -> Constant:
    body = f"module m\nregion r function=0 entry=0\nb @0 ():\n  switch {text} b1()\nb1 @0 ():\n"
    module = parse_module(f"{body}  leave @0 [_ _]\n")
    (value,) = module.root.blocks[0].end.arguments
    assert isinstance(value, Constant)
    return value


def test_constants_of_all_bits_are_read_back() -> None:
    chance = random.Random(4)
    for t in (I32, I64, F32, F64):
        edges = [0, 1, t.mask, t.mask >> 1, 1 << (t.bits - 1), 0x7F80_0001 << (t.bits - 32)]
        for bits in edges + [chance.getrandbits(t.bits) for _ in range(300)]:
            text = constant_text(Constant(t, bits))
            assert constant(text).bits == bits, text
            assert constant(text).type is t
    assert constant("true").type is BOOLEAN
    assert constant("false").bits == 0


def test_constants_may_be_written_as_bits() -> None:
    assert constant("f64:0x7ff8000000000001").bits == 0x7FF8_0000_0000_0001
    assert constant("i64:0xffffffffffffffff").bits == (1 << 64) - 1
    assert constant("i32:-1").bits == (1 << 32) - 1


def test_names_that_are_no_words_stand_in_quotes() -> None:
    name = 'a "b" ; é\n#'
    head = "function=0 entry=0\nb @0 ():\n  leave @0 [_ _]\n"
    module = parse_module(f"module m\nregion r {head}")
    module.name = module.root.name = name
    again = parse_module(module_text(module))
    assert again.name == again.root.name == name


def test_comments_and_spaces_say_nothing() -> None:
    text = """
; a comment
module   m   ; another
  region r function=0 entry=0   ;
b @0 ():
      leave @0 [ _   _ ]  ; the end
"""
    assert module_text(parse_module(text)) == (
        "module m\n\nregion r function=0 entry=0\nb @0 ():\n  leave @0 [_ _]\n"
    )


HEAD = "module m\nregion r function=0 entry=0\n"
FAULTS = {
    "": "line 1: 'module' expected, found the end",
    "module m\n": "line 2: a region expected first",
    "module m extra\n": "line 1: the end of the line expected, found 'extra'",
    "module m\nloop r function=0 entry=0\n": (
        "line 2: a region or function expected, found 'loop'"
    ),
    "module m\nfunction r function=0 entry=0\nb @0 ():\n  leave @0 [_ _]\n": (
        "line 5: a region expected first"
    ),
    "module m\nregion r entry=0\n": "line 2: 'function' expected, found 'entry'",
    f"{HEAD}  halt @0 [_ _]\n": "line 3: the head of a block expected",
    f"{HEAD}b @0 ():\n  hlt @0 [_ _]\n": "line 4: no operation 'hlt'; did you mean 'halt'?",
    f"{HEAD}b @0 ():\n  halt @0 [_ _\n": "line 4: more expected, found the end",
    f"{HEAD}b @0 ():\n  halt @x [_ _]\n": "line 4: a number expected, found 'x'",
    f"{HEAD}b @0 ():\n  halt @0 [_ _] {{t0=i64:1}}\n": "line 4: s and a number, or hp, expected",
    f"{HEAD}b @0 ():\n  halt @0 [_ _]\n  halt @0 [_ _]\n": "line 5: block b has ended",
    f"{HEAD}b @0 ():\n  pay 1 1 @0 [_ _]\n": "line 4: block b does not end",
    f"{HEAD}b @0 (x: i64):\n": "line 3: the name of a value expected, found 'x'",
    f"{HEAD}b @0 (%0: i65):\n": "line 3: no type 'i65'; did you mean 'i64'?",
    f"{HEAD}b @0 (%0: i64, %0: i64):\n": "line 3: %0 is defined twice",
    f"{HEAD}b @0 ():\n  return %3\n": "line 4: %3 is not defined",
    f"{HEAD}b @0 ():\n  return i32:5000000000\n": "line 4: '5000000000' is no i32",
    f"{HEAD}b @0 ():\n  return f64:high\n": "line 4: 'high' is no f64",
    f"{HEAD}b @0 ():\n  trap HEAP_EXHAUST @0 [_ _]\n": "did you mean 'HEAP_EXHAUSTED'?",
    f"{HEAD}b @0 ():\n  jump c()\n": "line 4: no block 'c'",
    f"{HEAD}b @0 ():\n  %1: i64 = jump b()\n": "line 4: 'jump' yields no value",
    f"{HEAD}b @0 ():\n  halt @0 [_ _]\nb @0 ():\n  halt @0 [_ _]\n": "two blocks of r",
    f"{HEAD}b @0 ():\n  return !\n": "line 4: nothing can begin with '!'",
    f'module "m\\q"\n{HEAD}': "line 1: \"m\\q\" is no text",
    f"{HEAD}b @0 ():\n  halt @0 [_ _]\nregion s function=1 entry=0\nb @0 ():\n  leave @0 [_]": (
        "one region expected, s is another"
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", FAULTS)
def test_a_fault_is_one_line_with_its_number(text: str) -> None:
    with pytest.raises(IrError, match=re.escape(FAULTS[text])) as caught:
        parse_module(text)
    assert re.fullmatch(r"line \d+: .*", str(caught.value))


def test_any_text_is_read_or_refused() -> None:
    chance = random.Random(11)
    verified = verify(ferryvm.read(ROOT / "examples" / "nbody.skiff"))
    module = lift(regions(verified)[-1])
    optimise(module)
    good = module_text(module)
    tokens = re.findall(r"\S+|\n", good)
    refused = []
    for _ in range(150):
        place, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        bad = [*tokens]
        bad[place] = chance.choice([tokens[other], "", "^", "@", ";"])
        try:
            verify_module(parse_module(" ".join(bad)))
        except IrError as error:
            refused.append(str(error))
    assert len(refused) > 50
    assert not [message for message in refused if "\n" in message]
