# SPDX-License-Identifier: Apache-2.0
"""The good files that mutations start from: the examples, rich programs, and states on their way."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path

import ferryvm
from ferryvm.engine import Engine, TrapError
from ferryvm.engine.saved import pack_state
from ferryvm.image import to_bytes
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow, Immediate, Type
from ferryvm.listing import FunctionListing, Item, Line, Listing
from ferryvm.listing.encode import encode
from ferryvm.machine.memory import Limits
from ferryvm.program import Data, Program, Static

from .mutator import Seed

ROOT = Path(__file__).parents[2]
LIMITS = Limits(stack=64 << 10, heap=1 << 20, first_heap=1 << 14)
"""Small, so that growing and running out happen."""


@functools.cache
def seeds() -> tuple[Seed, ...]:
    """Programs, and states in which some of them stop."""
    found = []
    for path in sorted(ROOT.glob("examples/*")):
        if path.suffix in (".skiff", ".fasm"):
            found.append(Seed(path.name, to_bytes(ferryvm.read(path))))
    rich = ferryvm.assemble((Path(__file__).parent / "rich.fasm").read_text(encoding="utf-8"))
    # Three times: it has what the others have not, and is as small as they are.
    found += [Seed("rich", to_bytes(rich))] * 3
    found += [Seed("every instruction", to_bytes(_every_instruction()))] * 3
    for fuel in (0, 7, 25, 26, 60, 61, 90, 120, 150, 170, 190, 210, 500):
        found.append(Seed(f"rich after {fuel}", _stopped(rich, fuel)))
    recursive = ferryvm.compile("(define (f n) (if (< n 1) 1 (+ n (f (- n 1)))))\n(f 20)")
    found += [Seed(f"recursive after {n}", _stopped(recursive, n)) for n in (30, 100, 170, 400)]
    return tuple(found)


def _stopped(program: Program, fuel: int) -> bytes:
    execution = Engine("threaded", limits=LIMITS).start(program)
    with contextlib.suppress(TrapError):
        execution.run(fuel)
    return pack_state(execution.machine, execution.instructions)


def _every_instruction() -> Program:
    """Each instruction that only computes, on operands that are all 1."""
    items: list[Item] = []
    ones = {t: 1 if not t.is_float else 0x3F80_0000 << (t.bits - 32) for t in Type}
    ones[Type.F64] = 0x3FF0_0000_0000_0000
    for row in INSTRUCTIONS:
        types = [t for t in (*row.pops, *row.pushes) if isinstance(t, Type)]
        is_closed = len(types) == len(row.pops) + len(row.pushes)
        if row.flow is not Flow.NEXT or not is_closed or not types:
            continue
        for t in row.pops:
            assert isinstance(t, Type)
            items.append(Line(BY_MNEMONIC[f"{t}.const"], ones[t]))
        items.append(Line(row, None if row.immediate is Immediate.NONE else 1))
        items += [Line(BY_MNEMONIC["drop"])] * len(row.pushes)
    items.append(Line(BY_MNEMONIC["halt"]))
    statics = [Static("a", Type.I64, 5), Static("b", Type.I64, 6)]
    main = FunctionListing("main", items=items)
    return encode(Listing([main], statics, [Data(0, bytes([1]) * 100)]))
