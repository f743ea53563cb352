# SPDX-License-Identifier: Apache-2.0
"""Random runs of stores and loads of floats, full of NaNs, leave the memory that the reference
does.

All checks are made in front, so that nothing leaves between the stores and the passes may have them
raw: on x86 an operation that makes a NaN makes another than the canonical one.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.ir.lift import lift
from ferryvm.ir.passes import optimise
from ferryvm.ir.text import module_text
from ferryvm.program import Program
from ferryvm.region.region import region
from ferryvm.verify import verify

from ...tier import sample

OFFSETS = (0, 4, 8, 12, 16, 24, 32)
TYPES = ("f64", "f32", "i64", "i32")
PROGRAMS = 40
STEPS = 40

HEAD = """
.static zero f64 = 0.0
.static one f64 = 1.0
.static payload f64 = bits:0xfff8000000000123
.function main
.local a i64
.local vf64 f64
.local vf32 f32
.local vi64 i64
.local vi32 i32
    i64.const 40
    heap.alloc
    local.set a
"""
CHECKS = "".join(
    f"    local.get a\n    {t}.load {offset}\n    drop\n" for offset in OFFSETS for t in TYPES
)


OBJECTS = """
.static kept f64[]
.static kept_too f32[]
.static zero f64 = 0.0
.static one f64 = 1.0
.static payload f64 = bits:0xfff8000000000123
.function main
.local af64 f64[]
.local af32 f32[]
.local vf64 f64
.local vf32 f32
    i64.const 5
    array.new_default_f64
    local.set af64
    i64.const 5
    array.new_default_f32
    local.set af32
    local.get af64
    static.set kept
    local.get af32
    static.set kept_too
    f64.const 0
    local.set vf64
    f32.const 0
    local.set vf32
"""
LOOP = "i64.const 0\n:top\n{body}\ni64.const 1\ni64.add\ndup\ni64.const 3\ni64.lt_u\njump_if top\ndrop\n"


def random_array_program(number: int) -> Program:
    """Loads and stores of elements of two arrays, and arithmetic on what is loaded, in a loop."""
    chance = random.Random(number)
    lines = []
    for index in range(5):
        for t in ("f64", "f32"):
            lines.append(f"local.get a{t}\ni64.const {index}\nlocal.get v{t}\narray.set_{t}")
    for _ in range(STEPS):
        t = chance.choices(("f64", "f32"), (20, 1) if number % 2 else (2, 20))[0]
        index = chance.randrange(5)
        name = chance.choice(("add", "sub", "mul", "div"))
        element = f"local.get a{t}\ni64.const {index}\n"
        match chance.choices(("store", "load", "use", "make"), (8, 1, 5, 3))[0]:
            case "store":
                lines.append(f"{element}local.get v{t}\narray.set_{t}")
            case "load":
                lines.append(f"{element}array.get_{t}\nlocal.set v{t}")
            case "use":
                lines.append(f"{element}array.get_{t}\nlocal.get v{t}\n{t}.{name}\nlocal.set v{t}")
            case _:
                narrow = "f32.demote_f64\n" if t == "f32" else ""
                static = chance.choice(("zero", "one", "payload"))
                lines.append(
                    f"static.get {static}\n{narrow}local.get v{t}\n{t}.div\nlocal.set v{t}"
                )
    body = LOOP.format(body="\n".join(lines))
    return ferryvm.assemble(f"{OBJECTS}{body}    halt\n")


def random_program(number: int) -> Program:
    """Loads and stores of all types at offsets that overlap, and arithmetic on what is loaded."""
    chance = random.Random(number)
    lines = []
    for _ in range(STEPS):
        t = chance.choices(TYPES, (10, 10, 1, 1) if number % 2 else (20, 2, 1, 0))[0]
        offset = chance.choice(OFFSETS)
        match chance.choices(("store", "load", "use", "compute", "make"), (8, 1, 5, 3, 4))[0]:
            case "store":
                lines.append(f"local.get a\nlocal.get v{t}\n{t}.store {offset}")
            case "load":
                lines.append(f"local.get a\n{t}.load {offset}\nlocal.set v{t}")
            case "use" if t[0] == "f":
                name = chance.choice(("add", "sub", "mul", "div"))
                lines.append(f"local.get a\n{t}.load {offset}\nlocal.get v{t}\n{t}.{name}")
                lines.append(f"local.set v{t}")
            case "compute" if t[0] == "f":
                name = chance.choice(("add", "sub", "mul", "div"))
                lines.append(f"local.get v{t}\nlocal.get v{t}\n{t}.{name}\nlocal.set v{t}")
            case "compute" | "use":
                lines.append("local.get vf64\nf32.demote_f64\nlocal.set vf32")
            case _:
                static = chance.choice(("zero", "one", "payload"))
                narrow = "f32.demote_f64\n" if t == "f32" else ""
                target = "f32" if narrow else "f64"
                lines.append(f"static.get {static}\n{narrow}local.set v{target}")
    return ferryvm.assemble(HEAD + CHECKS + "\n".join(lines) + "\n    halt\n")


@pytest.mark.rotate("make", most=1)
@pytest.mark.parametrize("count", sample([8, PROGRAMS], 1))
@pytest.mark.parametrize("make", [random_program, random_array_program])
def test_memory_is_as_the_reference_leaves_it(make: Callable[[int], Program], count: int) -> None:
    together = 0
    for number in range(count):
        program = make(number)
        states = []
        for backend in ("reference", "llvm"):
            execution = Engine(backend).start(program)
            execution.run()
            states.append(execution.machine.snapshot())
        assert states[0] == states[1], number
        module = lift(region(verify(program), "main"))
        optimise(module)
        together += "canonicalise" in module_text(module)
    assert together > count // 4
