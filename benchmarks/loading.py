# SPDX-License-Identifier: Apache-2.0
"""Loader and verifier on a generated program: functions with loops, tables, calls and every kind
of arithmetic, and a source map with a row for each instruction."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from benchmarks.build import written
from benchmarks.measure import median
from ferryvm.errors import Position
from ferryvm.image import load
from ferryvm.image.program import to_bytes
from ferryvm.isa import BY_MNEMONIC, I32, I64, INSTRUCTIONS, Type
from ferryvm.listing import FunctionListing, Item, Label, Line, Listing, Operand
from ferryvm.listing.encode import encode
from ferryvm.program import Program, Signature
from ferryvm.verify import verify

TARGET_SECONDS = 1.0
FUNCTION_INSTRUCTIONS = 256
SIGNATURE = Signature((I64,), (I64,))
LOCALS = (I64, I64, I32)
COUNTER, SUM, CHOICE = 1, 2, 3

PURE = [row for row in INSTRUCTIONS if row.chapter in ("numeric", "mathematical", "conversion")]


class _Writer:
    """Writes one function, an instruction a source line."""

    def __init__(self, name: str, signature: Signature, locals_: tuple[Type, ...]) -> None:
        self.listing = FunctionListing(name, signature, locals_)
        self.count = 0

    def label(self, name: str) -> None:
        self.listing.items.append(Label(name))

    def add(self, mnemonic: str, operand: Operand = None) -> None:
        self.count += 1
        position = Position("generated.fasm", self.count, 1)
        item: Item = Line(BY_MNEMONIC[mnemonic], operand, position)
        self.count += len(operand) if isinstance(operand, tuple) else 0
        self.listing.items.append(item)


def generate(instructions: int, seed: int = 1) -> Program:
    """A valid program of exactly that many instructions; the same seed gives the same one."""
    choose = random.Random(seed)
    count = max(1, (instructions - 5) // FUNCTION_INSTRUCTIONS)
    main = _Writer("main", Signature(), ())
    main.add("i64.const", 10)
    main.add("call", "f0")
    main.add("halt")
    functions = [main]
    left = instructions - main.count
    for number in range(count):
        length = left if number == count - 1 else FUNCTION_INSTRUCTIONS
        functions.append(_function(number, count, length, choose))
        left -= length
    return encode(Listing([function.listing for function in functions]))


def _function(number: int, count: int, length: int, choose: random.Random) -> _Writer:
    f = _Writer(f"f{number}", SIGNATURE, LOCALS)
    f.label("loop")
    for mnemonic, operand in (("local.get", COUNTER), ("local.get", 0), ("i64.lt_s", None)):
        f.add(mnemonic, operand)
    f.add("jump_unless", "end")
    f.add("local.get", CHOICE)
    f.add("jump_table", ("one", "two", "three"))
    f.label("one")
    f.add("local.get", COUNTER)
    f.add("call", f"f{choose.randrange(count)}")
    f.add("local.set", SUM)
    f.label("two")
    end = 9  # instructions after the arithmetic
    _arithmetic(f, length - end - f.count - 8, choose)
    f.label("three")
    while f.count < length - end:
        f.add("nop")
    for mnemonic, operand in (("local.get", COUNTER), ("i64.const", 1), ("i64.add", None)):
        f.add(mnemonic, operand)
    f.add("local.set", COUNTER)
    f.add("jump", "loop")
    f.label("end")
    for mnemonic, operand in (("local.get", SUM), ("local.get", COUNTER), ("i64.xor", None)):
        f.add(mnemonic, operand)
    f.add("return", 1)
    return f


def _arithmetic(f: _Writer, length: int, choose: random.Random) -> None:
    """Random instructions on typed operands, which leave the stack as it was."""
    stack: list[Type] = []
    end = f.count + length
    while f.count + len(stack) < end:
        row = choose.choice(PURE)
        pops = [t for t in row.pops if isinstance(t, Type)]
        if len(stack) >= len(pops) and stack[len(stack) - len(pops) :] == pops:
            del stack[len(stack) - len(pops) :]
            f.add(row.mnemonic)
            stack.extend(t for t in row.pushes if isinstance(t, Type))
        elif len(stack) < 8:
            wanted = pops[0]
            f.add(f"{wanted}.const", choose.getrandbits(wanted.bits - 2))
            stack.append(wanted)
        else:
            f.add("drop")
            stack.pop()
    for _ in stack:
        f.add("drop")


def measure(rounds: int, instructions: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """Median seconds of loading and of verifying a program of so many instructions."""
    program = generate(instructions)
    image = to_bytes(program)
    path = written(f"generated-{instructions}.fvm", image)
    loads, verifies = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        loaded = load(path)
        middle = time.perf_counter()
        verify(loaded)
        end = time.perf_counter()
        loads.append(middle - start)
        verifies.append(end - middle)
        progress(f"load {loads[-1]:.3f} s, verify {verifies[-1]:.3f} s")
    total = median([load_ + verify_ for load_, verify_ in zip(loads, verifies, strict=True)])
    return {
        "instructions": len(program.code),
        "code_bytes": len(program.code.tobytes()),
        "image_bytes": len(image),
        "functions": len(program.functions),
        "rounds": rounds,
        "load_s": median(loads),
        "verify_s": median(verifies),
        "total_s": total,
        "target_s": TARGET_SECONDS,
        "is_met": total <= TARGET_SECONDS,
    }
