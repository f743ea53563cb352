# SPDX-License-Identifier: Apache-2.0
"""Random programs as Skiff text, which always compiles.

Loops count by variables that only they set, recursions by a parameter that is cut down first.
"""

from __future__ import annotations

import functools

from ferryvm.isa import INSTRUCTIONS
from ferryvm.program import HostImport
from ferryvm.testing.generate.catalogue import STORES
from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.generate.literal import F64, I32, I64, NUMBER
from ferryvm.testing.generate.skiff_expression import (
    MOST_WORK,
    NAMES,
    SCRATCH,
    Array,
    Function,
    Record,
    SkiffTables,
)
from ferryvm.testing.generate.skiff_launch import ELEMENTS, Launches
from ferryvm.testing.generate.tables import CodeKind
from ferryvm.testing.generate.weights import Weights, default

_DEPTH = 7
"""Depth of a recursion; all ones."""


@functools.lru_cache(maxsize=4)
def _tables(weights: Weights) -> SkiffTables:
    return SkiffTables(weights, Writer)


def write(
    chance: Chance, weights: Weights | None = None, hosts: tuple[HostImport, ...] = ()
) -> str:
    """Text of a random program, which calls these host functions besides those that print."""
    writer = Writer(chance, _tables(weights or default()))
    writer.hosts = hosts
    return writer.program()


def declaration(host: HostImport) -> str:
    """The form that declares a host function."""
    words = " ".join(map(str, host.signature.parameters))
    return (
        f"(host-function {host.name} {' '.join((f'({words})', *map(str, host.signature.results)))})"
    )


