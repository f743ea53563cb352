# SPDX-License-Identifier: Apache-2.0
"""Code of random kernels: uniform code, which has barriers, and segments between them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NamedTuple

from ferryvm.testing.generate.chance import Chance, Weighted
from ferryvm.testing.generate.literal import F32, I64
from ferryvm.testing.generate.skiff import Writer
from ferryvm.testing.generate.skiff_expression import NAMES, SkiffTables
from ferryvm.testing.generate.skiff_launch import UPDATED
from ferryvm.testing.generate.tables import CodeKind

_OPERATION_WORK = 25
"""Instructions of an operation of a group for each item, roughly."""
_TRIPS = (1, 2, 3, 3, 5)
_DEEPEST = 3
"""Constructs around barriers inside each other."""


class Mode(enum.Enum):
    """The use of an array of the group, or of a static, from one barrier to the next."""

    OWN = "each item its own element; the static its one item"
    READ = "any element is read"
    UPDATE = "any element is updated"


class Tile(NamedTuple):
    """An array of the group; its length is a power of two, at least the number of items."""

    name: str
    element: str
    type: int
    length: int
    update: str
    """The way in which it may be updated; empty if its elements cannot be."""


class Cell(NamedTuple):
    """A static that one item of one group writes and reads, or all items of this group read."""

    name: str
    type: int
    group: int | None
    """The number of the group; None if there is one only."""
    item: int
    """The number of the item in its group."""


class Helper(NamedTuple):
    """A function with barriers."""

    call: str
    """A call of it, with `{at}` and `{value}` for the item and an argument."""
    modes: dict[str, Mode]
    """The modes at its start, and at its end."""
    type: int
    work: int


class KernelTables(NamedTuple):
    """Tables to draw from by weight."""

    skiff: SkiffTables
    members: Weighted[int]
    segments: Weighted[Callable[[Any], str]]
    phases: Weighted[Callable[[Any], str]]


class KernelCode(Writer):
    """One text in the making; each `phase_` method writes uniform code."""

    def __init__(self, chance: Chance, tables: KernelTables) -> None:
        super().__init__(chance, tables.skiff)
        self.kernel_tables = tables
        self.at = ""
        """The number of the item in its group, in the function of a member."""
        self.count = 1
        """Items of the group."""
        self.tiles: tuple[Tile, ...] = ()
        self.cells: tuple[Cell, ...] = ()
        self.modes: dict[str, Mode] = {}
        self.uniform: list[list[str]] = [[], [], [], []]
        """Variables with the same value in all items of a group, by type."""
        self.settable: list[list[str]] = [[], [], [], []]
        """The ones among them that uniform code sets."""
        self.helper: Helper | None = None
        """A function with barriers that may be called."""
        self.depth = 0

    # --- uniform code -------------------------------------------------------------------------

    def phases(self) -> list[str]:
        """Uniform code; modes at its end are any."""
        lines = []
        for _ in range(self.chance.between(1, 4 - self.depth // 2)):
            if not self.affords(20):
                break
            lines.append(self.chance.weighted(self.kernel_tables.phases)(self))
        return lines or [self.phase_segment()]

    def _nested(self) -> str:
        """Uniform code within a construct: modes at its end are those at its start."""
        start = dict(self.modes)
        self.depth += 1
        self.nesting += 1
        lines = [*self.phases(), *self.restored(start)]
        self.nesting -= 1
        self.depth -= 1
        return " ".join(lines)

    def restored(self, modes: dict[str, Mode]) -> list[str]:
        """Code behind which the modes are these."""
        if self.modes == modes:
            return []
        self.modes = dict(modes)
        return ["(barrier)", self.phase_segment()] if self.chance.flip(0.3) else ["(barrier)"]

    def any_modes(self) -> dict[str, Mode]:
        """Modes behind a barrier."""
        found = {}
        for tile in self.tiles:
            modes = (Mode.OWN, Mode.OWN, Mode.READ, Mode.READ)
            found[tile.name] = self.chance.pick((*modes, Mode.UPDATE) if tile.update else modes)
        for cell in self.cells:
            found[cell.name] = self.chance.pick((Mode.OWN, Mode.READ, Mode.READ))
        return found

    def uniform_leaf(self, t: int) -> str:
        """A value that is the same in all items of a group."""
        self.work += self.weight
        cells = self._read_cells(t)
        if cells and self.chance.flip(0.4):
            return self._taken(self.chance.pick(cells))
        if self.uniform[t] and self.chance.flip(0.7):
            return self.chance.pick(self.uniform[t])
        return self.literal(t)

    def uniform_condition(self) -> str:
        """A condition that holds in all items of a group, or in none."""
        chance, t = self.chance, self.chance.below(4)
        self.work += 4 * self.weight
        if t < F32:
            left = f"(& {self.uniform_leaf(t)} {chance.pick((1, 3, 7))}{NAMES[t]})"
            right = f"{chance.below(4)}{NAMES[t]}"
            return f"({chance.pick(('=', '!=', '<', '>='))} {left} {right})"
        return f"({chance.pick(('<', '>=', '!='))} {self.uniform_leaf(t)} {self.uniform_leaf(t)})"

    def phase_segment(self) -> str:
        """Statements between barriers, on any path."""
        return " ".join(self.statement() for _ in range(self.chance.between(1, 2)))

    def phase_barrier(self) -> str:
        """A barrier."""
        self.work += 4 * self.weight
        self.modes = self.any_modes()
        return "(barrier)"

    def phase_cell(self) -> str:
        """A static that its item writes in front of a barrier, and all items read behind it."""
        if not self.cells:
            return self.phase_barrier()
        cell = self.chance.pick(self.cells)
        self.work += 8 * self.weight
        before = [] if self.modes[cell.name] is Mode.OWN else [self.phase_barrier()]
        self.modes[cell.name] = Mode.OWN
        written, barrier = self._written(cell), self.phase_barrier()
        self.modes[cell.name] = Mode.READ
        name = self.variable_of(cell.type)
        read = f"(set! {name} {self.operation(cell.type, name, self._taken(cell))})"
        return " ".join([*before, written, barrier, read])

    def phase_set(self) -> str:
        """A variable of the group gets another value."""
        t = self.chance.below(4)
        name = self.chance.pick(self.settable[t])
        value = self.operation(t, self.uniform_leaf(t), self.uniform_leaf(t))
        return f"(set! {name} {value})"

    def phase_operation(self) -> str:
        """An operation of the group into a variable, of the group if all get the same value."""
        chance, t = self.chance, self.chance.below(4)
        if not self.affords(2 * _OPERATION_WORK):
            return self.phase_barrier()
        self.work += _OPERATION_WORK * self.weight
        form = chance.pick(
            ("reduce", "reduce", "reduce", "broadcast", "scan", "scan", "scan-before")
        )
        value, end = self.value(t, 2), f"{self.at} values{t}"
        self.modes = self.any_modes()
        if form == "broadcast":
            source = f"{chance.below(self.count)}i64" if chance.flip(0.7) else self._bounded()
            text = f"(group-broadcast {value} {source} {end})"
        else:
            operations = ("+", "*", "min", "max")
            operation = chance.pick(operations if t >= F32 else (*operations, "&", "|", "^"))
            found = [f.name for f in self.pure if self._combines(f, t)]
            if found and form != "scan-before" and chance.flip(0.5):
                operation = chance.pick(found)
            text = f"(group-{form} {operation} {value} {end})"
        if form in ("reduce", "broadcast") and chance.flip(0.6):
            return f"(set! {chance.pick(self.settable[t])} {text})"
        return f"(set! {self.variable_of(t)} {text})"

    def _bounded(self) -> str:
        """The number of an item, the same in all items of a group."""
        bits = 1
        while 2 * bits <= self.count:
            bits *= 2
        return f"(& {self.uniform_leaf(I64)} {bits - 1}i64)"

    def phase_loop(self) -> str:
        """A loop that all items iterate equally often."""
        chance, trips = self.chance, self.chance.pick(_TRIPS)
        if self.depth >= _DEEPEST or not self.affords(trips * 40):
            return self.phase_barrier()
        name = self.name("turn")
        bound = f"{trips}i64"
        if chance.flip(0.3):
            bound = f"(& {self.uniform_leaf(I64)} {3 if trips < 5 else 7}i64)"
            trips = 3 if trips < 5 else 7
        self.know(name, I64, is_writable=False)
        self.uniform[I64].append(name)
        with self.repeated(trips):
            condition = f"(< {name} {bound})"
            if chance.flip(0.3):
                condition = f"(and {condition} {self.uniform_condition()})"
            body, behind = self._nested(), ""
            if chance.flip(self.tables.chance["carried"]):
                body, behind = self._carried(body)
        self.forget(name, I64)
        self.uniform[I64].remove(name)
        step = f"(set! {name} (+ {name} 1i64))"
        return f"(let (({name} 0i64)) (while {condition} {body} {step})){behind}"

    def _carried(self, body: str) -> tuple[str, str]:
        """The body of a loop, with a barrier and behind that a change of an item's variable, which
        the next iteration goes on with; and code behind the loop that makes its value seen."""
        place = self.places[0]
        t = self.chance.pick((place.type, I64))
        carried = self.variable_of(t)
        step = self.at if t == I64 else self.leaf(t)
        if "(barrier)" not in body and "(group-" not in body:
            body = f"(barrier) {body}"
        self.work += 8 * self.weight
        body = f"{body} (set! {carried} {self.operation(t, carried, step)})"
        if t == I64:
            return body, f" (atomic-add! all (& {self.at} 3i64) {carried})"
        return body, f" (array-set! {place.name} {place.at} {carried})"

    def phase_if(self) -> str:
        """A branch that all items take, or none."""
        if self.depth >= _DEEPEST:
            return self.phase_barrier()
        condition = self.uniform_condition()
        then = self._nested()
        otherwise = f" (begin {self._nested()})" if self.chance.flip(0.4) else ""
        return f"(if {condition} (begin {then}){otherwise})"

    def phase_call(self) -> str:
        """A call of a function with barriers."""
        helper = self.helper
        if helper is None or not self.affords(helper.work):
            return self.phase_barrier()
        self.work += self.weight * helper.work
        before = self.restored(helper.modes)
        value = self.value(helper.type, 1)
        text = helper.call.replace("{at}", self.at).replace("{value}", value)
        return " ".join([*before, f"(set! {self.variable_of(helper.type)} {text})"])

    def phase_try(self) -> str:
        """Barriers in a form that catches exceptions, which only come behind them: an item that
        left in front of one would go on in other modes than the rest."""
        if self.thrown is None or self.depth >= _DEEPEST:
            return self.phase_barrier()
        t, around = self.chance.below(4), self.catches

        def inside() -> str:
            self.catches = around
            body = self._nested()
            self.catches = True
            return f"{body} {self.value_throw(t, 1)}"

        return f"(set! {self.variable_of(t)} {self.catching(inside, t)})"

    def phase_divergence(self) -> str:
        """Code with barriers that some items may not come to, where risk is on."""
        may = self.is_risky and self.chance.flip(self.tables.chance["divergent_barrier"])
        if not may or self.depth >= _DEEPEST:
            return self.phase_segment()
        chance, condition = self.chance, self.condition(0)
        if chance.flip(0.6):
            condition = f"({chance.pick(('=', '!=', '<'))} {self.at} {chance.below(self.count)}i64)"
        choice = chance.random()
        if choice < 0.35:
            return self._apart(condition)
        body = self._nested()
        if choice < 0.6:
            return f"(if {condition} (begin (barrier) {body}) (begin {self._nested()}))"
        return f"(if {condition} (begin {body} (barrier)))"

    def _apart(self, condition: str) -> str:
        """Two calls of one function with barriers, of which items come to one or to the other."""
        if self.helper is not None and self.chance.flip(0.6):
            before = self.restored(self.helper.modes)
            calls = [f"(begin {self.phase_call()})" for _ in "ab"]
            return " ".join([*before, f"(if {condition} {' '.join(calls)})"])
        t, operator = self.chance.below(4), self.chance.pick(("+", "min"))
        self.work += 2 * _OPERATION_WORK * self.weight
        calls = [f"(group-reduce {operator} {self.value(t, 1)} {self.at} values{t})" for _ in "ab"]
        self.modes = self.any_modes()
        both = [f"(set! {self.variable_of(t)} {call})" for call in calls]
        return f"(if {condition} {' '.join(both)})"

    # --- segments -----------------------------------------------------------------------------

    def statement(self) -> str:
        """A form without a value, or one whose value is not used."""
        if not self.tiles or self.kind is not CodeKind.ITEM or not self.places:
            return super().statement()
        self.work += 2 * self.weight
        self.nesting += 1
        text = self.chance.weighted(self.kernel_tables.segments)(self)
        self.nesting -= 1
        return text

    def leaf(self, t: int) -> str:
        """A variable, a literal, a static or an element of the group's arrays."""
        cells = self._read_cells(t)
        if cells and self.chance.flip(0.3):
            return self._taken(self.chance.pick(cells))
        found = [
            tile
            for tile in self.tiles
            if tile.type == t and self.places and self.modes[tile.name] is not Mode.UPDATE
        ]
        if not found or not self.chance.flip(0.4):
            return super().leaf(t)
        tile = self.chance.pick(found)
        self.work += 4 * self.weight
        return f"(array-ref {tile.name} {self._place_in(tile)})"

    def _place_in(self, tile: Tile) -> str:
        """The index of an element that an item may use."""
        if self.modes[tile.name] is Mode.OWN:
            return self.at
        chance, choice = self.chance, self.chance.random()
        if choice < 0.3:
            return f"(- {self.count - 1}i64 {self.at})"
        if choice < 0.6:
            return (
                f"(& (+ {self.at} {chance.pick((1, 2, tile.length - 1))}i64) {tile.length - 1}i64)"
            )
        if choice < 0.8:
            return f"{chance.below(tile.length)}i64"
        return f"(& {chance.pick(self.readable[I64])} {tile.length - 1}i64)"

    def _read_cells(self, t: int) -> list[Cell]:
        """The statics of a type that all items of their group read up to the next barrier."""
        return [
            cell
            for cell in self.cells
            if cell.type == t and self.places and self.modes[cell.name] is Mode.READ
        ]

    def _taken(self, cell: Cell) -> str:
        """The value of a static, in its group; that of the others is known."""
        self.work += 2 * self.weight
        if cell.group is None:
            return cell.name
        return f"(if (= g {cell.group}i64) {cell.name} {self.literal(cell.type)})"

    def statement_cell_put(self) -> str:
        """A static gets a value in the one item that may write it, often from its former one."""
        found = [cell for cell in self.cells if self.modes[cell.name] is Mode.OWN]
        if not found:
            return self.statement_tile_put()
        return self._written(self.chance.pick(found))

    def _written(self, cell: Cell) -> str:
        self.work += 6 * self.weight
        writes = f"(= {self.at} {cell.item}i64)"
        if cell.group is not None:
            writes = f"(and (= g {cell.group}i64) {writes})"
        value = self.value(cell.type, 1)
        if self.chance.flip(0.5):
            value = self.operation(cell.type, cell.name, value)
        return f"(if {writes} (set! {cell.name} {value}))"

    def statement_tile_put(self) -> str:
        """The item's own element gets a value."""
        found = [tile for tile in self.tiles if self.modes[tile.name] is Mode.OWN]
        if not found:
            return self.statement_put()
        tile = self.chance.pick(found)
        return f"(array-set! {tile.name} {self.at} {self.value(tile.type, 2)})"

    def statement_tile_take(self) -> str:
        """An element that the item may read, into a variable."""
        found = [tile for tile in self.tiles if self.modes[tile.name] is not Mode.UPDATE]
        if not found:
            return self.statement_set()
        tile = self.chance.pick(found)
        self.work += 4 * self.weight
        taken = f"(array-ref {tile.name} {self._place_in(tile)})"
        if self.chance.flip(0.4):
            taken = self.operation(tile.type, self.variable_of(tile.type), taken)
        return f"(set! {self.variable_of(tile.type)} {taken})"

    def statement_tile_update(self) -> str:
        """Any element is updated, or one that the whole launch shares."""
        found = [tile for tile in self.tiles if self.modes[tile.name] is Mode.UPDATE]
        if not found:
            return f"(atomic-add! all (& {self.value(I64, 1)} 3i64) {self.value(I64, 1)})"
        tile = self.chance.pick(found)
        at = f"(& {self.value(I64, 1)} {tile.length - 1}i64)"
        value = self.value(UPDATED[tile.element], 1)
        return f"(atomic-{tile.update}! {tile.name} {at} {value})"
