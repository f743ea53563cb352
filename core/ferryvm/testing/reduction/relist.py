# SPDX-License-Identifier: Apache-2.0
"""The listing of any program that passes the verifier.

`ferryvm.listing.decode` gives the listing that encodes to the very same program, and refuses the
programs for which there is none. Here the listing only has to be equivalent: code may be in another
order, unreachable code is omitted, and there are no source positions.
"""

from __future__ import annotations

from ferryvm.errors import FerryError
from ferryvm.isa import BY_MNEMONIC, Flow, Immediate
from ferryvm.isa.frame import number_of, return_counts
from ferryvm.listing import ClauseListing, FunctionListing, Item, Label, Line, Listing
from ferryvm.program import Clause, Program
from ferryvm.testing.trace import instruction_at
from ferryvm.verify import Verified

_THROWING = (Flow.CALL, Flow.CALL_INDIRECT, Flow.HOST, Flow.THROW)

Relisted = tuple[Listing, list[list[int]]]
"""A listing, and for each function the pc that each of its items has in the program; of a label the
pc that it precedes."""


def relist(verified: Verified) -> Relisted:
    """The listing of a program. Raises FerryError where a jump goes into a jump table."""
    program = verified.program
    names = function_names(program)
    listing = Listing(
        statics=list(program.statics),
        data=list(program.data),
        table=[names[number] for number in program.table],
        hosts=list(program.hosts),
        tags=list(program.tags),
        types=list(program.types),
    )
    places = []
    mine: list[list[int]] = [[] for _ in program.functions]
    for pc in range(len(program.code)):
        if verified.is_reachable(pc):
            mine[verified.owner(pc)].append(pc)
    for number, function in enumerate(program.functions):
        items, pcs, clauses = _items(verified, names, mine[number], function.entry)
        listing.functions.append(
            FunctionListing(
                names[number],
                program.signature(number),
                function.locals,
                items,
                clauses,
                parameters=function.parameters,
            )
        )
        places.append(pcs)
    return listing, places


def function_names(program: Program) -> list[str]:
    """The names of the functions, made different where they are not."""
    found: list[str] = []
    for function in program.functions:
        name = function.name
        while name in found:
            name += "'"
        found.append(name)
    return found


def line_of(verified: Verified, names: list[str], pc: int) -> Line:
    """The instruction at `pc` as a line; labels are not filled in."""
    program = verified.program
    row, immediate = instruction_at(program, pc)
    match row.immediate:
        case Immediate.NONE | Immediate.TARGET | Immediate.LABELS:
            return Line(row)
        case Immediate.FUNCTION | Immediate.ITEM:
            return Line(row, names[immediate])
        case Immediate.HOST:
            return Line(row, program.hosts[immediate].name)
        case Immediate.TAG:
            return Line(row, program.tags[immediate].name)
        case Immediate.SIGNATURE:
            return Line(row, program.signatures[immediate])
        case Immediate.LOCAL:
            return Line(row, number_of(immediate, verified.parameters(pc)))
        case Immediate.RESULTS:
            return Line(row, return_counts(immediate)[1])
    return Line(row, immediate)


def _items(
    verified: Verified, names: list[str], mine: list[int], entry: int
) -> tuple[list[Item], list[int], list[ClauseListing]]:
    """The code of one function, which starts at its entry, with the pc of each item; its
    clauses."""
    program = verified.program
    order = [pc for pc in mine if pc >= entry] + [pc for pc in mine if pc < entry]
    tables = {
        at
        for pc in order
        if instruction_at(program, pc)[0].flow is Flow.TABLE
        for at in _table(program, pc)
    }
    targets = {
        program.code.immediates[pc]
        for pc in order
        if instruction_at(program, pc)[0].immediate is Immediate.TARGET
    }
    if targets & tables:
        raise FerryError("a jump goes into a jump table")
    if entry in mine and entry - 1 in mine and not _ends(program, entry - 1):
        targets.add(entry)  # what stood before the entry comes last now, and has to go there
    runs = _runs(verified, order)
    targets.update(clause.handler for clause, _, _ in runs)
    labels = {target: f"L{number}" for number, target in enumerate(sorted(targets))}
    starts, ends = {first for _, first, _ in runs}, {last for _, _, last in runs}
    items: list[Item] = []
    pcs: list[int] = []
    for pc in order:
        if pc in labels:
            items.append(Label(labels[pc]))
            pcs.append(pc)
        if pc in starts:
            items.append(Label(f"from{pc}"))
            pcs.append(pc)
        if pc in tables:
            continue
        line = line_of(verified, names, pc)
        immediate = program.code.immediates[pc]
        if line.row.immediate is Immediate.TARGET:
            line = Line(line.row, labels[immediate])
        elif line.row.flow is Flow.TABLE:
            jumps = _table(program, pc)
            line = Line(line.row, tuple(labels[program.code.immediates[at]] for at in jumps))
        items.append(line)
        pcs.append(pc)
        if pc in ends:
            items.append(Label(f"to{pc}"))
            pcs.append(pc)
        if pc == entry - 1 and not _ends(program, pc):
            items.append(Line(BY_MNEMONIC["jump"], labels[entry]))
            pcs.append(pc)
    tags = program.tags
    clauses = [
        ClauseListing(
            f"from{first}",
            f"to{last}",
            labels[clause.handler],
            clause.depth,
            None if clause.tag is None else tags[clause.tag].name,
            clause.record,
        )
        for clause, first, last in runs
    ]
    return items, pcs, clauses


def _runs(verified: Verified, order: list[int]) -> list[tuple[Clause, int, int]]:
    """Each clause with the first and the last instruction that can throw to it, once for each run
    of them: code before the entry comes last in `order`."""
    found: dict[tuple[Clause, bool], list[int]] = {}
    entry = order[0] if order else 0
    for pc in order:
        if instruction_at(verified.program, pc)[0].flow in _THROWING:
            for clause in verified.clauses.covering(pc):
                found.setdefault((clause, pc < entry), []).append(pc)
    order_of = {clause: number for number, clause in enumerate(verified.program.clauses)}
    runs = [(clause, min(pcs), max(pcs)) for (clause, _), pcs in found.items()]
    return sorted(runs, key=lambda run: order_of[run[0]])


def _table(program: Program, pc: int) -> range:
    """pcs of the jumps of the jump table at `pc`."""
    return range(pc + 1, pc + 2 + program.code.immediates[pc])


def _ends(program: Program, pc: int) -> bool:
    flow = instruction_at(program, pc)[0].flow
    return flow in (Flow.JUMP, Flow.TABLE, Flow.RETURN, Flow.STOP, Flow.THROW)
