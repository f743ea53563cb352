# SPDX-License-Identifier: Apache-2.0
"""References in regions: the ones that a compiler without them refuses.

A region uses references if one of its instructions has one as an operand or a result, or belongs to
a function that has one in a parameter or local.
"""

from __future__ import annotations

from ferryvm.isa import INSTRUCTIONS
from ferryvm.isa.type import Reference
from ferryvm.region.memo import memoised
from ferryvm.region.region import Region
from ferryvm.verify import Verified

_OPCODES = frozenset(row.opcode for row in INSTRUCTIONS if row.has_references)


@memoised
def _functions(verified: Verified) -> frozenset[int]:
    """Functions with a reference in a parameter or local."""
    program = verified.program
    return frozenset(
        number
        for number in range(len(program.functions))
        if any(isinstance(t, Reference) for t in program.frame_types(number))
    )


def uses_references(region: Region) -> bool:
    """True if a region, or a function that it calls, uses references."""
    verified = region.verified
    opcodes, functions = verified.program.code.opcodes, _functions(verified)
    if not functions.isdisjoint((region.function, *region.callees)):
        return True
    pcs = (region.pcs, *(region.pcs_of(number) for number in region.callees))
    return any(opcodes[pc] in _OPCODES for some in pcs for pc in some)


def refused(region: Region, compiler: str) -> str | None:
    """The reason for which a compiler without references does not compile a region, or None."""
    if not uses_references(region):
        return None
    return f"it uses references, which {compiler} does not compile yet"
