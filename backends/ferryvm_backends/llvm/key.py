# SPDX-License-Identifier: Apache-2.0
"""Under which name a region's code is kept: everything that it is made from, as a digest."""

from __future__ import annotations

import functools

import numpy as np

from ferryvm import cache
from ferryvm.backend import Options
from ferryvm.region.graph import graph
from ferryvm.region.region import Region
from ferryvm_backends._llvm.native import key


@functools.cache
def _versions() -> str:
    return key(__package__, "ferryvm.ir", "ferryvm.region")


def region_key(region: Region, options: Options) -> str:
    """The key of a region's code; another program, place, option, version or processor has another.

    Where the code is kept and whether the IR is verified does not matter for what it is, so
    `options.cache` and `options.check` are no part of it.
    """
    program = region.verified.program
    made_from = (
        region.name.partition("/")[2],
        region.kind.value,
        region.function,
        region.entry,
        sorted(region.pcs),
        region.callees,
        sorted(region.outside),
        options.optimize,
        options.counting,
        sorted(options.unseen),
        options.guard_limit,
        options.observe,
        options.quick,
        sorted(kind.value for kind in options.forcing),
        [static.type.value for static in program.statics],
        program.table,
        [(str(s.parameters), str(s.results)) for s in program.signatures],
        region.verified.frame_words,
    )
    facts: list[str | bytes] = [_versions(), repr(made_from)]
    for number in sorted({region.function, *region.callees}):
        function = program.functions[number]
        facts.append(repr((number, function.entry, function.signature, function.locals)))
        blocks = graph(region.verified, number).blocks
        for first in sorted(blocks):
            code = program.code[first : blocks[first].last + 1]
            facts.append(np.ascontiguousarray(code).tobytes())
    return cache.key(facts)
