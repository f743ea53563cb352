# SPDX-License-Identifier: Apache-2.0
"""Planted faults of the maps of references: words of frames with exceptions that are no roots."""

from __future__ import annotations

import weakref

from ferryvm.isa.type import I64, Reference
from ferryvm.machine import object_memory
from ferryvm.machine.collection import ROW_WORDS
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.object_shape import ReferenceMap
from ferryvm.program import MAX_TAG_VALUES, Clause
from ferryvm.verify import Verified


class _FaultyMap(ReferenceMap):
    """One that forgets some operands that are references."""

    def forgotten(self, pc: int) -> range:
        """Numbers of operands at `pc` of which none is a root."""
        raise NotImplementedError

    def handlers(self, pc: int) -> list[Clause]:
        """The clauses whose handlers begin with the operands of `pc`."""
        clauses = self._verified.program.clauses
        return [one for one in clauses if self._keys[one.handler] == self._keys[pc]]

    def _row(self, pc: int, gone: int = 0) -> int:
        row = super()._row(pc, gone)
        _, first = self._in_frames[self._keys[pc][0]]
        lost = {first + number for number in self.forgotten(pc)}
        count, is_entered, *places = self.rows[row : row + ROW_WORDS + self.rows[row]]
        found = [place for place in places if place not in lost]
        if len(found) == count:
            return row
        new = len(self.rows)
        self.rows.extend((len(found), is_entered, *found))
        return new


class _ValuesForgotten(_FaultyMap):
    def forgotten(self, pc: int) -> range:
        for clause in self.handlers(pc):
            if clause.tag is not None:
                return range(clause.depth, self._verified.depth(pc))
        return range(0)


class _OperandsForgotten(_FaultyMap):
    def forgotten(self, pc: int) -> range:
        return range(max((one.depth for one in self.handlers(pc)), default=0))


class _RecordsForgotten(_FaultyMap):
    def forgotten(self, pc: int) -> range:
        references = self._verified.program.record_references
        types = self._verified.operand_types(pc)
        words = (I64,) * (1 + MAX_TAG_VALUES)
        for number in range(len(types) - references - len(words) + 1):
            of_record = types[number : number + references]
            end = number + references
            if all(isinstance(t, Reference) for t in of_record) and (
                tuple(types[end : end + len(words)]) == words
            ):
                return range(number, end)
        return range(0)


_facts: dict[type[_FaultyMap], weakref.WeakKeyDictionary[Verified, object_memory._Facts]] = {
    kind: weakref.WeakKeyDictionary() for kind in _FaultyMap.__subclasses__()
}


class _WithMap(ObjectMemory):
    """The objects of a machine, collected by a faulty map."""

    kind: type[_FaultyMap]

    def collect(self) -> None:
        right, known = self._facts, _facts[self.kind]
        if self._verified not in known:
            known[self._verified] = found = object_memory._Facts(self._verified)
            found.map = self.kind(self._verified)
        self._facts = known[self._verified]
        try:
            super().collect()
        finally:
            self._facts = right


class ValuesOfExceptionsForgotten(_WithMap):
    """The references of an exception are no roots where its handler begins."""

    kind = _ValuesForgotten


class OperandsBelowExceptionsForgotten(_WithMap):
    """The operands that remain are no roots where a handler begins."""

    kind = _OperandsForgotten


class RecordsForgotten(_WithMap):
    """The references in the record of an exception on the stack are no roots."""

    kind = _RecordsForgotten


MAP_FAULTS: list[type[ObjectMemory]] = [*_WithMap.__subclasses__()]
