# SPDX-License-Identifier: Apache-2.0
"""Random expressions as Skiff text. Every literal bears its type, so that nothing is left to infer
that could be inferred otherwise."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

from ferryvm.isa import INSTRUCTIONS
from ferryvm.isa.type import to_float
from ferryvm.testing.generate.catalogue import LOADS, Catalogue, Guard
from ferryvm.testing.generate.chance import Chance, Weighted
from ferryvm.testing.generate.literal import BITS, F32, I32, I64, TYPES
from ferryvm.testing.generate.tables import CodeKind, joined, literals, methods
from ferryvm.testing.generate.weights import Weights

NAMES = tuple(str(t) for t in TYPES)
_INTEGER = ("+", "-", "*", "&", "|", "^", "<<", ">>", ">>>", "/", "%", "~")
_FLOAT = ("+", "-", "*", "/", "min", "max", "sqrt", "abs", "floor", "ceil", "trunc", "nearest")
_UNARY = frozenset(("~", "sqrt", "abs", "floor", "ceil", "trunc", "nearest"))
_COMPARISONS = ("<", ">", "<=", ">=", "=", "!=")
SCRATCH = 64
"""Bytes of the block that loads and stores go to."""
MOST_WORK = 2500
"""The largest number of words of the text of a program, each weighted by its executions."""


@dataclasses.dataclass(frozen=True)
class Array:
    """A global array; its length is a power of two."""

    name: str
    type: int
    length: int


@dataclasses.dataclass(frozen=True)
class Record:
    """A global variable that refers to a struct of the type `record`."""

    name: str
    types: tuple[int, ...]
    """Types of the fields `f0`, `f1` and so on; `next` follows them."""


@dataclasses.dataclass(frozen=True)
class Function:
    """A function that can be called."""

    name: str
    parameters: tuple[int, ...]
    result: int
    work: int
    throws: bool
    """True if it leaves exceptions to its callers."""


class SkiffTables:
    """Tables to draw from by weight."""

    def __init__(self, weights: Weights, writer: type) -> None:
        """`writer`: the class with the methods that the weights name."""
        self.chance = weights.chance
        self.catalogue = Catalogue(weights.instruction)
        self.statements: dict[CodeKind, Weighted[Callable[[Any], str]]] = {
            CodeKind.PLAIN: methods(writer, weights, "skiff_statement", "statement"),
            CodeKind.LAUNCHING: joined(
                writer, weights, ("skiff_statement", "skiff_launch"), "statement"
            ),
            CodeKind.ITEM: methods(writer, weights, "skiff_item", "statement"),
        }
        plain: Weighted[Callable[[Any, int, int], str]] = methods(
            writer, weights, "skiff_value", "value"
        )
        more = joined(writer, weights, ("skiff_value", "skiff_launch_value"), "value")
        self.values: dict[CodeKind, Weighted[Callable[[Any, int, int], str]]] = {
            kind: plain if kind is CodeKind.PLAIN else more for kind in CodeKind
        }
        self.items = weights.numbers("items")
        self.literal = literals(weights)


class Expressions:
    """One text in the making; each `value_` method writes a kind of expression of a type."""

    kind = CodeKind.PLAIN
    """The code that is being written."""

    def __init__(self, chance: Chance, tables: SkiffTables) -> None:
        self.chance, self.tables = chance, tables
        self.is_risky = chance.flip(tables.chance["risky"])
        self.readable: list[list[str]] = [[], [], [], []]
        self.writable: list[list[str]] = [[], [], [], []]
        self.arrays: list[Array] = []
        self.records: list[Record] = []
        self.functions: list[Function] = []
        self.weight, self.work, self.most = 1, 0, MOST_WORK
        self.names = 0
        self.nesting = 0
        self.thrown: int | None = None
        """The type of the program's exceptions; None for a program without."""
        self.catches = False
        """True if enclosing forms, or callers, catch exceptions."""

    # --- names, work ----------------------------------------------------------------------------

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def know(self, name: str, t: int, is_writable: bool = True) -> None:
        self.readable[t].append(name)
        if is_writable:
            self.writable[t].append(name)

    def forget(self, name: str, t: int) -> None:
        self.readable[t].remove(name)
        if name in self.writable[t]:
            self.writable[t].remove(name)

    def affords(self, work: int) -> bool:
        """True if there may be that much more here."""
        return self.work + self.weight * work <= self.most

    @contextlib.contextmanager
    def repeated(self, times: int) -> Iterator[None]:
        self.weight *= times
        yield
        self.weight //= times

    def operation(self, t: int, left: str, right: str) -> str:
        """An operator on two values, one that every number takes."""
        operator = self.chance.pick(("+", "-", "*") if t >= F32 else ("+", "-", "*", "^"))
        return f"({operator} {left} {right})"

    # --- values ---------------------------------------------------------------------------------

    def literal(self, t: int) -> str:
        """A literal with its type."""
        bits = self.chance.weighted(self.tables.literal)(self.chance, t)
        name = NAMES[t]
        if t < F32:
            half = 1 << (BITS[t] - 1)
            if self.chance.flip(0.2):
                return f"{bits:#x}{name}"
            return f"{bits - 2 * half if bits >= half else bits}{name}"
        value = to_float(TYPES[t], bits)
        if math.isfinite(value):
            return f"{value!r}{name}"
        return f"({name} {value!r})"

    def variable(self, t: int) -> str:
        """A variable of the type; there always is one."""
        self.work += self.weight
        return self.chance.pick(self.readable[t])

    def leaf(self, t: int) -> str:
        """A variable or a literal."""
        if self.chance.flip(0.65):
            return self.variable(t)
        self.work += self.weight
        return self.literal(t)

    def value(self, t: int, depth: int) -> str:
        """An expression of the type."""
        if depth <= 0 or not self.affords(8):
            return self.leaf(t)
        self.work += 2 * self.weight
        return self.chance.weighted(self.tables.values[self.kind])(self, t, depth - 1)

    def condition(self, depth: int) -> str:
        """An expression that holds or does not."""
        chance = self.chance
        self.work += 3 * self.weight
        choice = chance.random()
        if choice < 0.7 or depth <= 0:
            t = chance.below(4)
            operands = [self.value(t, depth) for _ in range(3 if chance.flip(0.1) else 2)]
            return f"({chance.pick(_COMPARISONS)} {' '.join(operands)})"
        if choice < 0.9:
            head = chance.pick(("and", "or"))
            return f"({head} {self.condition(depth - 1)} {self.condition(depth - 1)})"
        return f"(not {self.condition(depth - 1)})"

    def value_leaf(self, t: int, depth: int) -> str:
        """A literal or a variable."""
        return self.leaf(t)

    def value_operator(self, t: int, depth: int) -> str:
        """An operator on values."""
        chance = self.chance
        operator = chance.pick(_FLOAT if t >= F32 else _INTEGER)
        if operator in _UNARY or (operator == "-" and chance.flip(0.1)):
            return f"({operator} {self.value(t, depth)})"
        left, right = self.value(t, depth), self.value(t, depth - 1)
        if t < F32 and operator in "/%" and not (self.is_risky and chance.flip(0.05)):
            right = self._divisor(t, right)
        if operator in "+*" and chance.flip(0.15):
            return f"({operator} {left} {right} {self.leaf(t)})"
        return f"({operator} {left} {right})"

    def value_instruction(self, t: int, depth: int) -> str:
        """An instruction under its own name."""
        operator = self.chance.weighted(self.tables.catalogue.producers[t])
        operands = [self.value(pop, depth) for pop in operator.pops]
        is_wild = self.is_risky and self.chance.flip(0.05)
        if operator.guard is Guard.DIVISOR and not is_wild:
            operands[1] = self._divisor(t, operands[1])
        if operator.guard is Guard.OVERFLOW and not is_wild:
            operands = [f"(& 32767{NAMES[t]} {each})" for each in operands]
        name = INSTRUCTIONS[operator.opcode].mnemonic
        if operator.guard is Guard.RANGE and not is_wild:
            return self._within(operands[0], operator.pops[0], t, name)
        if operator.guard is Guard.UNKNOWN and not is_wild:
            return self.leaf(t)
        return f"({name} {' '.join(operands)})"

    def _divisor(self, t: int, value: str) -> str:
        """A positive one made of any value."""
        return f"(| 1{NAMES[t]} (& 255{NAMES[t]} {value}))"

    def _within(self, value: str, t: int, result: int, operation: str) -> str:
        """A conversion of a float, where it is sure to fit."""
        name = self.name("x")
        fits = f"(< -1.0{NAMES[t]} {name} 1000000.0{NAMES[t]})"
        chosen = f"(if {fits} ({operation} {name}) {self.literal(result)})"
        return f"(let (({name} {value})) {chosen})"

    def value_conversion(self, t: int, depth: int) -> str:
        """A number of another type."""
        source = self.chance.below(4)
        # A literal would have the new type, so the converted operand is computed.
        value = f"(+ {self.value(source, depth)} {self.variable(source)})"
        if t >= F32 or source < F32 or (self.is_risky and self.chance.flip(0.1)):
            return f"({NAMES[t]} {value})"
        return self._within(value, source, t, NAMES[t])

    def value_if(self, t: int, depth: int) -> str:
        """One of two."""
        return f"(if {self.condition(1)} {self.value(t, depth)} {self.value(t, depth - 1)})"

    def value_cond(self, t: int, depth: int) -> str:
        """One of several."""
        clauses = [
            f"({self.condition(0)} {self.value(t, depth - 1)})"
            for _ in range(self.chance.between(1, 3))
        ]
        return f"(cond {' '.join(clauses)} (else {self.value(t, depth)}))"

    def value_let(self, t: int, depth: int) -> str:
        """A value that has a name for a while."""
        bound = self.chance.below(4)
        value, name = self.value(bound, depth), self.name("x")
        self.know(name, bound)
        inner = self.operation(t, name if bound == t else self.leaf(t), self.value(t, depth))
        self.forget(name, bound)
        return f"(let (({name} {value})) {inner})"

    def value_begin(self, t: int, depth: int) -> str:
        """Statements, then a value."""
        if self.nesting >= 2:
            return self.leaf(t)
        return f"(begin {self.statement()} {self.value(t, depth)})"

    def value_call(self, t: int, depth: int) -> str:
        """The result of a call."""
        found = [f for f in self.functions if f.result == t and self.affords(f.work)]
        if not found:
            return self.value_operator(t, depth)
        return self.call(self.chance.pick(found), depth - 1)

    def call(self, function: Function, depth: int) -> str:
        """A call, with handlers around it for exceptions that nothing else would catch."""
        self.work += self.weight * function.work

        def text() -> str:
            arguments = [self.value(t, depth) for t in function.parameters]
            return f"({' '.join([function.name, *arguments])})"

        is_left = function.throws and not self.catches
        if is_left and not (self.is_risky and self.chance.flip(0.1)):
            return self.catching(text, function.result)
        return text()

    def catching(self, inside: Callable[[], str], t: int) -> str:
        """The text that `inside` writes, of that type, with forms around it that catch its
        exceptions."""
        assert self.thrown is not None
        around, self.catches = self.catches, True
        body = inside()
        self.catches = around
        name = self.name("e")
        self.know(name, self.thrown, is_writable=False)
        caught = self.value(t, 1)
        if self.chance.flip(0.6) and t == self.thrown:
            caught = self.operation(t, name, caught)
        self.forget(name, self.thrown)
        finally_ = f" (finally {self.statement()})" if self.chance.flip(0.2) else ""
        return f"(try {body} (catch ({name}) {caught}){finally_})"

    def value_throw(self, t: int, depth: int) -> str:
        """A value, or an exception instead of it."""
        if self.thrown is None or not self.catches:
            return self.leaf(t)
        arms = [f"(throw {self.value(self.thrown, depth)})", self.value(t, depth)]
        first = self.chance.below(2)
        return f"(if {self.condition(0)} {arms[first]} {arms[1 - first]})"

    def value_try(self, t: int, depth: int) -> str:
        """A value that may be thrown."""
        if self.thrown is None or self.nesting >= 2:
            return self.value_operator(t, depth)
        return self.catching(lambda: f"{self.statement()} {self.value_throw(t, depth)}", t)

    def value_array(self, t: int, depth: int) -> str:
        """An element of an array, or its length."""
        found = [array for array in self.arrays if array.type == t]
        if t == I64 and self.chance.flip(0.1):
            return f"(array-length {self.chance.pick(self.arrays).name})"
        if not found:
            return self.leaf(t)
        array = self.chance.pick(found)
        return f"(array-ref {array.name} {self.index(array)})"

    def value_reference(self, t: int, depth: int) -> str:
        """A field of a struct, or a comparison of references."""
        fields = [
            f"(record-f{number} {record.name})"
            for record in self.records
            for number, type_ in enumerate(record.types)
            if type_ == t
        ]
        if t == I32:
            pair = [self.chance.pick(self.arrays).name for _ in range(2)]
            fields.append(f"(eq? {' '.join(pair)})")
            fields.append(f"(array=? {pair[0]} (array-copy {pair[0]}))")
            fields += [f"(null? (record-next {record.name}))" for record in self.records]
        return self.chance.pick(fields) if fields else self.value_array(t, depth)

    def index(self, array: Array) -> str:
        if self.is_risky and self.chance.flip(0.03):
            return self.value(I64, 1)
        if self.chance.flip(0.3):
            return f"{self.chance.pick((0, array.length - 1))}i64"
        return f"(& {self.value(I64, 1)} {array.length - 1}i64)"

    def value_load(self, t: int, depth: int) -> str:
        """The value in the block."""
        offset, address = self.address()
        name = INSTRUCTIONS[self.chance.pick(LOADS[t]).opcode].mnemonic
        return f"({name} {offset} {address})"

    def address(self) -> tuple[int, str]:
        """An offset and an address, of at least 8 bytes of the block together."""
        if self.is_risky and self.chance.flip(0.03):
            return self.chance.pick((0, 8, 1 << 31)), f"(- (heap.size) {self.chance.below(9)}i64)"
        offset = self.chance.below(SCRATCH // 2 - 8)
        return offset, f"(+ block (& {self.value(I64, 1)} {SCRATCH // 2 - 1}i64))"

    def value_select(self, t: int, depth: int) -> str:
        """One of two, both computed."""
        operands = f"{self.value(t, depth)} {self.value(t, depth)}"
        return f"(select {operands} {self.condition(0)})"

    def value_boolean(self, t: int, depth: int) -> str:
        """A condition as a number."""
        condition = self.condition(depth)
        if t == I32:
            return condition
        return f"({NAMES[t]} (+ {condition} {self.variable(I32)}))"

    def statement(self) -> str:
        """A form without a value, or one whose value is not used."""
        raise NotImplementedError
