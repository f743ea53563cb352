# SPDX-License-Identifier: Apache-2.0
"""The parts of a program on which the code of a region depends, as facts for the key of a cache
entry.

The position of the region among others and the rest of the program are excluded, so a program that
changed elsewhere still finds its code.
"""

from __future__ import annotations

from collections.abc import Collection

from ferryvm.program import RECORD_BYTES
from ferryvm.region.graph import graph
from ferryvm.region.region import Region


def fingerprint(region: Region) -> list[str | bytes]:
    """Position and shape of a region, its declarations, its code and that of all its callees."""
    program = region.verified.program
    made_from = (
        region.name.partition("/")[2],
        region.kind.value,
        region.function,
        region.entry,
        sorted(region.pcs),
        region.callees,
        sorted(region.outside),
        [str(static.type) for static in program.statics],
        program.table,
        [(str(s.parameters), str(s.results)) for s in program.signatures],
        region.verified.frame_words,
        str(program.types),
    )
    facts: list[str | bytes] = [repr(made_from)]
    numbers = {region.function, *region.callees}
    if program.clauses:
        facts.append(repr(_exceptions(region, numbers)))
    for number in sorted(numbers):
        function = program.functions[number]
        facts.append(repr((number, function.entry, function.signature, function.locals)))
        blocks = graph(region.verified, number).blocks
        for first in sorted(blocks):
            end = RECORD_BYTES * (blocks[first].last + 1)
            facts.append(program.code.tobytes()[RECORD_BYTES * first : end])
    return facts


def _exceptions(region: Region, functions: Collection[int]) -> tuple[object, ...]:
    """The tags of the program, and the clauses of functions: handlers of exceptions do not follow
    from the instructions."""
    verified = region.verified
    tags = [str(tag.parameters) for tag in verified.program.tags]
    clauses = verified.program.clauses
    return tags, [[*each] for each in clauses if verified.owner(each.handler) in functions]
