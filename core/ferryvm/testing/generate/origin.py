# SPDX-License-Identifier: Apache-2.0
"""The valid files that mutations start from: random programs, rich ones, and states in the middle
of a run."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from importlib import resources

from ferryvm import asm, skiff
from ferryvm.engine import Engine, TrapError
from ferryvm.engine.saved import STATE, pack_state
from ferryvm.image import to_bytes
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow, Immediate, Type
from ferryvm.listing import FunctionListing, Item, Line, Listing
from ferryvm.listing.encode import encode
from ferryvm.machine.memory import Limits
from ferryvm.program import Data, Program, Static
from ferryvm.testing.generate.chance import Chance

_ORACLE = "reference"
"""The backend on which states stop; the choice does not affect them."""

_LATEST = 400
"""Instructions after which the state of a random program is taken at the latest."""


def origin(chance: Chance, make: Callable[[], Program], limits: Limits) -> bytes:
    """A good file: of the random program that `make` makes, or one that is always the same."""
    choice = chance.random()
    if choice < 0.3:
        return to_bytes(make())
    if choice < 0.5:
        return _stopped(make(), chance.below(_LATEST), limits)
    return chance.pick(fixed(limits))


def state_origin(chance: Chance, make: Callable[[], Program], limits: Limits) -> bytes:
    """A good saved state: of the random program that `make` makes, or one that is always the
    same."""
    if chance.flip(0.6):
        return _stopped(make(), chance.below(_LATEST), limits)
    return chance.pick([content for content in fixed(limits) if content.startswith(STATE.magic)])


@functools.cache
def fixed(limits: Limits) -> tuple[bytes, ...]:
    """Programs, and states in which some of them stop."""
    text = resources.files(__package__).joinpath("rich.fasm").read_text(encoding="utf-8")
    rich = asm.assemble(text)
    linked = asm.assemble(resources.files(__package__).joinpath("linked.fasm").read_text("utf-8"))
    # Three times: it has features that others do not have.
    found = [to_bytes(rich)] * 3 + [to_bytes(_every_instruction())] * 3 + [to_bytes(linked)] * 3
    for fuel in (0, 7, 25, 26, 60, 61, 90, 120, 150, 170, 190, 210, 500):
        found.append(_stopped(rich, fuel, limits))
    recursive = skiff.compile("(define (f n) (if (< n 1) 1 (+ n (f (- n 1)))))\n(f 20)")
    found += [_stopped(recursive, fuel, limits) for fuel in (30, 100, 170, 400)]
    return tuple(found)


@functools.cache
def _engine(limits: Limits) -> Engine:
    return Engine(_ORACLE, limits=limits)


def _stopped(program: Program, fuel: int, limits: Limits) -> bytes:
    execution = _engine(limits).start(program)
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
