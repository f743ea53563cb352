# SPDX-License-Identifier: Apache-2.0
"""Loops and branches of items in random kernels, between two barriers.

    (barrier)  loop of the item: its own trip count, exits, branches, loops inside  store  (barrier)

They change variables of the item alone, and what they found is stored behind them, once, often
under a condition. So compilers may run several items at once, in lanes of vectors.

Launches without barriers have such items, too, one of which notes something in a static.
"""

from __future__ import annotations

from ferryvm.testing.generate.kernel_code import KernelCode, Mode
from ferryvm.testing.generate.literal import I64
from ferryvm.testing.generate.skiff_expression import NAMES
from ferryvm.testing.generate.skiff_launch import ELEMENTS, Place, define
from ferryvm.testing.generate.tables import CodeKind

_ITEMS = (5, 8, 9, 9, 13)
"""Items of a group: with four lanes, or eight, there are full vectors, and mostly some left."""


class KernelLoops(KernelCode):
    """One text in the making."""

    def looping_items(self) -> int:
        """A number of items."""
        return self.chance.pick(_ITEMS)

    def item_loops(self) -> list[str]:
        """Uniform code, of segments with such loops."""
        lines = []
        for _ in range(self.chance.pick((1, 2, 2))):
            lines += [self.phase_barrier(), self._item_loop()]
        return [*lines, self.phase_barrier(), *self._seen_by_others()]

    def _seen_by_others(self) -> list[str]:
        """Statements behind the last barrier, by which what items found in arrays of the group comes
        to their places."""
        place, lines = self.places[0], []
        for tile in self.tiles:
            if tile.type == place.type:
                self.modes[tile.name] = Mode.READ
                other = f"(array-ref {tile.name} (- {self.count - 1}i64 {self.at}))"
                old = f"(array-ref {place.name} {place.at})"
                value = self.operation(place.type, old, other)
                lines.append(f"(array-set! {place.name} {place.at} {value})")
        return lines

    def noting_launch(self) -> list[str]:
        """A static, a function of items that do not wait, one of which writes it, their launch, and
        what is in the static then."""
        chance, around, count = self.chance, self.kind, self.looping_items()
        cell, name, to, t = self.name("cell"), self.name("note"), self.name("y"), chance.below(4)
        lines = [f"(define {cell} {self.literal(t)})"]
        at, element = self.name("at"), chance.pick(ELEMENTS[t])
        self.kind = CodeKind.ITEM
        with self._own(self.most):
            self.at = self.item = at
            self.know(at, I64, is_writable=False)
            self.places = (Place("to", element, t, at),)
            body = [*self._locals(), self._item_loop()]
            value = self.operation(t, cell if chance.flip(0.5) else self.leaf(t), self.leaf(t))
            body.insert(
                chance.between(4, 5),
                f"(if (= {at} {chance.below(count)}i64) (set! {cell} {value}))",
            )
            lines.append(define(name, [f"({at} i64)", f"(to (array {element}))"], body))
            work = self.work
        self.kind, self.item, self.places = around, None, ()
        self.work += count * work
        launch = f"(for-each-item {count}i64 ({name} {to}))"
        use = f"(print! {cell} (reduce {self._builtin(t)} {to}))"
        made = f"(make-array {element} {count} {self.literal(t)})"
        return [*lines, f"(let (({to} {made})) {launch} {use})"]

    def _item_loop(self) -> str:
        """A loop of the item, and a store of what it found."""
        chance, place = self.chance, self.places[0]
        tiles = [
            tile
            for tile in self.tiles
            if tile.type == place.type and self.modes[tile.name] is Mode.OWN
        ]
        target = place.name, place.at
        if tiles and chance.flip(0.5):
            target = chance.pick(tiles).name, self.at
        t, found = place.type, self.name("found")
        first = self.variable(t) if chance.flip(0.3) else f"({NAMES[t]} {self.at})"
        first = self.at if t == I64 else first
        loop = self._loop(t, found, chance.pick((3, 3, 7)), 2)
        store = f"(array-set! {target[0]} {target[1]} {found})"
        if chance.flip(0.6):
            store = f"(if {self._own_condition(self.at)} {store})"
        return f"(let (({found} {first})) {loop} {store})"

    def _loop(self, t: int, found: str, most: int, depth: int) -> str:
        """A loop of at most so many iterations that changes a variable of a type."""
        chance, k = self.chance, self.name("own")
        trips = f"(& {self._own_number()} {most}i64)"
        condition = f"(< {k} {trips})"
        if chance.flip(0.3):
            condition = f"(and {condition} {self._own_condition(k)})"
        with self.repeated((most + 1) // 2):
            self.work += 10 * self.weight
            body = [self._change(t, found, k, depth) for _ in range(chance.between(1, 2))]
        step = chance.pick(("1i64", "1i64", f"(+ 1i64 (& {self.at} 1i64))"))
        body.append(f"(set! {k} (+ {k} {step}))")
        return f"(let (({k} 0i64)) (while {condition} {' '.join(body)}))"

    def _change(self, t: int, found: str, k: str, depth: int) -> str:
        """A change of a variable of a type, on some paths."""
        choice = self.chance.random()
        self.work += 6 * self.weight
        if choice < 0.2 and depth > 1 and self.affords(60):
            return self._loop(t, found, 3, depth - 1)
        change = f"(set! {found} {self.operation(t, found, self._operand(t, k))})"
        if choice < 0.5:
            return change
        condition = self._own_condition(k)
        if choice < 0.75:
            return f"(if {condition} {change})"
        other = f"(set! {found} {self.operation(t, self._operand(t, k), found)})"
        return f"(if {condition} {change} {other})"

    def _operand(self, t: int, k: str) -> str:
        """A value that often differs from item to item and from one iteration to the next."""
        chance, choice = self.chance, self.chance.random()
        tiles = [o for o in self.tiles if o.type == t and self.modes[o.name] is Mode.READ]
        self.work += 4 * self.weight
        if tiles and choice < 0.5:
            tile = chance.pick(tiles)
            return f"(array-ref {tile.name} (& (+ {self.at} {k}) {tile.length - 1}i64))"
        if choice < 0.75:
            number = f"(+ {chance.pick((self.at, k))} (* {self.at} {chance.below(4)}i64))"
            return number if t == I64 else f"({NAMES[t]} {number})"
        return self.leaf(t)

    def _own_number(self) -> str:
        """A number that mostly differs from item to item."""
        factor = self.chance.pick((1, 1, 3, 5))
        self.work += 4 * self.weight
        if self.chance.flip(0.3):
            return f"(+ {self.at} {self.variable(I64)})"
        return f"(+ {self.chance.below(8)}i64 (* {self.at} {factor}i64))"

    def _own_condition(self, other: str) -> str:
        """A condition that holds in some items only."""
        chance, choice = self.chance, self.chance.random()
        self.work += 4 * self.weight
        if choice < 0.25:
            return self.condition(0)
        most = chance.pick((1, 3, 7))
        number = f"(& (+ {other} {self.at}) {most}i64)"
        return f"({chance.pick(('=', '!=', '<'))} {number} {chance.between(1, most)}i64)"
