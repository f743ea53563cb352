# SPDX-License-Identifier: Apache-2.0
"""The operations of the region IR: operands, results, and effects.

Pure operations are the methods of `PureEmitter`: their names, static attributes and numbers of
operands come from the methods' signatures, and the types of their results from the builder. The
others are declared here. docs/ir.md describes all of them.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect

from ferryvm.errors import FerryError
from ferryvm.ir.build import Builder
from ferryvm.ir.graph import BOOLEAN, Block, Parameter, Static, Value, ValueType
from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Atomic, Condition, FunctionField, PureEmitter
from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F32, F64, FIRST_DECLARED, I32, I64, WORD_BYTES, Type

__all__ = [
    "FIXED",
    "HOST_STACK_BYTES",
    "POLL_BUDGET",
    "PURE",
    "SAFEPOINTS",
    "SHAPES",
    "WORD",
    "AnyType",
    "AttributeKind",
    "IrError",
    "Role",
    "Shape",
    "computed_types",
]


class IrError(FerryError):
    """The IR of a region, or a text of it, is malformed."""


class AttributeKind(enum.Enum):
    """Kind of a static attribute of an operation; the value is its name in errors."""

    TYPE = "a type"
    CONDITION = "a condition"
    TRAP = "a trap"
    FIELD = "a function field"
    BYTES = "1, 2, 4 or 8"
    NUMBER = "a number"
    FLAG = "true or false"
    FUNCTIONS = "function numbers"
    TAGS = "tag numbers, each once"
    ELEMENTS = "an element kind or the number of a type of arrays of references"
    UPDATE = "an atomic update"
    FUNCTION = "a mathematical function"
    TABLE = "a table of constants"

    def holds(self, item: Static) -> bool:
        """True if an item is of this kind."""
        match self:
            case (
                AttributeKind.TYPE
                | AttributeKind.CONDITION
                | AttributeKind.TRAP
                | AttributeKind.FIELD
                | AttributeKind.FLAG
                | AttributeKind.UPDATE
                | AttributeKind.FUNCTION
                | AttributeKind.TABLE
            ):
                return isinstance(item, _CLASS[self])
            case AttributeKind.FUNCTIONS:
                return isinstance(item, tuple) and all(
                    AttributeKind.NUMBER.holds(each) for each in item
                )
            case AttributeKind.TAGS:
                is_numbers = AttributeKind.FUNCTIONS.holds(item)
                return is_numbers and isinstance(item, tuple) and 0 < len({*item}) == len(item)
            case AttributeKind.BYTES:
                return type(item) is int and item in (1, 2, 4, 8)
            case AttributeKind.ELEMENTS:
                is_declared = type(item) is int and item >= FIRST_DECLARED
                return is_declared or isinstance(item, Element)
            case AttributeKind.NUMBER:
                return type(item) is int and item >= 0


_CLASS: dict[AttributeKind, type] = {
    AttributeKind.TYPE: Type,
    AttributeKind.CONDITION: Condition,
    AttributeKind.TRAP: Trap,
    AttributeKind.FIELD: FunctionField,
    AttributeKind.FLAG: bool,
    AttributeKind.UPDATE: Atomic,
    AttributeKind.FUNCTION: PureFunction,
    AttributeKind.TABLE: ConstantTable,
}


class Role(enum.Enum):
    """The effect of an operation besides its value."""

    COMPUTES = "nothing: it only computes"
    FIXED = "reads what does not change while a body runs"
    READS = "reads what others change"
    CHANGES = "changes memory or the control block"
    CHECKS = "may leave in its state"
    CALLS = "runs another body, and leaves in its state if that has left"
    ENDS = "ends a block"


class AnyType(enum.Enum):
    """A type that an operation's signature leaves open."""

    WORD = "i32, i64, f32 or f64"
    SAME = "the type of the result"
    RESULT = "what the function returns"

    def __str__(self) -> str:
        return self.value


WORD = AnyType.WORD
"""Any type of the machine."""


