# SPDX-License-Identifier: Apache-2.0
"""Random kernels as Skiff text: groups whose items wait for each other at barriers.

    uniform code     barriers, loops and branches around them, operations of the group, calls of a
       │             function with barriers: all items of a group take the same path
       └─ segments   what items do between two barriers: any path, each its own

Items are independent between two barriers by construction. Each array of the group is in one *mode*
from one barrier to the next: an item has its own element, or reads any, or updates any in one
way that commutes. Statics have modes, too: one item of one group writes them, or all items of this
group read them. Code around barriers begins and ends in the same modes, so iterations of a
loop fit each other. Rarely a barrier is in a branch that some items may not take: then the launch
traps, at the same place on every backend.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

from ferryvm.program import HostImport
from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.generate.kernel_code import Cell, Helper, KernelTables, Tile
from ferryvm.testing.generate.kernel_loop import KernelLoops
from ferryvm.testing.generate.literal import I64
from ferryvm.testing.generate.skiff import declaration
from ferryvm.testing.generate.skiff_expression import NAMES, SCRATCH, Array, SkiffTables
from ferryvm.testing.generate.skiff_launch import COMMUTING, ELEMENTS, UPDATED, Place, define
from ferryvm.testing.generate.tables import CodeKind, joined, methods
from ferryvm.testing.generate.weights import Weights, default

_MOST_WORK = 3500
"""As `skiff_expression.MOST_WORK`, of a program with kernels."""
_LOOP_WORK = 1500
"""Work of a kernel whose items have loops of their own, besides."""


class Member(NamedTuple):
    """The function of the items of a group, with its arrays and the sizes of its launch."""

    name: str
    sizes: tuple[int, ...]
    tiles: tuple[Tile, ...]
    parameters: tuple[int, ...]
    work: int
    to: tuple[int, str]
    """Type and element kind of the array in which each item of all groups has an element."""

    @property
    def items(self) -> int:
        """The number of items of a group."""
        return math.prod(self.sizes)


@functools.lru_cache(maxsize=4)
def _tables(weights: Weights) -> KernelTables:
    return KernelTables(
        SkiffTables(weights, Kernels),
        weights.numbers("members"),
        joined(Kernels, weights, ("skiff_item", "skiff_member"), "statement"),
        methods(Kernels, weights, "skiff_phase", "phase"),
    )


def write(
    chance: Chance, weights: Weights | None = None, hosts: tuple[HostImport, ...] = ()
) -> str:
    """Text of a random program with kernels, which calls these host functions besides those that
    print."""
    writer = Kernels(chance, _tables(weights or default()))
    writer.hosts = hosts
    return writer.program()


class Kernels(KernelLoops):
    """One text in the making."""

    def __init__(self, chance: Chance, tables: KernelTables) -> None:
        super().__init__(chance, tables)
        self.most = _MOST_WORK

    # --- the whole ----------------------------------------------------------------------------

    def program(self) -> str:
        """The text."""
        chance = self.chance
        lines = [declaration(host) for host in self.hosts]
        for t in range(4):
            name = self.name("g")
            lines.append(f"(define {name} {self.literal(t)})")
            self.know(name, t)
        t, length = chance.below(4), chance.pick((2, 4, 8, 16))
        array = Array(self.name("v"), t, length)
        element = chance.pick(ELEMENTS[t])
        lines.append(f"(define {array.name} (make-array {element} {length} {self.literal(t)}))")
        self.arrays.append(array)
        lines.append(f"(define block (heap.alloc {SCRATCH}i64))")
        if chance.flip(self.tables.chance["skiff_throws"] / 2):
            self.thrown = chance.below(4)
        kernels = 0
        while kernels < 3 and self.affords(250):
            lines += self._kernel()
            kernels += 1
            if chance.flip(0.5):
                break
        if chance.flip(self.tables.chance["item_loops"]):
            self.most += _LOOP_WORK
            lines += self._kernel(loops=True)
        if chance.flip(self.tables.chance["item_statics"]):
            lines += self.noting_launch()
        lines.append(f"(print! {' '.join(self.variable(t) for t in range(4))})")
        lines.append(self.value(chance.below(4), 1))
        return "\n".join(lines) + "\n"

    def _kernel(self, *, loops: bool = False) -> list[str]:
        """A member function, that of its group if it has one, and their launch; `loops`: its items
        have loops of their own, in vectors of lanes where a compiler has them."""
        chance = self.chance
        groups = chance.pick((0, 1, 2) if loops else (0, 1, 2, 3))
        lines, member = self._member(max(1, groups), loops=loops)
        t, element = member.to
        values, to = self.name("y"), self.name("y")
        arguments = [self.value(one, 1) for one in member.parameters]
        total = member.items * max(1, groups)
        self.work += total * member.work
        missing = self.is_risky and chance.flip(0.05)
        made = f"(make-array {element} {total - missing} {self.leaf(t)})"
        shared = f"(make-array i64 4 {self.literal(I64)})"
        use = f"{self._use(to, t, total - missing)} {self._use(values, I64, 4)}"
        if groups:
            name = self.name("group")
            lines.append(self._group(name, member))
            launch = f"(for-each-item {groups}i64 ({' '.join([name, to, values, *arguments])}))"
        else:
            launch = self._launch(member, "0i64", to, values, arguments)
        lines.append(f"(let (({to} {made}) ({values} {shared})) {launch} {use})")
        return lines

    def _launch(
        self, member: Member, group: str, to: str, shared: str, arguments: list[str]
    ) -> str:
        """The launch of the members of a group, in which its arrays are made."""
        sizes = [f"{size}i64" for size in member.sizes]
        number = sizes[0] if len(sizes) == 1 else f"({' '.join(sizes)})"
        tiles, values = [self.name("y") for _ in member.tiles], [self.name("y") for _ in range(4)]
        made = [
            f"(make-array {tile.element} {tile.length} {self.literal(tile.type)})"
            for tile in member.tiles
        ]
        made += [f"(make-array {NAMES[t]} {member.items})" for t in range(4)]
        pairs = " ".join(f"({n} {one})" for n, one in zip((*tiles, *values), made, strict=True))
        call = " ".join([member.name, *tiles, *values, to, shared, group, *arguments])
        uses = []
        for name, tile in zip(tiles, member.tiles, strict=True):
            if group == "0i64" and self.chance.flip(0.5):
                uses.append(self._use(name, tile.type, tile.length))
            elif self.chance.flip(0.3):
                uses.append(f"(print! (array-ref {name} {self.chance.below(tile.length)}i64))")
        return f"(let ({pairs}) (for-each-item {number} ({call})) {' '.join(uses)})"

    def _group(self, name: str, member: Member) -> str:
        """The function of an item that is a group."""
        names = [self.name("p") for _ in member.parameters]
        typed = ["(g i64)", f"(to (array {member.to[1]}))", "(all (array i64))"]
        typed += [f"({n} {NAMES[t]})" for n, t in zip(names, member.parameters, strict=True)]
        return define(name, typed, [self._launch(member, "g", "to", "all", names)])

    # --- members ------------------------------------------------------------------------------

    def _member(self, groups: int, *, loops: bool) -> tuple[list[str], Member]:
        """The definitions of a member function and of the one that it may call."""
        chance = self.chance
        count = self.looping_items() if loops else chance.weighted(self.kernel_tables.members)
        while count * groups > 40:
            count //= 2
        sizes = self._sizes_of(count)
        self.count = math.prod(sizes)
        around, self.kind = self.kind, CodeKind.ITEM
        lines = []
        if chance.flip(0.5):
            t = chance.below(4)
            lines.append(self._pure((t, t), t))
            self.pure = (*self.pure, self.functions[-1])
        self.tiles = tuple(self._tile() for _ in range(chance.between(1, 3)))
        self.cells = tuple(self._cell(groups) for _ in range(chance.pick((0, 1, 1, 2))))
        lines += [f"(define {cell.name} {self.literal(cell.type)})" for cell in self.cells]
        place_type = chance.below(4)
        to = place_type, chance.pick(ELEMENTS[place_type])
        name, indices = self.name("member"), [self.name("at") for _ in sizes]
        group, parameters = "g", tuple(chance.below(4) for _ in range(chance.below(3)))
        names = [self.name("p") for _ in parameters]
        values = [f"values{t}" for t in range(4)]
        arrays = [f"({tile.name} (array {tile.element}))" for tile in self.tiles]
        arrays += [f"({n} (array {NAMES[t]}))" for t, n in enumerate(values)]
        arrays += [f"(to (array {to[1]}))", "(all (array i64))", f"({group} i64)"]
        arrays += [f"({n} {NAMES[t]})" for n, t in zip(names, parameters, strict=True)]
        given = [tile.name for tile in self.tiles] + [*values, "to", "all", group, *names]
        uniform = [*map(list, self.readable)]
        uniform[I64].append(group)
        for n, t in zip(names, parameters, strict=True):
            uniform[t].append(n)
        most = (self.most - self.work) // (2 * self.count * groups)
        if not loops and chance.flip(self.tables.chance["kernel_helper"]):
            lines.append(self._helper(arrays, given, uniform, most // 4, to))
        with self._in_member(uniform, most):
            body, self.at = [], indices[0]
            if len(indices) > 1:
                self.at = self.name("place")
                index = indices[0]
                for size, further in zip(sizes[1:], indices[1:], strict=True):
                    index = f"(+ (* {index} {size}i64) {further})"
                body.append(f"(define {self.at} {index})")
            self.item = self.at
            for index in {*indices, self.at}:
                self.know(index, I64, is_writable=False)
            body += self._variables(to)
            body += self.item_loops() if loops else self.phases()
            if self.is_risky and chance.flip(self.tables.chance["trapping_items"] / 3):
                body.append(f"(if {self.condition(1)} (begin {self._item_trap()}))")
            if not loops:  # what they found is not to be overwritten
                body.append(self.statement_put())
            work = self.work + 60
        self.kind, self.helper = around, None
        self.item, self.places = None, ()
        member = Member(name, sizes, self.tiles, parameters, work, to)
        for cell in self.cells:
            self.know(cell.name, cell.type)
        self.tiles, self.cells = (), ()
        typed = [f"({n} i64)" for n in indices]
        return [*lines, define(name, [*typed, *arrays], body)], member

    def _sizes_of(self, count: int) -> tuple[int, ...]:
        """Sizes in one to three dimensions of about so many items."""
        dimensions = self.chance.pick((1, 1, 1, 2, 3)) if count > 1 else 1
        if dimensions == 1:
            return (count,)
        inner = self.chance.pick((2, 3, 4))
        if dimensions == 2:
            return (max(1, count // inner), inner)
        return (max(1, count // (2 * inner)), 2, inner)

    def _tile(self) -> Tile:
        t, length = self.chance.below(4), 1
        while length < self.count:
            length *= 2
        element = self.chance.pick(ELEMENTS[t])
        update = self.chance.pick(COMMUTING) if element in UPDATED else ""
        return Tile(self.name("tile"), element, t, length, update)

    def _cell(self, groups: int) -> Cell:
        chance = self.chance
        group = chance.below(groups) if groups > 1 else None
        return Cell(self.name("cell"), chance.below(4), group, chance.below(self.count))

    @contextlib.contextmanager
    def _in_member(self, uniform: list[list[str]], most: int) -> Iterator[None]:
        """Context in which a function of members is written, which has variables of its own."""
        outside = self.uniform, self.settable, self.depth
        self.uniform = [list(names) for names in uniform]
        self.settable = [[], [], [], []]
        with self._own(max(60, most)):
            self.readable = [list(names) for names in uniform]
            self.modes = self.any_modes()
            yield
        self.uniform, self.settable, self.depth = outside

    def _variables(self, to: tuple[int, str]) -> list[str]:
        """Definitions of variables: of each item, then of the group."""
        lines = self._locals()
        for t in range(4):
            name = self.name("same")
            lines.append(f"(define {name} {self.uniform_leaf(t)})")
            self.know(name, t, is_writable=False)
            self.uniform[t].append(name)
            self.settable[t].append(name)
        at = f"(+ (* g {self.count}i64) {self.at})"
        self.places = (Place("to", to[1], to[0], at),)
        return lines

    def _helper(
        self,
        arrays: list[str],
        given: list[str],
        uniform: list[list[str]],
        most: int,
        to: tuple[int, str],
    ) -> str:
        """The definition of a function with barriers, which gets the arrays of its caller."""
        name, t = self.name("meet"), self.chance.below(4)
        with self._in_member(uniform, most):
            self.at = self.item = "at"
            self.know("at", I64, is_writable=False)
            self.know("given", t)
            start = dict(self.modes)
            body = [*self._variables(to), *self.phases(), *self.restored(start)]
            if not any("barrier" in line or "group-" in line for line in body):
                body.append("(barrier)")
            value = self.value(t, 1)
            work = self.work + 20
        self.helper = Helper(f"({name} {{at}} {{value}} {' '.join(given)})", start, t, work)
        return define(name, ["(at i64)", f"(given {NAMES[t]})", *arrays], [*body, value], NAMES[t])
