# SPDX-License-Identifier: Apache-2.0
"""The first difference of the memory of two states: statics, stack, heap, objects."""

from __future__ import annotations

from ferryvm.machine.difference import (
    Difference,
    sparse_difference,
    stack_places,
    static_places,
    word_difference,
)
from ferryvm.machine.state import Machine, Snapshot


def memory_difference(machine: Machine, left: Snapshot, right: Snapshot) -> Difference | None:
    """The first word or byte that differs in two states with equal registers.

    `machine` is in the left state: its stack maps give the types of words.
    """
    return (
        word_difference(left.statics, right.statics, static_places(machine))
        or word_difference(left.stack, right.stack, stack_places(machine))
        or sparse_difference("heap", left.heap, right.heap)
        or _object_difference(machine, left, right)
    )


def _object_difference(machine: Machine, left: Snapshot, right: Snapshot) -> Difference | None:
    if left.objects == right.objects:
        return None
    # Few programs have objects, and fewer differ in them.
    from ferryvm.machine.object_difference import object_difference

    return object_difference(machine.program, left.objects, right.objects)
