# SPDX-License-Identifier: Apache-2.0
"""The exceptions that leave functions: the tags that a call may throw to its caller.

What a clause of a function catches does not leave it. A record can have any tag, so one that is
thrown may throw all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from ferryvm.isa import INSTRUCTIONS, Flow, Immediate
from ferryvm.region.call import call_graph
from ferryvm.region.code import FLOWS, code
from ferryvm.region.memo import memoised
from ferryvm.verify import Verified

Tags = frozenset[int]


def escaping(verified: Verified, functions: Iterable[int]) -> Tags:
    """The tags of exceptions that a call of one of these functions may throw."""
    found = _all_functions(verified)
    return frozenset().union(*(found[function] for function in functions))


def uncaught(verified: Verified, pc: int, tags: Tags) -> Tags:
    """The tags that no clause around the instruction at `pc` catches."""
    for clause in verified.clauses.covering(pc):
        if clause.tag is None:
            return frozenset()
        tags -= {clause.tag}
    return tags


@memoised
def _all_functions(verified: Verified) -> tuple[Tags, ...]:
    """Of each function, callees first; in a recursion until nothing is added."""
    calls, own = call_graph(verified), _thrown(verified)
    found: list[Tags] = [frozenset()] * len(verified.program.functions)
    if not any(own.values()):
        return tuple(found)
    sites = _call_sites(verified)
    for members in calls.components:
        has_changed = True
        while has_changed:
            has_changed = False
            for function in members:
                tags = own.get(function, frozenset())
                for pc in sites.get(function, ()):
                    called = frozenset().union(*(found[to] for to in calls.targets(pc)))
                    tags |= uncaught(verified, pc, called)
                if tags != found[function]:
                    found[function], has_changed = tags, True
    return tuple(found)


def _thrown(verified: Verified) -> dict[int, Tags]:
    """By function, the tags that its own instructions throw out of it."""
    listing, everything = code(verified), frozenset(range(len(verified.program.tags)))
    found: dict[int, Tags] = {}
    for pc, opcode in enumerate(listing.opcodes) if verified.program.tags else ():
        if FLOWS[opcode] is not Flow.THROW or not verified.is_reachable(pc):
            continue
        is_known = INSTRUCTIONS[opcode].immediate is Immediate.TAG
        tags = frozenset({listing.immediates[pc]}) if is_known else everything
        owner = verified.owner(pc)
        found[owner] = found.get(owner, frozenset()) | uncaught(verified, pc, tags)
    return found


def _call_sites(verified: Verified) -> dict[int, list[int]]:
    """By function, the pcs of its calls."""
    found: dict[int, list[int]] = {}
    for pc, opcode in enumerate(code(verified).opcodes):
        if FLOWS[opcode] in (Flow.CALL, Flow.CALL_INDIRECT) and verified.is_reachable(pc):
            found.setdefault(verified.owner(pc), []).append(pc)
    return found
