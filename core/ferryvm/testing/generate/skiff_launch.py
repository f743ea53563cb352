# SPDX-License-Identifier: Apache-2.0
"""Launches in random Skiff texts: `for-each-item` in one to three dimensions, `map`, `map!`,
`reduce`, `scan`, and atomic updates.

    functions of items, first ─> write their own variables and places, call each other
    arrays of places          ─> known when these functions are written: they read none of them

Items are independent by construction: what an item reads besides its own place, no item writes.
What they update together, they update in one way that commutes, without looking at it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

from ferryvm.testing.generate.literal import F32, I32, I64
from ferryvm.testing.generate.skiff_expression import NAMES, Expressions, Function
from ferryvm.testing.generate.tables import CodeKind

ELEMENTS = {
    I32: ("i32",),
    I64: ("i8", "u8", "i16", "u16", "u32", "i64", "i64"),
    F32: ("f32",),
    3: ("f64",),
}
"""Elements of arrays, by the type that they are read as."""
UPDATED = {"i32": I32, "u32": I64, "i64": I64}
"""Elements that are updated atomically, with the types of their values."""
COMMUTING = ("add", "min", "max", "and", "or")
"""Updates that commute with themselves."""
_AROUND = 40
"""Instructions of a skeleton besides its items, roughly."""
_STEP = 15
"""Instructions for an item besides those of its function, roughly."""
_SOME_ITEMS = (0, 0, 1, 2, 3, 5, 7, 16)
_LONG = (257, 300, 513, 1025)
"""Lengths of more than one block of a scan, or of a reduction."""
_ITEM_TRAPS = (
    "(print! (/ {i64} 0i64))",
    "(print! (% {i32} (& 0i32 {i32})))",
    "(print! (array-ref {array} {length}i64))",
    "(array-fill! (array-copy {array}) {element} 1i64 0i64)",
    "(print! (cast string null))",
    "(print! (i32 (/ {f64} 0.0f64)))",
    "(print! (array-length (make-array i8 -1i64)))",
)


class Place(NamedTuple):
    """An array of which each item has an element."""

    name: str
    element: str
    type: int
    at: str
    """The expression of the item's index."""


class Shared(NamedTuple):
    """An array whose elements all items update in one way; its length is a power of two."""

    name: str
    element: str
    update: str
    length: int


@dataclasses.dataclass(frozen=True)
class ItemFunction:
    """A function for `for-each-item`."""

    name: str
    dimensions: int
    places: tuple[Place, ...]
    shared: tuple[Shared, ...]
    parameters: tuple[int, ...]
    work: int
    throws: bool


