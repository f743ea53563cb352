# SPDX-License-Identifier: Apache-2.0
"""Terms, accesses and traces in words, and their differences."""

from __future__ import annotations

from collections import Counter

from ferryvm_backends.vliw.prove.term import (
    POISON,
    AccessNumber,
    Linear,
    StoreNumber,
    Term,
    Terms,
    Trace,
)

_DEPTH = 3
_LARGEST = 1 << 63


class Explainer:
    """Describes numbers of terms, accesses and stores."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def term(self, term: Term, depth: int = _DEPTH) -> str:
        """A term, to the depth that fits on a line."""
        if term == POISON:
            return "nothing that was set"
        bits = self.terms.bits(term)
        if bits is not None:
            return f"#{self._signed(bits)}"
        register = self.terms.register_of(term)
        if register is not None:
            return repr(register)
        if depth == 0:
            return "…"
        load = self.terms.loaded(term)
        if load is not None:
            return f"load {self.access(load[0], depth - 1)}"
        operation = self.terms.operation(term)
        assert operation is not None
        name, static, operands = operation
        said = ".".join([name, *(getattr(each, "value", str(each)) for each in static)])
        return f"{said}({', '.join(self.term(each, depth - 1) for each in operands)})"

    def access(self, number: AccessNumber, depth: int = _DEPTH) -> str:
        """Bytes of memory."""
        access = self.terms.accesses[number]
        return f"{access.segment.value}[{self.sum(access.address, depth)}]:{access.size}"

    def sum(self, linear: Linear, depth: int) -> str:
        """An address."""
        parts = [
            f"{'' if factor == 1 else f'{self._signed(factor)}*'}{self.term(term, depth)}"
            for term, factor in linear.parts
        ]
        constant = self._signed(linear.constant)
        if not parts:
            return str(constant)
        return "+".join(parts) + (f"{constant:+}" if constant else "")

    @staticmethod
    def _signed(bits: int) -> int:
        return bits - 2 * _LARGEST if bits >= _LARGEST else bits

    def store(self, number: StoreNumber) -> str:
        """A store."""
        store = self.terms.stores[number]
        return f"{self.access(store.access)} = {self.term(store.value)}"

    def values(self, found: Term, wanted: Term) -> str:
        """The difference of a term from the expected one."""
        said = f"should be {self.term(wanted)} and is {self.term(found)}"
        if found == POISON:
            return said
        a, b = self._deepest(found, wanted)
        one, other = self.terms.loaded(a), self.terms.loaded(b)
        if one is not None and other is not None and one[0] == other[0]:
            return f"{said}: load {self.access(one[0])} {self._seen(one[1], other[1])}"
        return said if a == found else f"{said}: {self.term(a)} instead of {self.term(b)}"

    def _deepest(self, a: Term, b: Term) -> tuple[Term, Term]:
        """The difference of two terms, at the deepest position that contains all of it."""
        while True:
            x, y = self.terms.operation(a), self.terms.operation(b)
            if x is None or y is None or x[:2] != y[:2] or len(x[2]) != len(y[2]):
                return a, b
            pairs = [(p, q) for p, q in zip(x[2], y[2], strict=True) if p != q]
            if len(pairs) != 1:
                return a, b
            a, b = pairs[0]

    def _seen(self, found: Trace, wanted: Trace) -> str:
        missing, extra = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
        if missing:
            return f"does not see the store {self.store(next(iter(missing)))} before it"
        if extra:
            return f"sees the store {self.store(next(iter(extra)))}, which comes later"
        return "sees stores that may overlap in another order"

    def traces(self, found: Trace, wanted: Trace) -> str:
        """The difference of the executed stores from the expected ones."""
        missing, extra = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
        for one in missing:
            for other in extra:
                a, b = self.terms.stores[one], self.terms.stores[other]
                if a.access == b.access and a.guard == b.guard:
                    differ = self.values(b.value, a.value)
                    return f"what is stored to {self.access(a.access)} {differ}"
        if missing and extra:
            one, other = next(iter(missing)), next(iter(extra))
            return f"the store {self.store(one)} should be done, and {self.store(other)} is"
        if missing:
            return f"the store {self.store(next(iter(missing)))} is not done"
        if extra:
            return f"the store {self.store(next(iter(extra)))} should not be done"
        pair = next((a, b) for a, b in zip(found, wanted, strict=True) if a != b)
        return (
            f"stores that may overlap are done in another order: {self.store(pair[0])} "
            f"before {self.store(pair[1])}"
        )
