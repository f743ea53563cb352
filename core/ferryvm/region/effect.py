# SPDX-License-Identifier: Apache-2.0
"""Effects of pieces of code: the union of the effects of their instructions.

`ferryvm.isa.effect` determines the effects of one instruction.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TypeVar

from ferryvm import record
from ferryvm.isa import INSTRUCTIONS
from ferryvm.isa.effect import Effect, Summary, summary
from ferryvm.region.call import call_graph
from ferryvm.region.code import code
from ferryvm.region.graph import graph
from ferryvm.region.memo import memoised
from ferryvm.verify import Verified

T = TypeVar("T")


@record.dataclass(frozen=True)
class Effects:
    """The effects of a piece of code.

    All code can leave, since it polls for interrupts; so exits are not recorded.
    """

    kinds: frozenset[Effect] = frozenset()
    """Effects of all instructions; those on locals and stack words concern the frame of their own
    function."""
    numbered_reads: frozenset[int] = frozenset()
    """Statics that are read by `static.get`."""
    numbered_writes: frozenset[int] = frozenset()
    """Statics that are written by `static.set`."""
    all_read: int = 0
    """All statics below this number can be read: 0, or the number of statics if an index is
    computed at run time."""
    all_written: int = 0
    """The same for writes."""

    @functools.cached_property
    def statics_read(self) -> frozenset[int]:
        """Numbers of all statics that can be read."""
        return frozenset(range(self.all_read)) if self.all_read else self.numbered_reads

    @functools.cached_property
    def statics_written(self) -> frozenset[int]:
        """Numbers of all statics that can be written."""
        return frozenset(range(self.all_written)) if self.all_written else self.numbered_writes

    @property
    def reads_heap(self) -> bool:
        """True if heap bytes are loaded."""
        return Effect.READS_HEAP in self.kinds

    @property
    def writes_heap(self) -> bool:
        """True if heap bytes are stored."""
        return Effect.WRITES_HEAP in self.kinds

    @property
    def reads_heap_pointer(self) -> bool:
        """True if the heap pointer is used, as by each bounds check and allocation."""
        return Effect.READS_HEAP_POINTER in self.kinds

    @property
    def allocates(self) -> bool:
        """True if the heap pointer is moved."""
        return Effect.ALLOCATES in self.kinds

    @property
    def calls_host(self) -> bool:
        """True if host functions are called."""
        return Effect.CALLS_HOST in self.kinds

    def __or__(self, other: Effects) -> Effects:
        """The union of both."""
        return Effects(
            _joined(self.kinds, other.kinds),
            _joined(self.numbered_reads, other.numbered_reads),
            _joined(self.numbered_writes, other.numbered_writes),
            max(self.all_read, other.all_read),
            max(self.all_written, other.all_written),
        )


def _joined(left: frozenset[T], right: frozenset[T]) -> frozenset[T]:
    """The union; one of the two if it contains the other, so that callers share their sets."""
    if right <= left:
        return left
    return right if left <= right else left | right


@functools.cache
def _summary(opcode: int) -> Summary:
    return summary(INSTRUCTIONS[opcode])  # rows are slow to hash


def code_effects(verified: Verified, pcs: Iterable[int]) -> Effects:
    """The effects of the instructions at these pcs, without those of callees."""
    listing, count = code(verified), len(verified.program.statics)
    opcodes, immediates = listing.opcodes, listing.immediates
    occurring: dict[int, set[int]] = {}
    for pc in pcs:
        occurring.setdefault(opcodes[pc], set()).add(immediates[pc])
    kinds: set[Effect] = set()
    numbered: dict[Effect, set[int]] = {Effect.READS_STATIC: set(), Effect.WRITES_STATIC: set()}
    computed: set[Effect] = set()
    for opcode, used in occurring.items():
        found = _summary(opcode)
        kinds |= found.effects
        computed |= found.computed
        for effect in found.numbered:
            numbered[effect] |= used
    return Effects(
        frozenset(kinds),
        frozenset(numbered[Effect.READS_STATIC]),
        frozenset(numbered[Effect.WRITES_STATIC]),
        count if Effect.READS_STATIC in computed else 0,
        count if Effect.WRITES_STATIC in computed else 0,
    )


def function_effects(verified: Verified, function: int) -> Effects:
    """The effects of a function, with those of its callees."""
    return _all_functions(verified)[function]


@memoised
def _all_functions(verified: Verified) -> tuple[Effects, ...]:
    """The effects of each function, callees first; members of a recursion have the effects of all
    members."""
    calls = call_graph(verified)
    found: dict[int, Effects] = {}
    for members in calls.components:
        together = Effects()
        for function in members:
            blocks = graph(verified, function).blocks.values()
            pcs = (pc for block in blocks for pc in range(block.first, block.last + 1))
            together |= code_effects(verified, pcs)
            for callee in calls.direct[function]:
                together |= found.get(callee, together)  # not known yet: a member of the recursion
        found.update(dict.fromkeys(members, together))
    return tuple(found[function] for function in range(len(found)))
