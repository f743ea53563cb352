# SPDX-License-Identifier: Apache-2.0
"""Regions of verified programs: control flow, loops, names, effects and facts.

    Verified ── graph.graph ──> Graph: blocks, dominators, loops
        │
        └── candidates ──> Region ── facts ──> Facts                the input of policies
                             │
                             └── region_effects ──> Effects         to be preserved by compilers

Names are imported lazily: an engine without hot code needs `loop_head` only. The functions
`graph.graph` and `region.region` have their modules' names and so are imported from there.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferryvm.isa.effect import Effect, effects
    from ferryvm.region.call import CallGraph, call_graph
    from ferryvm.region.effect import Effects, code_effects, function_effects
    from ferryvm.region.fact import Facts, facts, region_effects, statics
    from ferryvm.region.graph import Block, Graph
    from ferryvm.region.loop import Loop
    from ferryvm.region.region import Region, RegionKind, candidates, regions

_HOMES = {
    "Block": "graph",
    "CallGraph": "call",
    "Effect": "ferryvm.isa.effect",
    "Effects": "effect",
    "Facts": "fact",
    "Graph": "graph",
    "RegionKind": "region",
    "Loop": "loop",
    "Region": "region",
    "call_graph": "call",
    "candidates": "region",
    "code_effects": "effect",
    "effects": "ferryvm.isa.effect",
    "facts": "fact",
    "function_effects": "effect",
    "region_effects": "fact",
    "regions": "region",
    "statics": "fact",
}
"""The module of each name."""

__all__ = [
    "Block",
    "CallGraph",
    "Effect",
    "Effects",
    "Facts",
    "Graph",
    "Loop",
    "Region",
    "RegionKind",
    "call_graph",
    "candidates",
    "code_effects",
    "effects",
    "facts",
    "function_effects",
    "region_effects",
    "regions",
    "statics",
]


def __getattr__(name: str) -> object:
    """A public name, on its first use (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ferryvm.region' has no attribute {name!r}")
    module = home if "." in home else f"ferryvm.region.{home}"
    value: object = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value
