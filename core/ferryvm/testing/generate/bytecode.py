# SPDX-License-Identifier: Apache-2.0
"""Random programs in bytecode, valid by construction: main, and the program as a whole.

Code is generated as lists of opcodes and immediates, in one go; values are typed as they are
generated, and everything that could run on is counted (see `body`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter

import numpy as np
import numpy.typing as npt

from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import WORD_BYTES
from ferryvm.program import (
    Clause,
    Code,
    Data,
    Function,
    HostImport,
    Program,
    Signature,
    Static,
    Tag,
)
from ferryvm.testing.generate.body import (
    GET,
    JUMP,
    JUMP_IF,
    JUMP_UNLESS,
    SET,
    STATIC_SET,
    Corner,
    ProgramContext,
)
from ferryvm.testing.generate.catalogue import OPCODE
from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.generate.exception import tags
from ferryvm.testing.generate.function import Functions, Made
from ferryvm.testing.generate.item import ItemFunctions, ItemStatements
from ferryvm.testing.generate.layout import HOSTS, Layout
from ferryvm.testing.generate.literal import F32, F64, I64, TYPES
from ferryvm.testing.generate.object_type import FIRST, ObjectTypes
from ferryvm.testing.generate.skeleton_function import SkeletonFunctions
from ferryvm.testing.generate.statement import Statements
from ferryvm.testing.generate.tables import CodeKind, Tables
from ferryvm.testing.generate.trap import LIMITS
from ferryvm.testing.generate.weights import Weights, default
from ferryvm.verify import verify

MOST_INSTRUCTIONS = 20_000
"""Instructions within which a random program ends."""

_HOST_CALLS = 0.25
"""Statements of main that call a host function where a campaign adds some."""

_HALT = OPCODE["halt"]
_STORE = {t: OPCODE[f"{TYPES[t]}.store"] for t in (F32, F64)}


def generate_bytecode(
    chance: Chance,
    weights: Weights | None = None,
    occurred: Counter[Corner] | None = None,
    hosts: tuple[HostImport, ...] = (),
) -> Program:
    """A random program; it ends within MOST_INSTRUCTIONS under LIMITS. `occurred`: receives the
    counts of corners; `hosts`: host functions that it may call besides those that print."""
    tables = _tables(weights or default())
    has_objects = chance.apart("objects").flip(tables.chance["objects"])
    has_launches = chance.apart("launches").flip(tables.chance["launches"])
    kind = CodeKind.LAUNCHING if has_launches else CodeKind.PLAIN
    while True:
        made = _Maker(chance, tables, hosts, has_objects, kind)
        made.make()
        # What loops cost is known when their bodies are: rarely it is too much after all.
        if made.cost <= MOST_INSTRUCTIONS:
            if occurred is not None:
                occurred.update(made.plan.occurred)
            return made.program()


@functools.lru_cache(maxsize=4)
def _tables(weights: Weights) -> Tables:
    return Tables(weights, Statements, ItemStatements)


class _Maker:
    """One program in the making."""

    def __init__(
        self,
        chance: Chance,
        tables: Tables,
        hosts: tuple[HostImport, ...],
        has_objects: bool,
        kind: CodeKind,
    ) -> None:
        self.chance, self.tables = chance, tables
        self.hosts = (*HOSTS, *hosts)
        objects = ObjectTypes(chance) if has_objects else None
        all_i64 = chance.flip(tables.chance["all_i64_statics"]) and not has_objects
        self.layout = Layout(chance, all_i64, objects)
        layout = self.layout
        self.plan = ProgramContext(
            chance=chance,
            tables=tables,
            ops=[],
            immediates=[],
            statics=layout.by_type,
            readable_statics=layout.by_type,
            all_i64=layout.all_i64,
            free_statics=layout.free,
            static_count=len(layout.statics),
            scratch=layout.scratch,
            first_hp=layout.first_hp,
            vectors=layout.vectors,
            hosts=layout.hosts,
            own_hosts=list(enumerate(hosts, len(HOSTS))),
            is_risky=chance.flip(tables.chance["risky"]),
            heap_budget=LIMITS.heap - layout.first_hp - WORD_BYTES,
            is_crowded=chance.flip(tables.chance["many_locals"]),
            objects=objects,
            kind=kind,
            tags=tags(chance.apart("tags"), objects),
        )
        self._has_skeletons = chance.apart("skeletons").flip(tables.chance["skeletons"])
        self.made: list[Made] = []
        self.functions = Functions(self.plan, self.made)
        self.functions.signature((), None)  # main's
        self.cost = 0
        self.main: tuple[int, list[int]] = (0, [])

    def make(self) -> None:
        """Generate all the code."""
        chance, plan, tables = self.chance, self.plan, self.tables
        size, work = chance.weighted(tables.size), chance.weighted(tables.work)
        if plan.objects is not None:
            size += size // 2
        count, functions = chance.weighted(tables.functions), self.functions
        if plan.kind is CodeKind.LAUNCHING:
            if plan.objects is not None and self._has_skeletons:
                SkeletonFunctions(plan, self.made).make(size, work)
            ItemFunctions(plan, self.made).make(size, work)
            count //= 2
        count += len(self.made)
        while len(self.made) < count:
            # Each may take an equal part of half the size.
            limit = max(12, size // (2 * count))
            if chance.flip(tables.chance["recursive"]):
                functions.recursive(1 + chance.below(2), limit)
            else:
                functions.plain(limit, max(20, work // 8))
            functions.enter_in_table()
        if plan.is_risky and chance.flip(tables.chance["runaway"]):
            functions.runaway()
        functions.enter_in_table()
        self._main(max(size, len(plan.ops) + size // 2), work)

    # --- main -----------------------------------------------------------------------------------

    def _main(self, limit: int, work: int) -> None:
        """The function that starts: it sets its locals, does statements, and halts."""
        chance, plan = self.chance, self.plan
        entry = len(plan.ops)
        body = Statements(plan, (), None, limit, work, is_risky=False)
        body.is_main = body.is_large = True
        if plan.objects is not None:
            plan.occurred[Corner.OBJECTS] += 1
        for t in (*range(4), *(plan.any_type() for _ in range(chance.between(0, 5)))):
            local = body.new_local(t, is_writable=True)
            if chance.flip(self.tables.chance["initial_local"]):
                body.const(t, body.literal(t)) if t < FIRST else body.reference_new(t, 1)
                body.put(SET, local)
        if plan.objects is not None:
            self._fill_statics(body)
        for vector in plan.vectors:
            if chance.flip(self.tables.chance["vector_local"]):
                self.functions.cache_address(body, vector.address)
        if plan.is_crowded:
            body.many_locals()
        capacity = body.limit - len(plan.ops)
        # Risk comes late, so that much is executed before a trap.
        careful_until = len(plan.ops) + int(capacity * (0.5 + 0.5 * chance.random()))
        uncalled, unlaunched = list(plan.callees), list(plan.items)
        while body.has_capacity:
            body.is_risky = plan.is_risky and len(plan.ops) >= careful_until
            if uncalled and chance.flip(self.tables.chance["first_call"]):
                body.perform(uncalled.pop())
            elif unlaunched and chance.flip(self.tables.chance["first_launch"]):
                body.launch(unlaunched.pop())
            elif plan.skeletons and chance.flip(self.tables.chance["first_skeleton"]):
                body.any_skeleton()
            elif plan.own_hosts and chance.flip(_HOST_CALLS):
                body.statement_print()
            elif chance.flip(self.tables.chance["main_loop"]):
                body.statement_loop()
            else:
                body.statement()
        self._save_floats(body)
        if plan.is_risky and chance.flip(self.tables.chance["last_trap"]):
            body.is_risky = True
            body.statement_trap()
        body.limit += 20
        for _ in range(chance.below(4)):
            body.value(plan.any_type(), 1)
        body.put(_HALT)
        body.settle()
        self.cost = body.cost
        self.main = entry, body.locals

    def _fill_statics(self, body: Statements) -> None:
        """Append code that puts objects into statics, which takes nothing from the rest."""
        before = len(body.ops)
        for t, statics in enumerate(body.plan.statics[FIRST:], FIRST):
            for number in statics:
                if self.chance.flip(self.tables.chance["initial_local"]):
                    body.reference_new(t, 1)
                    body.put(STATIC_SET, number)
        body.limit += len(body.ops) - before

    def _save_floats(self, body: Statements) -> None:
        """Append stores of some locals to the heap, where all bits of a NaN are compared."""
        for t in (F32, F64):
            for local in body.writable[t]:
                if self.chance.flip(self.tables.chance["save_local"]):
                    body.const(I64, self.chance.below(self.layout.scratch // 8) * 8)
                    body.put(GET, local)
                    body.put(_STORE[t])

    # --- the program ------------------------------------------------------------------------------

    def program(self) -> Program:
        """The program that was made."""
        plan, layout = self.plan, self.layout
        for pc in plan.static_counts:
            plan.immediates[pc] = plan.static_count + plan.counters
        first, locals_ = self.main
        functions = [Function("main", 0, 0, tuple(plan.types[t] for t in locals_))]
        for number, (entry, signature, types, parameters) in enumerate(self.made, 1):
            own = tuple(plan.types[t] for t in types[parameters:])
            entry += len(plan.ops) - first
            name = plan.names.get(number, f"f{number}")
            functions.append(Function(name, entry, signature, own))
        signatures = [
            Signature(
                tuple(plan.types[t] for t in parameters), tuple(plan.types[t] for t in results)
            )
            for parameters, results in plan.signatures
        ]
        counters = [Static(f"counter{n}", TYPES[I64]) for n in range(plan.counters)]
        by_place = {place: number for number, place in plan.table.items()}
        program = Program(
            code=self._code(first),
            functions=tuple(functions),
            signatures=tuple(signatures),
            statics=(*layout.statics, *counters),
            data=(Data(0, layout.data),),
            table=tuple(by_place[place] for place in range(plan.table_size)),
            hosts=self.hosts,
            tags=tuple(
                Tag(f"tag{number}", tuple(plan.types[t] for t in values))
                for number, values in enumerate(plan.tags)
            ),
            types=() if plan.objects is None else plan.objects.declared,
        )
        return self._with_clauses(program, first) if plan.clauses else program

    def _with_clauses(self, program: Program, first: int) -> Program:
        """The program with its clauses, whose depths are the operands where their ranges start.

        A range in a handler is reached once the clauses around it are known, so those are the
        first.
        """
        size = len(program.code)

        def moved(pc: int) -> int:
            return (pc - first) % size

        # Main, which was generated last, comes first.
        made = self.plan.clauses
        mains = [clause for clause in made if clause.start >= first]
        left = {
            place: Clause(moved(start), moved(end - 1) + 1, moved(handler), 0, tag, record)
            for place, (start, end, handler, _, tag, record) in enumerate(
                [*mains, *made[: len(made) - len(mains)]]
            )
            if start < end
        }
        known: dict[int, Clause] = {}
        while left:
            verified = verify(program)
            found = {
                place: clause._replace(depth=verified.depth(clause.start))
                for place, clause in left.items()
                if verified.is_reachable(clause.start)
            }
            if not found:
                break
            known |= found
            left = {place: clause for place, clause in left.items() if place not in found}
            clauses = tuple(known[place] for place in sorted(known))
            program = dataclasses.replace(program, clauses=clauses)
        return program

    def _headers(
        self, opcodes: npt.NDArray[np.uint16], immediates: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.uint64]:
        """Offsets from numbers of locals to words of the frame."""
        entries = [entry for entry, *_ in self.made] + [self.main[0], len(opcodes)]
        counts = [parameters for *_, parameters in self.made] + [0]
        parameters = np.repeat(np.array(counts, np.uint64), np.diff(entries))
        more = np.where(immediates < parameters, np.uint64(0), np.uint64(HEADER_WORDS)) - parameters
        return np.where((opcodes == GET) | (opcodes == SET), more, np.uint64(0))

    def _code(self, first: int) -> Code:
        """The code with main, which was generated last and begins at `first`, moved to the front.

        So functions are in the order of assembly, and the program can be disassembled.
        """
        opcodes = np.array(self.plan.ops, np.uint16)
        immediates = np.array(self.plan.immediates, np.uint64)
        size = np.uint64(len(opcodes))
        immediates += self._headers(opcodes, immediates)
        targets = (opcodes == JUMP) | (opcodes == JUMP_IF) | (opcodes == JUMP_UNLESS)
        immediates[targets] = (immediates[targets] + (size - np.uint64(first))) % size
        return Code.of(np.roll(opcodes, -first).tolist(), np.roll(immediates, -first).tolist())
