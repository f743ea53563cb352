# SPDX-License-Identifier: Apache-2.0
"""Objects of items are released where their items end: a launch's items use the same memory in
turn.

    start:  %top = object_top            latch:  release_objects %top
            … the item makes objects             poll …

An object that an item makes is garbage when the item ends, unless a reference to it is in a static,
in an object, or in what a function returns. Where items store no reference at all, and call
nothing, no object outlives its item; then a loop over items, such as groups with arrays of their
own, causes no collection, and a thread does with a small part of the object space.

Large arrays have their elements outside of the space. An item finds these prepared when it starts,
so it releases nothing then.

Requires that items' calls are inlined. Preserves exits: objects are in memory at all times.
"""

from __future__ import annotations

from ferryvm.ir.graph import BOOLEAN, Block, Body, Module, Operation
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.operation import CALLS
from ferryvm.isa.declared_type import StructType
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, Reference
from ferryvm.program import Program
from ferryvm.region.launch import item_call
from ferryvm.verify import Verified


def release_item_objects(module: Module, body: Body, verified: Verified) -> int:
    """Release the objects of items in the launches of a body whose items let none escape; the
    number of these launches."""
    if not any(operation.name == "set_object_top" for operation in body.operations):
        return 0
    made = 0
    for loop in find_loops(body):
        if _is_launch(loop, verified.program) and not _may_escape(module, loop, verified):
            made += _release(body, loop)
    return made


def _is_launch(loop: Loop, program: Program) -> bool:
    return any(
        operation.name == "continue_launch_if" and item_call(program, operation.exit.pc) is not None
        for operation in loop.header.operations
    )


def _may_escape(module: Module, loop: Loop, verified: Verified) -> bool:
    """True if an object that an item makes may outlive it, or items make none."""
    operations = [*loop.operations]
    if not any(operation.name == "set_object_top" for operation in operations):
        return True
    return any(_stores_reference(module, operation, verified) for operation in operations)


def _stores_reference(module: Module, operation: Operation, verified: Verified) -> bool:
    name = operation.name
    if name == "call" and not _returns(module.functions[operation.fact(0, int)]):
        return False  # control leaves there
    if name in CALLS or name == "set_static_at":
        return True
    if name == "set_static":
        return isinstance(verified.program.statics[operation.fact(0, int)].type, Reference)
    if name == "field_store":
        declared = verified.types.declared(operation.fact(0, int))
        assert isinstance(declared, StructType)
        return isinstance(declared.fields[operation.fact(1, int)].type, Reference)
    has_elements = name in ("element_store", "fill_elements", "move_elements") or "_element" in name
    return has_elements and not isinstance(operation.static[0], Element)


def _returns(body: Body) -> bool:
    return any(block.end.name == "return" for block in body.blocks)


def _release(body: Body, loop: Loop) -> int:
    """Release the objects of a launch's items; 1 if that was possible."""
    header = loop.header
    starts = [edge.block for edge in header.end.edges if edge.block in {*loop.members}]
    latches = [loop.graph.blocks[edge.source] for edge in loop.back_edges]
    if len(starts) != 1 or starts[0] is header or any(latch is header for latch in latches):
        return 0
    (start,) = starts
    if len(loop.graph.incoming[loop.graph.places[start]]) != 1:
        return 0
    top, prepared = Operation("object_top", I64), Operation("prepared_place", I64)
    start.operations[:0] = [top, prepared]
    for latch in latches:
        _release_at(body, latch, top, prepared)
    return 1


def _release_at(body: Body, latch: Block, top: Operation, prepared: Operation) -> None:
    zero = body.constant(I64, 0)
    present = Operation("object_top", I64)
    is_small = Operation("compare", BOOLEAN, (I64, Condition.EQ), (prepared, zero))
    target = Operation("select", I64, (), (is_small, top, present))
    release = Operation("release_objects", None, (), (target,))
    latch.operations[:0] = [present, is_small, target, release]
