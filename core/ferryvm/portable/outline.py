# SPDX-License-Identifier: Apache-2.0
"""Outlining: a loop as a function of its own, in bytecode.

    loop in f                               loop as a function
    reads local 1, changes local 2          (local 1, local 2) -> (local 2)
    operands below it on the stack          further parameters, which it pushes first
    leaves to pc 40 or to pc 52             -> (…, exit): 0 for pc 40, 1 for pc 52

Parameters are the locals that the loop reads before it writes them; results are those that it
writes and that something reads after it. Statics remain statics: `ferryvm.portable.subject` makes
arguments of them. (Liveness: Aho, Lam, Sethi, Ullman: Compilers, 2007, section 9.2.5.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow, Immediate
from ferryvm.isa.frame import number_of, return_immediate, word_of
from ferryvm.isa.type import I64, ValueType
from ferryvm.portable.refusal import ExportError
from ferryvm.program import Program, Signature
from ferryvm.region.code import FLOWS
from ferryvm.region.graph import Graph
from ferryvm.region.region import Region

_GET, _SET, _JUMP, _DROP, _RETURN, _CONST = (
    BY_MNEMONIC[name].opcode
    for name in ("local.get", "local.set", "jump", "drop", "return", "i64.const")
)
_MASK = (1 << 64) - 1
_ENDED = (Flow.JUMP, Flow.RETURN, Flow.STOP, Flow.THROW, Flow.TABLE)


class Outlined(NamedTuple):
    """A loop as a function, whose targets are still counted from its start."""

    signature: Signature
    locals: tuple[ValueType, ...]
    code: list[tuple[int, int]]
    targets: set[int]
    """Instructions whose immediate is a pc, counted from the start of the function."""
    origins: list[int]
    """The instruction that each one is a copy of; -1 for new ones."""
    names: list[str]
    """Of the parameters."""
    results: list[str]


def outline(region: Region) -> Outlined:
    """The loop that a region is. Raises ExportError for one in which exceptions are caught, or that
    has a jump table with targets outside."""
    return _Outline(region).run()


class _Outline:
    def __init__(self, region: Region) -> None:
        self.region, self.verified = region, region.verified
        self.program: Program = region.verified.program
        self.position = self.program.source_map.position(region.entry)
        self.count = len(self.program.signature(region.function).parameters)
        self.types = self.program.signature(region.function).parameters + (
            self.program.functions[region.function].locals
        )
        self.pcs = sorted(region.pcs)
        graph: Graph = region.graph
        self.graph = graph
        self.exits = sorted(
            {
                to
                for first in region.blocks
                for to in graph.blocks[first].successors
                if to not in region.blocks
            }
        )

    def run(self) -> Outlined:
        """The function."""
        self._check()
        written = {self._local(pc) for pc in self.pcs if self._opcode(pc) == _SET}
        every = self._live(self.graph.blocks, {})
        read_later = {n for to in self.exits for n in every[to]}
        results = sorted(n for n in written if n in read_later)
        after = dict.fromkeys(self.exits, frozenset(results))
        parameters = sorted(self._live(self.region.blocks, after)[self.region.entry])
        return self._copied(parameters, results, sorted(written - {*parameters}))

    def _check(self) -> None:
        inside = {*self.pcs}
        for clause in self.program.clauses:
            if any(clause.start <= pc < clause.end for pc in inside):
                what = f"region {self.region.name!r} is in code that catches exceptions"
                raise ExportError(what, "export the function", self.position)
        for pc in self.pcs:
            if FLOWS[self._opcode(pc)] is Flow.TABLE:
                count = self.program.code.immediates[pc] + 1
                if not inside.issuperset(range(pc + 1, pc + 1 + count)):
                    what = f"region {self.region.name!r} is left by a jump table"
                    raise ExportError(what, "export the function", self.position)

    def _opcode(self, pc: int) -> int:
        return self.program.code.opcodes[pc]

    def _local(self, pc: int) -> int:
        found = number_of(self.program.code.immediates[pc], self.count)
        assert found is not None
        return found

    def _live(
        self, blocks: Iterable[int], after: dict[int, frozenset[int]]
    ) -> dict[int, frozenset[int]]:
        """The locals that are live at the start of each block; `after`: those at blocks outside."""
        used: dict[int, set[int]] = {}
        defined: dict[int, set[int]] = {}
        for first in blocks:
            used[first], defined[first] = set(), set()
            for pc in range(first, self.graph.blocks[first].last + 1):
                if self._opcode(pc) == _GET and self._local(pc) not in defined[first]:
                    used[first].add(self._local(pc))
                if self._opcode(pc) == _SET:
                    defined[first].add(self._local(pc))
        live = {first: frozenset[int]() for first in used} | after
        has_changed = True
        while has_changed:
            has_changed = False
            for first, own in used.items():
                onward = self.graph.blocks[first].successors
                out = frozenset[int]().union(*(live[to] for to in onward))
                found = frozenset(own | (out - defined[first]))
                has_changed |= found != live[first]
                live[first] = found
        return live

    def _copied(self, parameters: list[int], results: list[int], others: list[int]) -> Outlined:
        operands = self.verified.operand_types(self.region.entry)
        types = [*(self.types[n] for n in parameters), *operands]
        words = {n: word_of(place, len(types)) for place, n in enumerate([*parameters])}
        for place, n in enumerate(others, len(types)):
            words[n] = word_of(place, len(types))
        code: list[tuple[int, int]] = []
        origins: list[int] = []
        targets: dict[int, int] = {}
        """Instructions with the pc of the program that they lead to."""
        places: dict[int, int] = {}

        def add(opcode: int, immediate: int = 0, origin: int = -1) -> None:
            code.append((opcode, immediate & _MASK))
            origins.append(origin)

        def jump(to: int, opcode: int = _JUMP, origin: int = -1) -> None:
            targets[len(code)] = to
            add(opcode, 0, origin)

        for place in range(len(parameters), len(types)):
            add(_GET, word_of(place, len(types)))
        jump(self.region.entry)
        for pc in self.pcs:
            places[pc] = len(code)
            opcode, immediate = self._opcode(pc), self.program.code.immediates[pc]
            kind = INSTRUCTIONS[opcode].immediate
            if kind is Immediate.TARGET:
                jump(immediate, opcode, pc)
            elif kind is Immediate.LOCAL:
                add(opcode, words[self._local(pc)], pc)
            else:
                add(opcode, immediate, pc)
            if FLOWS[opcode] not in _ENDED and pc + 1 not in self.region.pcs:
                jump(pc + 1)
        for number, to in enumerate(self.exits):
            places[to] = len(code)
            for _ in self.verified.operand_types(to):
                add(_DROP)
            for n in results:
                add(_GET, words[n])
            if len(self.exits) > 1:
                add(_CONST, number)
            add(_RETURN, return_immediate(len(types), len(results) + (len(self.exits) > 1)))
        for at, to in targets.items():
            code[at] = code[at][0], places[to]
        returned = [self.types[n] for n in results] + [I64] * (len(self.exits) > 1)
        names = [self._name(n) for n in parameters]
        new = [f"new_{self._name(n)}" for n in results] + ["exit"] * (len(self.exits) > 1)
        return Outlined(
            Signature(tuple(types), tuple(returned)),
            tuple(self.types[n] for n in others),
            code,
            {*targets},
            origins,
            [*names, *(f"operand_{place}" for place in range(len(operands)))],
            new,
        )

    def _name(self, local: int) -> str:
        given = self.program.functions[self.region.function].parameters
        name = given[local] if local < len(given) else ""
        return name or f"local_{local}"