@dataclasses.dataclass(frozen=True)
class Shape:
    """The signature of an operation, except for the types that its attributes determine."""

    role: Role
    static: tuple[AttributeKind, ...] = ()
    arguments: tuple[ValueType | AnyType, ...] | None = ()
    """None: any number of words."""
    result: ValueType | AnyType | None = None
    has_state: bool = False
    edges: int | None = 0
    """None: one or more."""


def _check(*arguments: ValueType, static: tuple[AttributeKind, ...] = ()) -> Shape:
    return Shape(Role.CHECKS, static, arguments, has_state=True)


def _lane_check(operands: int, static: tuple[AttributeKind, ...]) -> Shape:
    return Shape(Role.CHECKS, static, (BOOLEAN,) * operands, BOOLEAN, has_state=True)


def _stop(*static: AttributeKind) -> Shape:
    return Shape(Role.ENDS, static, has_state=True)


_NUMBER = (AttributeKind.NUMBER,)
_FIELD = (AttributeKind.NUMBER, AttributeKind.NUMBER)
_ELEMENTS = (AttributeKind.ELEMENTS,)
_CONTEXT = (AttributeKind.TYPE, AttributeKind.NUMBER, AttributeKind.NUMBER)
_DECLARED = {
    # reading
    "word": Shape(Role.READS, _NUMBER, (), WORD),
    "result": Shape(Role.READS, _NUMBER, (), WORD),
    "static": Shape(Role.READS, _NUMBER, (), WORD),
    "static_at": Shape(Role.READS, (), (I64,), I64),
    "heap_pointer": Shape(Role.READS, (), (), I64),
    "launch_word": Shape(Role.READS, _NUMBER, (), I64),
    "heap_load": Shape(Role.READS, (AttributeKind.BYTES,), (I64,), I64),
    "frame": Shape(Role.FIXED, (), (), I64),
    "stack_limit": Shape(Role.FIXED, (), (), I64),
    "heap_capacity": Shape(Role.FIXED, (), (), I64),
    "function_field": Shape(Role.FIXED, (AttributeKind.FIELD,), (I64,), I64),
    "table_function": Shape(Role.FIXED, (), (I64,), I64),
    # objects, reading
    "header_word": Shape(Role.FIXED, _NUMBER, (I64,), I64),
    "cast": Shape(Role.FIXED, _NUMBER, (I64,), I64),
    "type_word": Shape(Role.FIXED, (), (I64, I64), I64),
    "object_end": Shape(Role.FIXED, (), (), I64),
    "object_top": Shape(Role.READS, (), (), I64),
    "prepared_place": Shape(Role.READS, (), (), I64),
    "prepared_bytes": Shape(Role.READS, (), (), I64),
    "field_load": Shape(Role.READS, _FIELD, (I64,), I64),
    "element_load": Shape(Role.READS, _ELEMENTS, (I64, I64), I64),
    # objects, changing
    "set_object_top": Shape(Role.CHANGES, (), (I64,)),
    "release_objects": Shape(Role.CHANGES, (), (I64,)),
    "clear_prepared": Shape(Role.CHANGES),
    "set_header_word": Shape(Role.CHANGES, _NUMBER, (I64, I64)),
    "field_store": Shape(Role.CHANGES, _FIELD, (I64, I64)),
    "element_store": Shape(Role.CHANGES, _ELEMENTS, (I64, I64, I64)),
    "update_element": Shape(
        Role.CHANGES, (AttributeKind.ELEMENTS, AttributeKind.UPDATE), (I64, I64, I64), I64
    ),
    "compare_exchange_element": Shape(Role.CHANGES, _ELEMENTS, (I64, I64, I64, I64), I64),
    "fill_elements": Shape(Role.CHANGES, _ELEMENTS, (I64, I64, I64, I64)),
    "move_elements": Shape(Role.CHANGES, _ELEMENTS, (I64, I64, I64, I64, I64)),
    "elements_from_heap": Shape(Role.CHANGES, _ELEMENTS, (I64, I64, I64, I64)),
    "elements_to_heap": Shape(Role.CHANGES, _ELEMENTS, (I64, I64, I64, I64)),
    "canonicalise_elements": Shape(Role.CHANGES, _ELEMENTS, None),
    # changing
    "set_static": Shape(Role.CHANGES, _NUMBER, (WORD,)),
    "set_static_at": Shape(Role.CHANGES, (), (I64, I64)),
    "set_heap_pointer": Shape(Role.CHANGES, (), (I64,)),
    "heap_store": Shape(Role.CHANGES, (AttributeKind.BYTES,), (I64, I64)),
    "canonicalise": Shape(Role.CHANGES, (AttributeKind.TYPE,), None),
    "report_version": Shape(Role.CHANGES, _NUMBER, (I64,)),
    # context arrays of groups
    "context_load": Shape(Role.READS, _CONTEXT, (I64, I64), WORD),
    "context_store": Shape(Role.CHANGES, _CONTEXT, (I64, I64, WORD)),
    "begin_group": Shape(Role.CHANGES, _NUMBER),
    "bounded": Shape(Role.CHANGES, _NUMBER),
    # leaving, perhaps
    "trap_if": _check(BOOLEAN, static=(AttributeKind.TRAP,)),
    "grow_if": _check(BOOLEAN, I64),
    "allocate_if": _check(BOOLEAN, I64, I64),
    "continue_launch_if": _check(BOOLEAN),
    "parallel_if": _check(BOOLEAN),
    "guard": _check(BOOLEAN, static=_NUMBER),
    "poll": _check(),
    "check_entry": _check(static=(AttributeKind.FLAG,)),
    "pay": _check(static=(AttributeKind.NUMBER, AttributeKind.NUMBER)),
    # calls
    "call": Shape(
        Role.CALLS, (AttributeKind.NUMBER, AttributeKind.NUMBER), None, AnyType.RESULT, True
    ),
    "call_indirect": Shape(
        Role.CALLS, (AttributeKind.FUNCTIONS, AttributeKind.NUMBER), None, AnyType.RESULT, True
    ),
    "caught": Shape(Role.READS, (AttributeKind.TAGS,), (), I64),
    "thrown": Shape(Role.READS, _NUMBER, (), WORD),
    "call_host": Shape(Role.CHECKS, _NUMBER, None, AnyType.RESULT, True),
    # groups
    "barrier": Shape(Role.CHANGES),
    "member": Shape(Role.FIXED, (), (), I64),
    "member_index": Shape(Role.FIXED, (AttributeKind.NUMBER,) * 3, (), I64),
    "group_array": Shape(Role.FIXED, _NUMBER, (), I64),
    "fail_if": Shape(Role.CHANGES, (), (BOOLEAN,)),
    "fail_if_interrupted": Shape(Role.CHANGES),
    "iterations_spent": Shape(Role.CHANGES, (), (), BOOLEAN),
    "has_failed": Shape(Role.READS, (), (), BOOLEAN),
    # lanes
    "ramp": Shape(Role.FIXED, (AttributeKind.TYPE,), (WORD, AnyType.SAME), WORD),
    "safe_divisor": Shape(Role.FIXED, (AttributeKind.TYPE,), (BOOLEAN, WORD), WORD),
    "any_lane": Shape(Role.FIXED, (), (BOOLEAN,), BOOLEAN),
    "context_load_lanes": Shape(Role.READS, _CONTEXT, (I64, I64, BOOLEAN), WORD),
    "context_store_lanes": Shape(Role.CHANGES, _CONTEXT, (I64, I64, WORD, BOOLEAN)),
    "header_each": Shape(Role.FIXED, _NUMBER, (BOOLEAN, I64), I64),
    "field_each": Shape(Role.READS, _FIELD, (BOOLEAN, I64), I64),
    "field_store_each": Shape(Role.CHANGES, _FIELD, (BOOLEAN, I64, I64)),
    "load_consecutive": Shape(Role.READS, _ELEMENTS, (BOOLEAN, I64, I64), I64),
    "load_each": Shape(Role.READS, _ELEMENTS, (BOOLEAN, I64, I64), I64),
    "store_consecutive": Shape(Role.CHANGES, _ELEMENTS, (BOOLEAN, I64, I64, I64)),
    "store_each": Shape(Role.CHANGES, _ELEMENTS, (BOOLEAN, I64, I64, I64)),
    "heap_load_consecutive": Shape(Role.READS, (AttributeKind.BYTES,), (BOOLEAN, I64), I64),
    "heap_load_each": Shape(Role.READS, (AttributeKind.BYTES,), (BOOLEAN, I64), I64),
    "heap_store_consecutive": Shape(Role.CHANGES, (AttributeKind.BYTES,), (BOOLEAN, I64, I64)),
    "heap_store_each": Shape(Role.CHANGES, (AttributeKind.BYTES,), (BOOLEAN, I64, I64)),
    "update_each": Shape(
        Role.CHANGES, (AttributeKind.ELEMENTS, AttributeKind.UPDATE), (BOOLEAN, I64, I64, I64)
    ),
    "suspend": _lane_check(2, (AttributeKind.FLAG, AttributeKind.FLAG)),
    "poll_lanes": _lane_check(1, (AttributeKind.FLAG,)),
    # ends of blocks
    "jump": Shape(Role.ENDS, edges=1),
    "branch": Shape(Role.ENDS, (), (BOOLEAN,), edges=2),
    "switch": Shape(Role.ENDS, (), (I64,), edges=None),
    "return": Shape(Role.ENDS, (), None),
    "leave": _stop(),
    "trap": _stop(AttributeKind.TRAP),
    "host": _stop(AttributeKind.NUMBER),
    "halt": _stop(),
    "throw": _stop(AttributeKind.NUMBER, AttributeKind.NUMBER),
}