class Launches(Expressions):
    """Functions of items, and the forms that launch them."""

    kind = CodeKind.PLAIN
    places: tuple[Place, ...] = ()
    """Of the item whose function is being written, as are these."""
    shared: tuple[Shared, ...] = ()
    item: str | None = None
    items: tuple[ItemFunction, ...] = ()
    pure: tuple[Function, ...] = ()
    """Functions that write their own variables only."""

    # --- functions of items -------------------------------------------------------------------

    def item_functions(self) -> list[str]:
        """The definitions of functions for items, and of those that they call or map."""
        chance, around = self.chance, self.kind
        self.kind = CodeKind.ITEM
        lines = [self._pure() for _ in range(chance.between(1, 3))]
        t = chance.below(4)
        lines.append(self._pure((t, t), t))
        self.pure = (*self.functions,)
        lines += [self._item_function() for _ in range(chance.between(1, 2))]
        self.kind = around
        return lines

    @contextlib.contextmanager
    def _own(self, most: int) -> Iterator[None]:
        """Context in which a function of items is written, which has variables of its own."""
        outside = ([*map(list, self.readable)], [*map(list, self.writable)], self.work, self.most)
        self.writable = [[], [], [], []]
        self.work, self.most = 0, most
        yield
        self.readable, self.writable, self.work, self.most = outside
        self.catches = False

    def _locals(self) -> list[str]:
        """Definitions of variables of each type."""
        lines = []
        for t in range(4):
            name = self.name("x")
            lines.append(f"(define {name} {self.leaf(t)})")
            self.know(name, t)
        return lines

    def _pure(self, parameters: tuple[int, ...] = (), result: int | None = None) -> str:
        """The definition of a function of numbers, which may call itself."""
        chance = self.chance
        result = chance.below(4) if result is None else result
        parameters = parameters or tuple(chance.below(4) for _ in range(chance.between(1, 3)))
        name = self.name("pure")
        depth = 0
        if chance.flip(0.2):
            depth = chance.pick((7, 63))
            parameters = (*parameters, chance.below(2))
        with self._own(self.most // (24 * (depth // 4 + 1))):
            throws = self.catches = self.thrown is not None and chance.flip(0.25)
            names = [self.name("p") for _ in parameters]
            for parameter, t in zip(names, parameters, strict=True):
                self.know(parameter, t)
            if depth:
                self.writable[parameters[-1]].remove(names[-1])
            body = self._locals()
            body += [self.statement() for _ in range(chance.below(1 if depth > 7 else 3))]
            value = self.value_throw(result, 1) if throws else self.value(result, 2)
            if depth:
                counter, suffix = names[-1], NAMES[parameters[-1]]
                further = [self.leaf(t) for t in parameters[:-1]]
                call = f"({name} {' '.join(further)} (- {counter} 1{suffix}))"
                body.insert(0, f"(set! {counter} (& {counter} {depth}{suffix}))")
                deeper = self.operation(result, call, value)
                value = f"(if (> {counter} 0{suffix}) {deeper} {self.value(result, 1)})"
            work = (self.work + 20) * (depth + 1)
        self.functions.append(Function(name, parameters, result, work, throws))
        typed = [f"({n} {NAMES[t]})" for n, t in zip(names, parameters, strict=True)]
        return define(name, typed, [*body, value], NAMES[result])

    def _item_function(self) -> str:
        """The definition of a function for `for-each-item`."""
        chance = self.chance
        dimensions = chance.pick((1, 1, 1, 2, 3))
        name = self.name("item")
        indices = [self.name("at") for _ in range(dimensions)]
        sizes = [self.name("n") for _ in range(dimensions - 1)]
        with self._own(self.most // 24):
            throws = self.catches = self.thrown is not None and chance.flip(0.2)
            for index in (*indices, *sizes):
                self.know(index, I64, is_writable=False)
            self.item = chance.pick(indices)
            index = indices[0]
            for size, further in zip(sizes, indices[1:], strict=True):
                index = f"(+ (* {index} {size}) {further})"
            body = []
            if dimensions > 1:
                at = self.name("place")
                body.append(f"(define {at} {index})")
                index = at
            self.places = tuple(self._place(index) for _ in range(chance.pick((1, 1, 2))))
            self.shared = tuple(self._shared() for _ in range(chance.pick((0, 0, 1, 2))))
            parameters = tuple(chance.below(4) for _ in range(chance.below(3)))
            names = [self.name("p") for _ in parameters]
            for parameter, t in zip(names, parameters, strict=True):
                self.know(parameter, t)
            body += self._locals()
            body += [self.statement() for _ in range(chance.between(1, 3))]
            if self.is_risky and chance.flip(self.tables.chance["trapping_items"]):
                body.append(f"(if {self.condition(1)} (begin {self._item_trap()}))")
            if throws:
                assert self.thrown is not None
                body.append(f"(if {self.condition(1)} (throw {self.value(self.thrown, 1)}))")
            body.append(self.statement_put())
            function = ItemFunction(
                name, dimensions, self.places, self.shared, parameters, self.work + 20, throws
            )
        self.items = (*self.items, function)
        self.item, self.places, self.shared = None, (), ()
        typed = [f"({n} i64)" for n in indices]
        typed += [f"({place.name} (array {place.element}))" for place in function.places]
        typed += [f"({shared.name} (array {shared.element}))" for shared in function.shared]
        typed += [f"({n} i64)" for n in sizes]
        typed += [f"({n} {NAMES[t]})" for n, t in zip(names, parameters, strict=True)]
        return define(name, typed, body)

    def _place(self, index: str) -> Place:
        t = self.chance.below(4)
        return Place(self.name("to"), self.chance.pick(ELEMENTS[t]), t, index)

    def _shared(self) -> Shared:
        chance = self.chance
        element = chance.pick((*UPDATED,))
        length = chance.pick((1, 1, 2, 8))
        return Shared(self.name("all"), element, chance.pick(COMMUTING), length)

    def condition(self, depth: int) -> str:
        """Now and then a condition that holds for some items and not for others."""
        chance = self.chance
        if self.item is None or chance.flip(0.5):
            return super().condition(depth)
        self.work += 4 * self.weight
        item = self.item
        if chance.flip(0.4):
            item = f"(& {item} {chance.pick((1, 3, 7))}i64)"
        return f"({chance.pick(('=', '=', '!=', '<', '>='))} {item} {chance.pick(_SOME_ITEMS)}i64)"

    def statement_put(self) -> str:
        """A value into the item's place."""
        if not self.places:
            return self.statement_set()
        place = self.chance.pick(self.places)
        value = self.value(place.type, 2)
        if place.element in UPDATED and self.chance.flip(0.2):
            # Nobody else accesses it, so what comes back does not depend on the order.
            verb = self.chance.pick(("atomic-exchange!", "atomic-fetch-add!", "atomic-fetch-max!"))
            return f"(set! {self.variable_of(place.type)} ({verb} {place.name} {place.at} {value}))"
        return f"(array-set! {place.name} {place.at} {value})"

    def statement_take(self) -> str:
        """The content of the item's place into a variable."""
        if not self.places:
            return self.statement_set()
        place = self.chance.pick(self.places)
        self.work += 4 * self.weight
        return f"(set! {self.variable_of(place.type)} (array-ref {place.name} {place.at}))"

    def statement_update_shared(self) -> str:
        """An element that other items may update, too."""
        if not self.shared:
            return self.statement_put()
        shared = self.chance.pick(self.shared)
        index = self.item if self.item and self.chance.flip(0.5) else self.value(I64, 1)
        value = self.value(UPDATED[shared.element], 1)
        at = f"(& {index} {shared.length - 1}i64)"
        return f"(atomic-{shared.update}! {shared.name} {at} {value})"

    def variable_of(self, t: int) -> str:
        """A variable of the type that may be set; functions of items have one of each."""
        return self.chance.pick(self.writable[t])

    def _item_trap(self) -> str:
        array = self.chance.pick(self.arrays)
        return self.chance.pick(_ITEM_TRAPS).format(
            i32=self.variable(I32),
            i64=self.variable(I64),
            f64=self.variable(3),
            array=array.name,
            length=array.length,
            element=self.literal(array.type),
        )

    # --- arrays -------------------------------------------------------------------------------

    def array_of(self, t: int, length: int, depth: int) -> str:
        """An expression of an array of that many elements which are read as the type."""
        chance = self.chance
        choice = chance.random()
        if depth <= 0 or choice < 0.25 or not self.affords(_AROUND + length * 2 * _STEP):
            known = [a.name for a in self.arrays if a.type == t and a.length == length]
            if known and chance.flip(0.7):
                return chance.pick(known)
            first = f" {self.leaf(t)}" if chance.flip(0.8) else ""
            return f"(make-array {chance.pick(ELEMENTS[t])} {length}{first})"
        self.work += self.weight * (_AROUND + length * _STEP)
        if choice < 0.4:
            return f"(scan {self._operation(t)} {self.array_of(t, length, depth - 1)})"
        if choice < 0.55:
            operator = chance.pick(("+", "-", "*"))
            arrays = [self.array_of(t, length, depth - 1) for _ in range(2)]
            return f"(map {operator} {' '.join(arrays)})"
        mapped = self._mapped(t, length, depth - 1)
        return self.array_of(t, length, 0) if mapped is None else f"(map {mapped})"

    def _mapped(self, t: int, length: int, depth: int) -> str | None:
        """A function of items with its shared arguments and arrays, whose values have the type."""
        chance = self.chance
        found = [
            f
            for f in self.functions
            if f in self.pure
            and f.result == t
            and (not f.throws or self.catches)
            and self.affords(_AROUND + length * (f.work + _STEP))
        ]
        if not found:
            return None
        function = chance.pick(found)
        self.work += self.weight * length * function.work
        mapped = chance.between(1, len(function.parameters))
        shared = [self.value(one, 1) for one in function.parameters[mapped:]]
        arrays = [self.array_of(one, length, depth) for one in function.parameters[:mapped]]
        head = f"({' '.join([function.name, *shared])})" if shared else function.name
        return f"{head} {' '.join(arrays)}"

    def _operation(self, t: int) -> str:
        """An operation of a reduction, or a function: its order is fixed, associative or not."""
        chance = self.chance
        found = [f.name for f in self.pure if self._combines(f, t)]
        if found and chance.flip(0.3):
            return chance.pick(found)
        return chance.pick(("+", "*", "min", "max") if t >= F32 else ("+", "*", "min", "max", "^"))

    def _combines(self, function: Function, t: int) -> bool:
        return (
            function.parameters == (t, t)
            and function.result == t
            and not function.throws
            and function in self.functions
            and function.work < 80
        )

    def value_skeleton(self, t: int, depth: int) -> str:
        """An element of a map or a scan, or all elements combined."""
        chance = self.chance
        length = self._length()
        if self.nesting > 4 or not self.affords(_AROUND + length * 3 * _STEP):
            return self.leaf(t)
        array = self.array_of(t, length, 2)
        if length and chance.flip(0.3):
            return f"(array-ref {array} {chance.pick((0, length // 2, length - 1))}i64)"
        self.work += self.weight * (_AROUND + length * _STEP)
        operation = self._operation(t)
        initial = f"{self.leaf(t)} " if operation[0] == "p" or chance.flip(0.3) else ""
        return f"(reduce {operation} {initial}{array})"

    def _length(self) -> int:
        """The number of elements or items: one for which there are arrays, or any."""
        if self.chance.flip(0.5):
            return self.chance.pick(self.arrays).length
        return self.chance.weighted(self.tables.items)

    # --- statements ---------------------------------------------------------------------------

    def statement_launch(self) -> str:
        """A launch of a function for items, and what comes of it."""
        found = [one for one in self.items if self.catches or not one.throws or self.thrown]
        if not found or self.nesting > 4:
            return self.statement_set()
        chance, function = self.chance, self.chance.pick(found)
        sizes = self._sizes(function)
        count = 1
        for size in sizes:
            count *= size
        self.work += self.weight * (_AROUND + count * (function.work + _STEP))
        bound, names = [], []
        for place in function.places:
            length = count + chance.pick((0, 0, 0, 1, 3))
            if self.is_risky and chance.flip(self.tables.chance["missing_places"] / 2):
                length = max(0, count - chance.pick((1, 1, 2, 5)))
            bound.append((f"(make-array {place.element} {length} {self.leaf(place.type)})", length))
        for shared in function.shared:
            first = self.leaf(UPDATED[shared.element])
            bound.append((f"(make-array {shared.element} {shared.length} {first})", shared.length))
        names = [self.name("y") for _ in bound]
        arguments = [*names, *(f"{size}i64" for size in sizes[1:])]
        arguments += [self.value(t, 1) for t in function.parameters]
        written = [f"{size}i64" for size in sizes]
        if self.is_risky and chance.flip(0.03):
            written[-1] = f"{chance.pick((-1, -8, -(1 << 63)))}i64"
        number = written[0] if len(written) == 1 else f"({' '.join(written)})"
        launch = f"(for-each-item {number} ({' '.join([function.name, *arguments])}))"
        if function.throws and not self.catches:
            launch = f"(print! {self.catching(lambda: f'{launch} {self.leaf(I64)}', I64)})"
        pairs = " ".join(f"({n} {made})" for n, (made, _) in zip(names, bound, strict=True))
        kinds = [*(p.type for p in function.places)]
        kinds += [UPDATED[s.element] for s in function.shared]
        uses = [
            self._use(name, t, length)
            for name, t, (_, length) in zip(names, kinds, bound, strict=True)
        ]
        return f"(let ({pairs}) {launch} {' '.join(uses)})"

    def _sizes(self, function: ItemFunction) -> list[int]:
        chance = self.chance
        count = chance.weighted(self.tables.items)
        while count and not self.affords(_AROUND + count * (function.work + _STEP)):
            count //= 3
        if function.dimensions == 1:
            return [count]
        sizes = [1 + chance.below(max(1, min(5, count))) for _ in range(function.dimensions - 1)]
        inner = 1
        for size in sizes:
            inner *= size
        return [max(0, count // inner), *sizes]

    def _use(self, name: str, t: int, length: int) -> str:
        """A statement by which the elements of an array have consequences."""
        self.work += self.weight * (_AROUND + length * 5)
        chance = self.chance
        if length and chance.flip(0.2):
            value = f"(array-ref {name} {chance.below(length)}i64)"
        else:
            value = f"(reduce {chance.pick(('+', '*', 'max') if t >= F32 else ('+', '^'))} {name})"
        if self.writable[t]:
            return f"(set! {chance.pick(self.writable[t])} {value})"
        return f"(print! {value})"

    def statement_map_to(self) -> str:
        """A map into an array that exists."""
        array = self.chance.pick(self.arrays)
        name = array.name
        # What is read by a function of items is not written while they run, so a fresh one is.
        fresh, t = self.name("y"), array.type
        mapped = self._mapped(t, array.length, 1)
        if mapped is None:
            return self.statement_set()
        self.work += self.weight * (_AROUND + array.length * _STEP)
        use = self._use(fresh, t, array.length)
        return f"(let (({fresh} (array-copy {name}))) (map! {fresh} {mapped}) {use})"

    def long_reduction(self) -> str:
        """A scan or a reduction of several blocks."""
        chance = self.chance
        length, t = chance.pick(_LONG), chance.below(4)
        element = chance.pick(ELEMENTS[t])
        name = self.name("z")
        first = f"(make-array {element} {length} {self.leaf(t)})"
        text = (
            f"(let (({name} {first})) (array-set! {name} {chance.below(length)}i64 {self.leaf(t)}) "
        )
        array = f"(scan {self._builtin(t)} {name})" if length < 600 and chance.flip(0.6) else name
        return f"{text}(print! (reduce {self._builtin(t)} {array})))"

    def _builtin(self, t: int) -> str:
        return self.chance.pick(("+", "*", "min", "max") if t >= F32 else ("+", "*", "max", "&"))

    def statement_set(self) -> str:
        """A variable gets a value, its own changed or another."""
        raise NotImplementedError


def define(name: str, typed: list[str], body: list[str], result: str = "") -> str:
    """The definition of a function."""
    head = " ".join([name, *typed])
    arrow = f" -> {result}" if result else ""
    return f"(define ({head}){arrow}\n  " + "\n  ".join(body) + ")"
