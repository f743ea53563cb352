# SPDX-License-Identifier: Apache-2.0
"""Rules of bodies of lanes, for the verifier: which operations yield varying values, and where
uniform ones are needed."""

from __future__ import annotations

from collections.abc import Container

from ferryvm.ir.graph import Body, Operation, Terminator, Value

ALWAYS_VARYING = frozenset(
    [
        "context_load_lanes",
        "field_each",
        "header_each",
        "heap_load_consecutive",
        "heap_load_each",
        "load_consecutive",
        "load_each",
        "poll_lanes",
        "ramp",
        "safe_divisor",
        "suspend",
    ]
)
"""Operations that yield a value for each lane, whatever their operands."""

_UNIFORM_OPERANDS: dict[str, tuple[int, ...]] = {
    "ramp": (0, 1),
    "load_consecutive": (1, 2),
    "store_consecutive": (1, 2),
    "heap_load_consecutive": (1,),
    "heap_store_consecutive": (1,),
    "context_load_lanes": (0, 1),
    "context_store_lanes": (0, 1),
}
"""Numbers of operands that must be uniform."""

LANE_OPERATIONS = ALWAYS_VARYING | {
    "any_lane",
    "context_store_lanes",
    "store_consecutive",
    "store_each",
    "update_each",
    "heap_store_consecutive",
    "heap_store_each",
    "field_store_each",
}
"""Operations that only bodies of lanes have."""


def yields_varying(operation: Operation, varying: Container[Value]) -> bool:
    """True if the result is one for each lane."""
    if operation.name in ALWAYS_VARYING:
        return True
    if operation.name == "any_lane":
        return False
    return any(argument in varying for argument in operation.arguments)


def lane_fault(body: Body, operation: Operation, is_pure: bool) -> str | None:
    """The rule that an operation of a body of lanes violates; None if there is none."""
    varying = body.varying
    if varying is None:
        is_known = operation.name not in LANE_OPERATIONS
        return None if is_known else "only a body of lanes has this operation"
    if isinstance(operation, Terminator):
        if any(argument in varying for argument in operation.arguments):
            return "a uniform operand expected"
        for edge in operation.edges:
            for parameter, argument in zip(edge.block.parameters, edge.arguments, strict=False):
                if argument in varying and parameter not in varying:
                    return "a varying argument for a uniform parameter"
        return None
    if operation.type is not None and (operation in varying) != yields_varying(operation, varying):
        return "a result that varies exactly if an operand does expected"
    operands = operation.arguments
    wanted = _UNIFORM_OPERANDS.get(operation.name, ())
    if operation.name not in LANE_OPERATIONS and not is_pure:
        wanted = tuple(range(len(operands)))
    if any(operands[number] in varying for number in wanted):
        return "a uniform operand expected"
    return None
