# SPDX-License-Identifier: Apache-2.0
"""The words that a lifted launch takes for constant, as the lifter of a body needs them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ferryvm.isa.type import Type, as_number
from ferryvm.named_tuple import NamedTuple
from ferryvm.region.known_word import KnownWord
from ferryvm.region.launch import CALL_DISTANCE
from ferryvm.region.region import Region, RegionKind


class TakenWords(NamedTuple):
    """Words with their values, by number."""

    item: int
    """The function of the items."""
    arguments: Mapping[int, int]
    """Of those that the items share."""
    statics: Mapping[int, tuple[Type, int]]
    """With their types."""
    checks: bool
    """The root checks them: it is the launch's loop, in front of which it leaves with PARALLEL."""

    @classmethod
    def of(
        cls, region: Region, known: Collection[tuple[bool, int, int]], checks: bool
    ) -> TakenWords:
        """The words as a region needs them, a launch's loop or the function of its items. `checks`:
        the loop checks them."""
        words, item = [KnownWord(*word) for word in sorted(known)], region.function
        program = region.verified.program
        is_loop = region.kind is RegionKind.LAUNCH
        if is_loop:
            item = program.code.immediates[region.entry + CALL_DISTANCE]
        statics = {
            word.number: (as_number(program.statics[word.number].type), word.bits)
            for word in words
            if word.is_static
        }
        arguments = {word.number: word.bits for word in words if not word.is_static}
        return cls(item, arguments, statics, is_loop and checks)


NO_WORDS = TakenWords(-1, {}, {}, False)
"""No word is taken for constant."""
