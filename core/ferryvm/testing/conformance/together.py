# SPDX-License-Identifier: Apache-2.0
"""Golden cases of several instructions at once, each case in one dressing, by rotation.

Where programs are shared, each piece of code is a function of one:

    .function main          static.get which / i32.wrap_i64 / jump_table ...
                            :0 call piece0 / halt   :1 call piece1 / halt   ...
    .function piece0        ... / halt
    .function piece1        ... / halt

A script puts a machine at the start with the number of its piece in the static `which`, and runs
it. So a compiler that takes long for each program builds a few dozen of them instead of thousands.
Pieces that have statics are programs by themselves.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from ferryvm.backend import Interpreter
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Type
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import ValueType
from ferryvm.listing import FunctionListing, Item, Label, Line
from ferryvm.program import Static
from ferryvm.testing.conformance.golden import Setting, cases_of
from ferryvm.testing.conformance.instruction import (
    HALT,
    LIMITS,
    Piece,
    alone,
    pc_of,
    pieces,
    program_of,
    rotated_pieces,
)
from ferryvm.testing.conformance.record import PLENTY, Recorder, Task
from ferryvm.testing.conformance.script import Script, observe
from ferryvm.verify import Verified, verify

MOST_LINES = 1500
"""Number of instructions of a program from which on no further piece is added."""

MOST_CASES = 80
"""Golden cases at which no further instruction joins a batch."""

ALONE_CASES = 3
"""The number of cases as which a case counts that needs a program of its own."""


def batches(omitted: frozenset[str] = frozenset()) -> Iterator[tuple[str, ...]]:
    """Mnemonics whose cases are run together, without the omitted ones. Each batch has cases."""
    found: list[list[str]] = []
    left = 0
    for row in INSTRUCTIONS:
        if row.mnemonic in omitted:
            continue
        weight = ALONE_CASES if row.mnemonic.startswith("static.") else 1
        count = weight * len(cases_of(row.mnemonic))
        if not found or (count and left <= 0):
            found.append([])
            left = MOST_CASES
        found[-1].append(row.mnemonic)
        left -= count
    return map(tuple, found)


def scripts(
    mnemonics: Iterable[str], is_counting: bool, are_shared: bool, reference: Interpreter
) -> Iterator[Script]:
    """The scripts of all golden cases of some instructions, in programs that they share or
    alone."""
    fuel = PLENTY if is_counting else None
    joined: list[tuple[Setting, Piece]] = []
    for mnemonic in mnemonics:
        for piece in pieces(mnemonic, True) if is_counting else rotated_pieces(mnemonic):
            # With `which` there is one static more, which out-of-range numbers would reach.
            if not are_shared or piece.setting.statics or mnemonic.startswith("static."):
                yield alone(piece, fuel, reference)
            else:
                joined.append((piece.setting, piece))
    for setting, members in grouped(joined):
        for some in _portions(members):
            yield from _program(setting, some, fuel, reference)


_Member = TypeVar("_Member")


def grouped(members: Iterable[tuple[Setting, _Member]]) -> list[tuple[Setting, list[_Member]]]:
    """Members by their settings: those of one group can share a program."""
    groups: list[tuple[Setting, list[_Member]]] = []
    for own, member in members:
        # Locals and marks are a member's own, not its program's.
        setting = dataclasses.replace(own, locals=(), marked=())
        for known, group in groups:
            if _is_same(known, setting):
                group.append(member)
                break
        else:
            groups.append((setting, [member]))
    return groups


def _is_same(one: Setting, other: Setting) -> bool:
    """True if pieces of both can share a program: lines of their functions are compared by
    identity."""
    return one == other and all(map(operator.is_, one.functions, other.functions))


def _portions(members: Iterable[Piece]) -> Iterator[list[Piece]]:
    portion: list[Piece] = []
    for piece in members:
        portion.append(piece)
        if sum(len(each.items) for each in portion) >= MOST_LINES:
            yield portion
            portion = []
    if portion:
        yield portion


def _program(
    setting: Setting, members: Sequence[Piece], fuel: int | None, reference: Interpreter
) -> Iterator[Script]:
    """The scripts of pieces that share a program; it is one object for all of them."""
    functions, program = shared(setting, [(piece.locals, piece.items) for piece in members])
    for number, piece in enumerate(members):
        recorder = Recorder(Task(f"{piece.about}, together", program, LIMITS, reference))
        recorder.start()
        state = observe(recorder.machines[0], False)
        which = number.to_bytes(8, "little")
        recorder.put(dataclasses.replace(state, statics=state.statics[:-8] + which))
        recorder.run(fuel)
        complaint = piece.complaint(recorder, pc_of(piece.marked, functions))
        script = recorder.script("counting" if fuel else "")
        # Below the piece's frame there is main's header.
        names = {HEADER_WORDS + word: name for word, name in piece.names.items()}
        yield dataclasses.replace(script, names=names, complaint=complaint)


def shared(
    setting: Setting, bodies: Sequence[tuple[Sequence[ValueType], Sequence[Item]]]
) -> tuple[list[FunctionListing], Verified]:
    """The functions of a program that runs one of some functions, given as locals and code, and the
    program. The last static has the function's number."""
    names = [f"piece{number}" for number in range(len(bodies))]
    functions = [_main(len(setting.statics), names)]
    functions += [
        FunctionListing(name, locals=tuple(locals_), items=list(items))
        for name, (locals_, items) in zip(names, bodies, strict=True)
    ]
    functions += setting.functions
    return functions, verify(program_of(setting, functions, [Static("which", Type.I64, 0)]))


def _main(which: int, names: Sequence[str]) -> FunctionListing:
    def line(mnemonic: str, operand: int | str | tuple[str, ...] | None = None) -> Line:
        return Line(BY_MNEMONIC[mnemonic], operand)

    labels = tuple(f"case {name}" for name in names)
    items: list[Item] = [line("static.get", which), line("i32.wrap_i64")]
    items.append(line("jump_table", labels))
    for name, label in zip(names, labels, strict=True):
        items += [Label(label), line("call", name), HALT]
    return FunctionListing("main", items=items)
