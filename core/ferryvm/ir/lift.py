# SPDX-License-Identifier: Apache-2.0
"""Lifting: a region's instructions become SSA, by running their meanings against an emitter.

    RegionOrder ── blocks in order ──> BodyLifter ── an instruction's meaning ──> CallLifter, its methods
                                     │                                          │
                                     └── Variables: words of the frame, ────────┘
                                         statics, heap pointer as values

Words of the running frame, statics and the heap pointer are values while a body is lifted; memory
is read for them at the entry and written at exits, from the `FrameState` that each exit carries.
Around a call, the statics that the callee may see are stored.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from ferryvm.ir.graph import Block, Body, FrameState, Module, Operation, Terminator
from ferryvm.ir.lifter import BodyLifter
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.region_order import RegionOrder, UnseenEdges
from ferryvm.ir.taken_word import NO_WORDS, TakenWords
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import as_number
from ferryvm.region.region import Region, RegionKind

__all__ = ["lift"]

_NONE: Mapping[int, int] = MappingProxyType({})


def lift(
    region: Region,
    counting: bool = False,
    unseen: UnseenEdges = frozenset(),
    natives: Collection[int] = (),
    exceptions: bool = False,
    launches: Mapping[int, int] = _NONE,
    known: Collection[tuple[bool, int, int]] = (),
    checks: bool = True,
) -> Module:
    """The IR of a region and of every function that it calls, with dead code removed.

    `counting`: blocks pay fuel for their instructions; `unseen`: edges that are omitted, with a
    guard in their place; `natives`: host imports that are called natively; `exceptions`: calls
    catch exceptions of their callees; `launches`: numbers of the launches, by the pc of their
    `launch.test`, in front of whose loops the code leaves with PARALLEL; `known`: words that the
    items of a launch take for constant, whose loop or function the region is, as `Options.known`;
    `checks`: the loop leaves with PARALLEL if one has another value.
    """
    verified = region.verified
    taken = TakenWords.of(region, known, checks) if known else NO_WORDS
    called = set(region.callees)
    start = region.graph.entry
    is_called_only = region.entry == start and not region.graph.predecessors[start]
    if region.kind is RegionKind.FUNCTION and region.function and is_called_only:
        # If a jump leads to the entry, locals need not be zero there.
        called.add(region.function)
        root = _stub(region)
    else:
        order = RegionOrder.of_region(region, unseen, natives)
        lifter = BodyLifter(verified, order, True, counting, exceptions, launches, taken)
        root = lifter.run(region.name)
    functions = {}
    for number in sorted(called):
        function = verified.program.functions[number]
        pcs = region.pcs_of(number)
        order = RegionOrder(verified, number, function.entry, pcs, unseen, natives)
        lifter = BodyLifter(verified, order, False, counting, exceptions, launches, taken)
        functions[number] = lifter.run(function.name)
    module = Module(region.name, root, functions, counting)
    for body in module.bodies:
        remove_dead_code(body)
    return module


def _stub(region: Region) -> Body:
    """The body that calls a function with the arguments that its frame holds, and returns."""
    signature = region.verified.program.signature(region.function)
    parameters = [as_number(t) for t in signature.parameters]
    results = tuple(map(as_number, signature.results))
    body = Body(region.name, region.function, region.entry, True, results)
    block = Block("entry", region.entry)
    body.parameters = len(parameters)
    arguments = [Operation("word", t, (at,)) for at, t in enumerate(parameters)]
    # The frame is the callee's own: when it leaves there is nothing to write here.
    state = FrameState(region.entry, (None,) * (len(arguments) + HEADER_WORDS))
    call = Operation("call", body.result, (region.function, 0), tuple(arguments), state)
    more = [
        Operation("result", t, (body.place_of(number),))
        for number, t in enumerate(results)
        if number
    ]
    block.operations = [*arguments, call, *more]
    block.terminator = Terminator("return", (), (call, *more) if results else ())
    body.blocks.append(block)
    return body
