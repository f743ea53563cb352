# SPDX-License-Identifier: Apache-2.0
"""The programs that may have references: the others need no object space."""

from __future__ import annotations

import weakref

from ferryvm.isa import INSTRUCTIONS
from ferryvm.isa.type import Reference
from ferryvm.program import Program
from ferryvm.verify import Verified

_USING = frozenset(row.opcode for row in INSTRUCTIONS if row.has_references)

_with_objects: weakref.WeakKeyDictionary[Verified, bool] = weakref.WeakKeyDictionary()


def has_objects(verified: Verified) -> bool:
    """True if a program may have references: only then its machines have an object space.

    Each program is examined once, for its code may be long and its machines many.
    """
    found = _with_objects.get(verified)
    if found is None:
        found = _with_objects[verified] = _may_have_references(verified.program)
    return found


def _may_have_references(program: Program) -> bool:
    if not _USING.isdisjoint(program.code.opcodes):
        return True
    return any(isinstance(t, Reference) for _, types in program.used_types() for t in types)