_SOURCE = {"wrap": I64, "extend_s": I32, "extend_u": I32, "promote": F32, "demote": F64}
"""Types of operands, by name of the operation."""


_ANNOTATED = {
    "Type": AttributeKind.TYPE,
    "Condition": AttributeKind.CONDITION,
    "ConstantTable": AttributeKind.TABLE,
}
"""Kinds of static attributes, by the types of the emitter's parameters."""


def _shape(method: object) -> Shape:
    """The shape of a pure operation, from a method of the emitter."""
    static: list[AttributeKind] = []
    arguments = 0
    for name, parameter in inspect.signature(method).parameters.items():  # type: ignore[arg-type]  # a method
        if name != "self":
            kind = _ANNOTATED.get(parameter.annotation)
            if kind is None:
                arguments += 1
            else:
                static.append(kind)
    return Shape(Role.COMPUTES, tuple(static), (WORD,) * arguments, WORD)


def _computing() -> dict[str, Shape]:
    found = {}
    for name in PureEmitter.__abstractmethods__ - {"apply", "constant"}:
        found[name] = _shape(getattr(PureEmitter, name))
    found["apply"] = Shape(Role.COMPUTES, (AttributeKind.FUNCTION,), None, WORD)
    found["canonical"] = _shape(Builder.canonical)
    return dict(sorted(found.items()))


