# SPDX-License-Identifier: Apache-2.0
"""What is apart in memory, and which orders of stores come to the same."""

from __future__ import annotations

import random

import pytest

from ferryvm.ir import footprint
from ferryvm.ir.graph import Block, Parameter
from ferryvm.isa.element import Element
from ferryvm.isa.type import I32, I64
from ferryvm_backends.vliw.code.dependence import is_apart
from ferryvm_backends.vliw.code.operation import (
    ElementPart,
    FieldPart,
    HeaderPart,
    MemoryOperand,
    ObjectPart,
    Register,
    Segment,
)
from ferryvm_backends.vliw.machine.model import FileKind
from ferryvm_backends.vliw.prove.memory import MemoryAliasing
from ferryvm_backends.vliw.prove.term import POISON, Guard, Term, Terms, Trace

MASK = (1 << 64) - 1


class Words:
    """Terms over two registers, and their values for given contents of those."""

    def __init__(self) -> None:
        self.terms = Terms()
        self.registers = [Register(n, FileKind.INTEGER) for n in range(2)]
        self.pairs = [(self.terms.register(each), each.number) for each in self.registers]
        self.meaning = {term: (lambda r, n=n: r[n]) for term, n in self.pairs}

    def constant(self, bits: int) -> Term:
        found = self.terms.constant(bits)
        self.meaning[found] = lambda r: bits
        return found

    def apply(self, name: str, a: Term, b: Term) -> Term:
        found = self.terms.apply(self.terms.name(name, (I64,)), (a, b))
        one, other = self.meaning[a], self.meaning[b]
        compute = {
            "add": lambda x, y: x + y,
            "sub": lambda x, y: x - y,
            "mul": lambda x, y: x * y,
            "shl": lambda x, y: x << y % 64,
        }[name]
        self.meaning[found] = lambda r: compute(one(r), other(r)) & MASK
        return found


def _address(words: Words, chance: random.Random, depth: int) -> Term:
    if depth == 0 or chance.random() < 0.2:
        constant = words.constant(chance.choice([0, 1, 2, 3, 4, 8, 16, MASK, 1 << 63]))
        return chance.choice([constant, words.pairs[0][0], words.pairs[1][0]])
    name = chance.choice(["add", "add", "sub", "mul", "shl"])
    return words.apply(name, *(_address(words, chance, depth - 1) for _ in range(2)))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_apart_is_so_for_all_registers(seed: int) -> None:
    chance = random.Random(seed)
    words = Words()
    memory, apart = MemoryAliasing(words.terms), 0
    for _ in range(100):
        places = [
            MemoryOperand(Segment.HEAP, chance.randrange(9), chance.choice([1, 4, 8])) for _ in "ab"
        ]
        base = _address(words, chance, 2)
        near = words.apply("add", base, words.constant(chance.randrange(20)))
        far = words.apply("mul", _address(words, chance, 1), words.constant(chance.choice([4, 8])))
        addresses = [base, chance.choice([near, words.apply("sub", near, far)])]
        pairs = zip(places, addresses, strict=True)
        accesses = [words.terms.access(place, address) for place, address in pairs]
        if not memory.are_apart(accesses[0], accesses[1]):
            continue
        apart += 1
        for _ in range(20):
            contents = [chance.choice([chance.randrange(20), chance.getrandbits(64)]) for _ in "ab"]
            bytes_ = [
                {
                    (words.meaning[address](contents) + place.offset + n) & MASK
                    for n in range(place.size)
                }
                for place, address in zip(places, addresses, strict=True)
            ]
            assert not bytes_[0] & bytes_[1]
    assert apart > 20


@pytest.mark.parametrize(
    ("part", "size", "segment", "expected"),
    [
        (ElementPart(Element.F64, 8), 8, Segment.OBJECTS, True),
        (HeaderPart(2), 8, Segment.OBJECTS, True),
        (FieldPart(12, 1), 8, Segment.OBJECTS, True),
        (FieldPart(12, 0), 8, Segment.OBJECTS, False),  # the same
        (ElementPart(Element.F64, 8), 4, Segment.OBJECTS, False),  # no element of that type
        (HeaderPart(2), 4, Segment.OBJECTS, False),
        (None, 8, Segment.OBJECTS, False),
    ],
)
def test_parts_of_objects_are_apart_for_accesses_of_their_size(
    part: ObjectPart | None, size: int, segment: Segment, expected: bool
) -> None:
    words = Words()
    field = MemoryOperand(Segment.OBJECTS, 8, 8, None, FieldPart(12, 0))
    other = MemoryOperand(segment, 8, size, None, part)
    access = words.terms.access
    pairs = access(field, words.pairs[0][0]), access(other, words.pairs[1][0])
    assert MemoryAliasing(words.terms).are_apart(*pairs) is expected
    assert is_apart(field, other) is (part is not None and part != field.part)