class Writer(Launches):
    """One text in the making; each `statement_` method writes a kind of statement."""

    hosts: tuple[HostImport, ...] = ()
    """Host functions of a campaign."""

    # --- the whole ----------------------------------------------------------------------------

    def program(self) -> str:
        """The text."""
        chance = self.chance
        lines = [declaration(host) for host in self.hosts]
        for t in (*range(4), *(chance.below(4) for _ in range(chance.below(3)))):
            name = self.name("g")
            lines.append(f"(define {name} {self.literal(t)})")
            self.know(name, t)
        for _ in range(chance.between(1, 3)):
            t, length = chance.below(4), chance.pick((1, 2, 4, 8, 16))
            array = Array(self.name("v"), t, length)
            element = chance.pick(ELEMENTS[t])
            first = f" {self.literal(t)}" if chance.flip(0.4) else ""
            lines.append(f"(define {array.name} (make-array {element} {length}{first}))")
            self.arrays.append(array)
        if chance.flip(self.tables.chance["skiff_structs"]):
            lines += self._records()
        lines.append(f"(define block (heap.alloc {SCRATCH}i64))")
        if chance.flip(self.tables.chance["skiff_throws"]):
            self.thrown = chance.below(4)
        if chance.apart("launches").flip(self.tables.chance["skiff_launches"]):
            self.kind = CodeKind.LAUNCHING
            lines += self.item_functions()
        lines += [self._function() for _ in range(chance.below(3))]
        for _ in range(chance.between(3, 8)):
            if not self.affords(30):
                break
            lines.append(self.statement())
        lines += [self._host_call(host) for host in self.hosts if chance.flip(0.5)]
        if self.items and self.affords(100) and chance.flip(0.1):
            lines.append(self.long_reduction())
        if self.is_risky and chance.flip(0.4):
            lines.append(self._trap())
        lines.append(f"(print! {' '.join(self.variable(t) for t in range(4))})")
        lines.append(self.value(chance.below(4), 2))
        return "\n".join(lines) + "\n"

    def _records(self) -> list[str]:
        """The definition of a struct, and of one or two variables that refer to such structs."""
        chance = self.chance
        types = tuple(chance.below(4) for _ in range(chance.between(1, 3)))
        fields = " ".join(f"(f{number} {NAMES[t]})" for number, t in enumerate(types))
        lines = [f"(define-struct record {fields} (next record))"]
        for _ in range(chance.between(1, 2)):
            record = Record(self.name("r"), types)
            values = " ".join(self.literal(t) for t in types)
            lines.append(f"(define {record.name} (make-record {values} null))")
            self.records.append(record)
        return lines

    def _function(self) -> str:
        """The definition of a function, which may call itself and those before it."""
        chance = self.chance
        recurses = chance.flip(self.tables.chance["recursive"])
        parameters = tuple(chance.below(4) for _ in range(chance.between(0, 3)))
        if recurses:
            parameters = (chance.below(2), *parameters)
        result = chance.below(4)
        name = self.name("fun")
        outside = ([*map(list, self.readable)], [*map(list, self.writable)], self.work, self.most)
        self.work, self.most = 0, MOST_WORK // (_DEPTH * 8 if recurses else 8)
        throws = self.catches = self.thrown is not None and chance.flip(0.7)
        names = [self.name("p") for _ in parameters]
        for number, (parameter, t) in enumerate(zip(names, parameters, strict=True)):
            self.know(parameter, t, is_writable=not (recurses and number == 0))
        body = [self.statement() for _ in range(chance.between(0, 2))]
        value = self.value_throw(result, 2) if throws else self.value(result, 3)
        if recurses:
            counter = names[0]
            suffix = NAMES[parameters[0]]
            body.insert(0, f"(set! {counter} (& {counter} {_DEPTH}{suffix}))")
            further = [f"(- {counter} 1{suffix})"]
            further += [self.value(t, 1) for t in parameters[1:]]
            recursion = f"({name} {' '.join(further)})"
            is_caught = throws and chance.flip(self.tables.chance["caught_recursion"])
            call = self.catching(lambda: recursion, result) if is_caught else recursion
            deeper = self.operation(result, call, value)
            value = f"(if (> {counter} 0{suffix}) {deeper} {self.value(result, 1)})"
        work = (self.work + 20) * (_DEPTH + 1 if recurses else 1)
        self.readable, self.writable, self.work, self.most = outside
        self.catches = False
        self.functions.append(Function(name, parameters, result, work, throws))
        typed = [f"({n} {NAMES[t]})" for n, t in zip(names, parameters, strict=True)]
        head = " ".join([name, *typed])
        return f"(define ({head}) -> {NAMES[result]}\n  " + "\n  ".join([*body, value]) + ")"

    # --- statements -----------------------------------------------------------------------------

    def statement(self) -> str:
        """A form without a value, or one whose value is not used."""
        self.work += 2 * self.weight
        self.nesting += 1
        text = self.chance.weighted(self.tables.statements[self.kind])(self)
        self.nesting -= 1
        return text

    def _some(self) -> str:
        """One or two statements."""
        if self.nesting >= 4 or not self.affords(20):
            return self.statement_set()
        return " ".join(self.statement() for _ in range(self.chance.between(1, 2)))

    def statement_set(self) -> str:
        """A variable gets a value, its own changed or another."""
        t = self.chance.below(4)
        if not self.writable[t]:
            t = next(other for other in range(4) if self.writable[other])
        name = self.chance.pick(self.writable[t])
        if self.chance.flip(0.4):
            return f"(set! {name} {self.operation(t, name, self.value(t, 2))})"
        return f"(set! {name} {self.value(t, 3)})"

    def statement_print(self) -> str:
        """Numbers are printed; in no loop of many iterations."""
        if self.weight > 4:
            return self.statement_set()
        self.work += 60 * self.weight
        if self.hosts and self.chance.flip(0.7):
            return self._host_call(self.chance.pick(self.hosts))
        return f"(print! {self.value(self.chance.below(4), 2)})"

    def _host_call(self, host: HostImport) -> str:
        """A call of a host function; a result is stored in a variable."""
        parameters, results = host.signature.parameters, host.signature.results
        call = f"({' '.join([host.name, *(self.value(NUMBER[t], 2) for t in parameters)])})"
        if not results or not self.writable[NUMBER[results[0]]]:
            return call
        return f"(set! {self.chance.pick(self.writable[NUMBER[results[0]]])} {call})"

    def statement_write_byte(self) -> str:
        """A byte is written."""
        if self.weight > 4:
            return self.statement_set()
        return f"(write-byte! {self.value(I32, 1)})"

    def statement_if(self) -> str:
        """Statements under a condition."""
        otherwise = f" (begin {self._some()})" if self.chance.flip(0.4) else ""
        return f"(if {self.condition(1)} (begin {self._some()}){otherwise})"

    def statement_cond(self) -> str:
        """One of several groups of statements."""
        clauses = [
            f"({self.condition(0)} {self._some()})" for _ in range(self.chance.between(1, 3))
        ]
        return f"(cond {' '.join(clauses)})"

    def statement_while(self) -> str:
        """A loop that counts."""
        chance = self.chance
        trips = chance.pick((1, 2, 3, 4, 7, 8, 16, 40))
        while trips > 1 and not self.affords(trips * 40):
            trips //= 3
        if trips < 1 or not self.affords(40) or self.nesting >= 4:
            return self.statement_set()
        t = chance.below(2)
        name, suffix = self.name("turn"), NAMES[t]
        self.know(name, t, is_writable=False)
        with self.repeated(trips):
            self.work += 10 * self.weight
            body = self._some()
        self.forget(name, t)
        # The variable is in a let, so that it can be a local of functions, too.
        step = f"(set! {name} (+ {name} 1{suffix}))"
        loop = f"(while (< {name} {trips}{suffix}) {body} {step})"
        return f"(let (({name} 0{suffix})) {loop})"

    def statement_array_set(self) -> str:
        """An element of an array gets a value."""
        array = self.chance.pick(self.arrays)
        index, value = self.index(array), self.value(array.type, 2)
        return f"(array-set! {array.name} {index} {value})"

    def statement_array_range(self) -> str:
        """Several elements of an array get a value, or those of other ones."""
        array = self.chance.pick(self.arrays)
        start = self.chance.below(array.length)
        if self.chance.flip(0.5):
            end = self.chance.between(start, array.length)
            return f"(array-fill! {array.name} {self.value(array.type, 2)} {start}i64 {end}i64)"
        at = self.chance.below(array.length)
        end = start + self.chance.between(0, array.length - max(start, at))
        other = array.name if self.chance.flip(0.5) else f"(array-copy {array.name})"
        return f"(array-copy! {array.name} {at}i64 {other} {start}i64 {end}i64)"

    def statement_struct(self) -> str:
        """A field of a struct gets a value, or a variable a new struct."""
        if not self.records:
            return self.statement_array_set()
        record, other = self.chance.pick(self.records), self.chance.pick(self.records)
        if self.chance.flip(0.6):
            field = self.chance.below(len(record.types))
            return f"(set-record-f{field}! {record.name} {self.value(record.types[field], 2)})"
        values = " ".join(self.value(t, 1) for t in record.types)
        following = self.chance.pick(("null", other.name, f"(record-next {record.name})"))
        return f"(set! {record.name} (make-record {values} {following}))"

    def statement_text(self) -> str:
        """A string is printed."""
        text = self.chance.pick(("", "a", "some text", "äöü"))
        more = f' (array-append "{text}" "b")' if self.chance.flip(0.5) else f' "{text}"'
        return f"(print!{more})"

    def statement_store(self) -> str:
        """Some bytes of the block get a value."""
        t = self.chance.below(4)
        offset, address = self.address()
        name = INSTRUCTIONS[self.chance.pick(STORES[t]).opcode].mnemonic
        return f"({name} {offset} {address} {self.value(t, 2)})"

    def statement_call(self) -> str:
        """A call for its effects."""
        found = [f for f in self.functions if self.affords(f.work)]
        return self.call(self.chance.pick(found), 2) if found else self.statement_set()

    def statement_let(self) -> str:
        """Statements with a variable of their own."""
        t = self.chance.below(4)
        value, name = self.value(t, 2), self.name("x")
        self.know(name, t)
        body = self._some()
        self.forget(name, t)
        return f"(let (({name} {value})) {body} {self.statement_set()})"

    def statement_try(self) -> str:
        """A variable gets a value that may be thrown."""
        if self.thrown is None or self.nesting >= 4 or not self.affords(30):
            return self.statement_set()
        t = self.chance.below(4)
        name = self.chance.pick(self.writable[t] or self.readable[t])
        value = self.catching(lambda: f"{self._some()} {self.value_throw(t, 2)}", t)
        return f"(set! {name} {value})" if self.writable[t] else f"(print! {value})"

    def statement_scope(self) -> str:
        """Statements that are marked as worth compiling."""
        return f"(enter-jit ({self._some()}))"

    def _trap(self) -> str:
        """A form that traps."""
        array = self.chance.pick(self.arrays)
        return self.chance.pick(
            (
                f"(print! (/ {self.variable(I64)} 0i64))",
                f"(print! (% {self.variable(I32)} (& 0i32 {self.variable(I32)})))",
                f"(print! (array-ref {array.name} {array.length}i64))",
                f"(array-fill! {array.name} {self.literal(array.type)} 1i64 0i64)",
                "(print! (cast string null))",
                "(print! (i64.load 0 (heap.size)))",
                f"(print! (i32 (/ {self.variable(F64)} 0.0f64)))",
                "(print! (heap.alloc 1000000i64))",
            )
        )