SHAPES: dict[str, Shape] = {**_computing(), **_DECLARED}
"""Every operation by name."""

PURE = frozenset(name for name, shape in SHAPES.items() if shape.role is Role.COMPUTES)
"""Names of pure operations."""
DIVISIONS = frozenset({"div_s", "div_u", "rem_s", "rem_u"})
"""Names of operations that are not defined for each divisor."""
FIXED = frozenset(name for name, shape in SHAPES.items() if shape.role is Role.FIXED)
"""Names of operations that read something constant during a run of the body."""

CALLS = frozenset(name for name, shape in SHAPES.items() if shape.role is Role.CALLS) | {
    *("call_host", "barrier")
}
"""Names of operations during which other code runs: a function of the program or of the host, or
other members of a group."""
UPDATES = frozenset({"update_element", "compare_exchange_element"})
"""Names of atomic updates of elements."""
EFFECTS = CALLS | UPDATES | {"caught", "iterations_spent", "array_update", "array_exchange"}
"""Names of operations that have an effect although they yield a value; the last two are in plain
form only (`ferryvm.portable.plain`)."""
TRANSFERS = frozenset({"fill_elements", "move_elements", "elements_from_heap", "elements_to_heap"})
"""Operations that take as long as they have elements, up to milliseconds."""

