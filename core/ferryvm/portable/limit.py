# SPDX-License-Identifier: Apache-2.0
"""The limits of plain form: operations that need the machine, and what to write instead."""

from __future__ import annotations

from typing import NoReturn

from ferryvm.errors import Position
from ferryvm.ir.graph import Body, Module, Operation
from ferryvm.ir.operation import PURE
from ferryvm.isa import INSTRUCTIONS
from ferryvm.portable.refusal import ExportError
from ferryvm.portable.subject import Subject

_ARRAYS = "pass the array as a parameter and fill it"
_HEAP = "it uses the heap of bytes", "use arrays, which are parameters of the function"
_THROWS = "it throws an exception", "return a number that tells the caller"
_ALLOCATES = "it allocates", _ARRAYS
_OBJECTS = "it uses a struct or an array of references", "pass numbers and arrays of numbers"
_INDIRECT = "it calls a function that is known at run time only", "call the functions by name"
_STATICS = "it accesses statics by numbers that are computed", "use an array"

_REFUSED: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("heap_load", "heap_store", "heap_pointer", "heap_capacity"), _HEAP),
    **dict.fromkeys(("set_heap_pointer", "canonicalise", "elements_from_heap"), _HEAP),
    **dict.fromkeys(("elements_to_heap", "grow_if"), _HEAP),
    **dict.fromkeys(("allocate_if", "set_object_top", "object_top", "set_header_word"), _ALLOCATES),
    **dict.fromkeys(("object_end", "prepared_place", "prepared_bytes"), _ALLOCATES),
    **dict.fromkeys(("release_objects", "clear_prepared"), _ALLOCATES),
    **dict.fromkeys(("field_load", "field_store", "type_word"), _OBJECTS),
    **dict.fromkeys(("call_indirect", "table_function", "function_field"), _INDIRECT),
    **dict.fromkeys(("static_at", "set_static_at"), _STATICS),
    **dict.fromkeys(("caught", "thrown", "throw"), _THROWS),
    "guard": ("it speculates", "export it without speculation"),
    "leave": ("control leaves the function", "return from it instead"),
    "halt": ("it halts the program", "return from the function instead"),
}

_KNOWN = PURE | {
    *("header_word", "cast", "element_load", "element_store", "canonicalise_elements"),
    *("update_element", "compare_exchange_element", "fill_elements", "move_elements"),
    *("static", "set_static", "trap_if", "poll", "check_entry", "report_version"),
    *("parallel_if", "continue_launch_if", "launch_word", "frame", "stack_limit", "result"),
    *("member", "member_index", "group_array", "barrier"),
    *("jump", "branch", "switch", "return", "trap"),
}


def check_calls(subject: Subject, module: Module, body: Body) -> None:
    """Raise ExportError if a call remains after inlining: for a recursion, for what keeps the
    callee from returning, or for what is done there that has no plain form."""
    for operation in body.operations:
        if operation.name != "call":
            continue
        number = operation.fact(0, int)
        callee = module.functions[number]
        name = subject.verified.program.functions[number].name
        position = subject.position(callee.entry) or _first_call(subject, callee, number)
        if callee.recurs:
            raise ExportError(f"{name!r} calls itself", "write the recursion as a loop", position)
        check_exportable(subject, callee)
        check_calls(subject, module, callee)
        raise ExportError(f"{name!r} never returns", "let it end", position)


def _first_call(subject: Subject, body: Body, number: int) -> Position | None:
    """The position of the first call of a function in a body."""
    calls = (o for o in body.operations if o.name == "call" and o.fact(0, int) == number)
    return next(filter(None, (_position(subject, each) for each in calls)), None)


def check_exportable(subject: Subject, body: Body, allowed: frozenset[str] = frozenset()) -> None:
    """Raise ExportError for the first operation, in the order of the code, that has no plain form,
    those `allowed` left out."""
    found = [
        operation
        for block in body.blocks
        for operation in (*block.operations, block.end)
        if operation.name not in _KNOWN | allowed
        and operation.name != "call"
        and not is_transfer_check(subject, operation)
        and not (subject.may_throw and operation.name == "throw")
    ]
    if found:
        _explain(subject, min(found, key=_place))


def is_transfer_check(subject: Subject, operation: Operation) -> bool:
    """True for the exit in front of a fill or copy of many elements, which the machine does in
    parts."""
    if operation.name != "allocate_if":
        return False
    opcode = subject.verified.program.code.opcodes[operation.exit.pc]
    return INSTRUCTIONS[opcode].mnemonic.startswith(("array.fill_", "array.copy_"))


def _place(operation: Operation) -> int:
    return operation.exit.pc if operation.state is not None else operation.pc


def _position(subject: Subject, operation: Operation) -> Position | None:
    if operation.state is not None:
        return subject.place(operation.state)
    return subject.position(operation.pc)


def refuse(subject: Subject, operation: Operation, what: str) -> NoReturn:
    """Raise ExportError for what an operation does with references."""
    position = _position(subject, operation)
    raise ExportError(what, "pass each array as a parameter of its own", position)


def _explain(subject: Subject, operation: Operation) -> NoReturn:
    position = _position(subject, operation)
    if operation.name in ("host", "call_host"):
        name = subject.verified.program.hosts[operation.fact(0, int)].name
        what, instead = f"it calls the host function {name!r}", "call it before or after"
        if name.startswith("statement "):  # of a Python function, which no other host has
            what, instead = "it executes this statement in Python", "do that before or after"
        raise ExportError(what, f"{instead}, and pass numbers and arrays", position)
    known = _REFUSED.get(operation.name)
    if known is None:
        known = f"it needs the machine ({operation.name})", "leave that to the caller"
    raise ExportError(*known, position)