def test_places_of_one_sum_are_apart_if_they_have_no_byte_in_common() -> None:
    words = Words()
    terms, memory = words.terms, MemoryAliasing(words.terms)
    (base, _), (index, _) = words.pairs
    first = words.apply("add", base, words.apply("shl", index, words.constant(3)))
    next_ = words.apply("add", index, words.constant(1))
    second = words.apply("add", base, words.apply("mul", next_, words.constant(8)))
    heap = MemoryOperand(Segment.HEAP)
    one, other = terms.access(heap, first), terms.access(heap, second)
    assert memory.are_apart(one, other)
    assert not memory.are_apart(one, terms.access(MemoryOperand(Segment.HEAP, 1), first))
    assert not memory.are_apart(one, terms.access(heap, base))
    assert memory.are_apart(one, terms.access(MemoryOperand(Segment.STACK), first))
    nest, other_nest = Block("nest", 0), Block("other", 0)
    mine, yours = (footprint.Footprint(nest, Parameter(I64), 0, 0, 8) for _ in range(2))
    elsewhere = footprint.Footprint(other_nest, mine.reference, 0, 0, 8)
    in_mine, in_yours, in_other = (
        terms.access(MemoryOperand(Segment.HEAP, object=each), base)
        for each in (mine, yours, elsewhere)
    )
    assert memory.are_apart(in_mine, in_yours)
    assert not memory.are_apart(in_yours, in_other)
    assert not memory.are_apart(in_mine, one)


def test_orders_that_come_to_the_same_are_one() -> None:
    chance = random.Random(3)
    words = Words()
    terms, memory = words.terms, MemoryAliasing(words.terms)
    (base, _), (other, _) = words.pairs
    stores = [
        terms.store(terms.access(MemoryOperand(Segment.HEAP, offset), base), terms.constant(offset))
        for offset in (0, 4, 8, 12, 16, 24)
    ]
    stores.append(terms.store(terms.access(MemoryOperand(Segment.HEAP), other), other))
    for _ in range(200):
        order = [chance.choice(stores) for _ in range(7)]
        again = list(order)
        for _ in range(30):
            at = chance.randrange(6)
            a, b = (terms.stores[each].access for each in again[at : at + 2])
            if memory.are_apart(a, b):
                again[at : at + 2] = again[at : at + 2][::-1]
        assert _after(memory, order) == _after(memory, again)
        at = chance.randrange(6)
        swapped = [*order[:at], order[at + 1], order[at], *order[at + 2 :]]
        a, b = (terms.stores[each].access for each in order[at : at + 2])
        is_same = order[at] == order[at + 1] or memory.are_apart(a, b)
        assert (_after(memory, order) == _after(memory, swapped)) == is_same


def _after(memory: MemoryAliasing, order: list[int]) -> Trace:
    trace: Trace = ()
    for store in order:
        trace = memory.after(trace, store)
    return trace


def test_what_depends_on_a_truth_is_one_or_the_other() -> None:
    terms = Terms()
    predicate, a, b = (terms.register(Register(n, FileKind.INTEGER)) for n in range(3))
    yes, no = Guard(predicate, True), Guard(predicate, False)
    both = terms.choice(no, b, terms.choice(yes, a, POISON))
    assert both == terms.choice(yes, a, terms.choice(no, b, POISON)) == terms.choice(yes, a, b)
    assert (terms.under(yes, both), terms.under(no, both), terms.under(None, both)) == (a, b, both)
    assert terms.choice(yes, a, a) == a
    assert terms.choice(Guard(terms.constant(0), True), a, b) == b
    assert terms.choice(Guard(terms.constant(0), False), a, b) == a
    assert terms.choice(Guard(terms.constant(1), True), a, b) == a


# --- sums -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_terms_that_are_one_mean_the_same(seed: int) -> None:
    chance = random.Random(seed)
    words, met = Words(), 0
    samples = [[chance.getrandbits(64) for _ in range(2)] for _ in range(8)]
    for _ in range(300):
        term = chance.choice(list(words.meaning))
        constant = words.constant(chance.choice([0, 1, 8, 16, MASK, MASK - 7, 1 << 63]))
        pair = (term, constant) if chance.random() < 0.9 else (constant, term)
        before = dict(words.meaning)
        found = words.apply(chance.choice(["add", "sub"]), *pair)
        if found in before:
            met += 1
            assert all(before[found](r) == words.meaning[found](r) for r in samples)
            words.meaning = before
    assert met > 20


def test_a_sum_of_sums_with_constants_is_one_sum() -> None:
    words = Words()
    x = words.pairs[0][0]
    eight, sixteen = words.constant(8), words.constant(16)
    far = words.apply("add", x, sixteen)
    assert words.apply("add", words.apply("add", x, eight), eight) == far
    assert words.apply("sub", words.apply("add", far, eight), eight) == far
    assert words.apply("sub", far, sixteen) == x
    assert words.apply("add", x, words.constant(0)) == x
    assert words.apply("add", x, eight) != far
    narrow = words.terms.name("add", (I32,))
    twice = words.terms.apply(narrow, (words.terms.apply(narrow, (x, eight)), eight))
    assert twice != words.terms.apply(narrow, (x, sixteen))


def test_places_are_one_if_their_addresses_come_to_the_same() -> None:
    words = Words()
    x = words.pairs[0][0]
    far = words.apply("add", words.apply("shl", x, words.constant(1)), words.constant(24))
    near = words.apply("add", x, words.apply("add", x, words.constant(8)))
    one = words.terms.access(MemoryOperand(Segment.HEAP, -16), far)
    assert words.terms.access(MemoryOperand(Segment.HEAP, 0), near) == one
    assert words.terms.access(MemoryOperand(Segment.HEAP, 0, 4), near) != one
    assert words.terms.access(MemoryOperand(Segment.STACK, 0), near) != one
    assert words.terms.access(MemoryOperand(Segment.HEAP, 8), near) != one
    assert words.terms.load(words.terms.access(MemoryOperand(Segment.HEAP), POISON), ()) == POISON