HEAP_CHANGES = CALLS | {"heap_store", "canonicalise", "elements_to_heap"}
"""Names of operations that may change the heap."""
FIELD_CHANGES = CALLS | {"field_store"}
"""Names of operations that may change the fields of structs."""
ELEMENT_CHANGES = (
    CALLS
    | UPDATES
    | {
        "canonicalise_elements",
        "element_store",
        "elements_from_heap",
        "fill_elements",
        "move_elements",
    }
)
"""Names of operations that may change elements of arrays; all but calls those of the kind that
their first attribute is."""
CONDITIONAL_EXITS = frozenset(
    {"trap_if", "grow_if", "allocate_if", "continue_launch_if", "parallel_if", "guard"}
)
"""Names of checks that do nothing if their first operand does not hold."""

HEADER, LENGTH, PLACE = range(3)
"""Numbers of the words of an object's header, of which a struct has the first one only."""


def element_bytes(elements: Element | int) -> int:
    """Bytes of an element of an element kind, or of a type of arrays of references."""
    return elements.bytes if isinstance(elements, Element) else WORD_BYTES


SAFEPOINTS = frozenset(name for name, shape in SHAPES.items() if shape.role is Role.CHECKS)
"""Operations with a state at which an interpreter can continue."""

POLL_BUDGET = 4096
"""Budget of polls, `poll_costs` each, between two loads of the interrupt flag."""

HOST_STACK_BYTES = 128 << 10
"""Bytes of native stack for native recursion: threads can have small ones."""


@functools.cache
def computed_types(
    name: str, static: tuple[Static, ...]
) -> tuple[tuple[ValueType | AnyType, ...], ValueType | AnyType]:
    """Types of the operands and of the result of a pure operation.

    Raises IrError if it does not exist for these types.
    """
    if name == "apply":
        (function,) = static
        assert isinstance(function, PureFunction)
        return function.parameters, function.result
    if name == "lookup":
        (table,) = static
        assert isinstance(table, ConstantTable)
        return (table.type.integer,), table.type
    types = [item for item in static if isinstance(item, Type)]
    fault = _fault(name, static, types)
    if fault is not None:
        raise IrError(fault)
    method = getattr(Builder, name)
    operands: list[ValueType | AnyType] = []
    for each in list(inspect.signature(method).parameters)[1 + len(static) :]:
        if each in "pq":
            operands.append(BOOLEAN)
        elif name == "select":
            operands.append(AnyType.SAME)
        elif name == "from_slot":
            operands.append(I64)
        else:
            operands.append(types[-1] if types else _SOURCE[name])
    if name == "select":
        return tuple(operands), AnyType.WORD
    builder = Builder()
    builder.open(Block("types", 0))
    values = [Parameter(t) for t in operands if not isinstance(t, AnyType)]
    result = method(builder, *static, *values)
    assert isinstance(result, Value)
    return tuple(operands), result.type


def _fault(name: str, static: tuple[Static, ...], types: list[Type]) -> str | None:
    """The reason that there is no such operation for these types; None if there is one."""
    wanted: tuple[bool | None, ...]
    match name:
        case "to_slot" | "from_slot":
            return None
        case "reinterpret":
            to, t = types
            is_fine = to.bits == t.bits and to.is_float != t.is_float
            return None if is_fine else f"{name} from {t} to {to}: two types of one width expected"
        case "compare":
            condition = static[1]
            assert isinstance(condition, Condition)
            base, _, sign = condition.value.partition("_")
            is_float_only = not sign and base not in ("eq", "ne")
            is_wrong = bool(sign) if types[0].is_float else is_float_only
            return f"compare: no condition {condition.value} of {types[0]}" if is_wrong else None
        case "to_float_s" | "to_float_u":
            wanted = (True, False)
        case "to_int_s" | "to_int_u":
            wanted = (False, True)
        case _:
            wanted = (name == "canonical" or name.startswith("f"),) * len(types)
    for t, is_float in zip(types, wanted, strict=True):
        if t.is_float != is_float:
            return f"{name}: {'a float' if is_float else 'an integer'} type expected, found {t}"
    return None
