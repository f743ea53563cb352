# SPDX-License-Identifier: Apache-2.0
"""Maps, reductions, scans, operations of groups and launches of several dimensions in a program under
construction: the generated function for the operands on the stack."""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.build.body import Body
from ferryvm.isa.element import Element
from ferryvm.isa.launch import MOST_DIMENSIONS
from ferryvm.isa.type import I32, I64, Type, ValueType
from ferryvm.skeleton.array_type import OF_VALUE, ArrayType
from ferryvm.skeleton.grid import Grid, grid
from ferryvm.skeleton.group_launch import GroupLaunch, group_launch
from ferryvm.skeleton.group_operation import (
    VALUE_ARRAYS,
    group_broadcast,
    group_broadcast_name,
    group_reduction,
    group_reduction_name,
    group_scan,
    group_scan_name,
)
from ferryvm.skeleton.mapping import Mapping, mapping
from ferryvm.skeleton.operation import INTEGERS, Operation
from ferryvm.skeleton.reduction import reduction, reduction_name
from ferryvm.skeleton.scan import scan, scan_name

_NUMBERS: dict[ValueType, ArrayType] = {element.array: ArrayType.of(element) for element in Element}


def reduction_of(function: Body, operation: object, initial: bool) -> Body:
    """The function that reduces the array on the stack of a function."""
    array = _numbers(function, "reduce")
    found = _operation(function, "reduce", operation, array)
    if found.is_function and not initial:
        raise function._fault(f"reduce with function {found.name!r} needs an initial value")
    name = reduction_name(found, array, initial)
    return function._generate(name, lambda: reduction(found, array, initial))


def grid_of(function: Body, launched: object, dimensions: int) -> Body:
    """The function that launches another one in two or three dimensions."""
    if not isinstance(launched, Body) or launched.program is not function.program:
        raise function._fault(f"launch takes a function of this program, found {launched!r}")
    if dimensions not in range(2, MOST_DIMENSIONS + 1):
        raise function._fault(f"launch has 1 to {MOST_DIMENSIONS} dimensions, found {dimensions!r}")
    signature = launched.signature
    indices = (I64,) * dimensions
    if tuple(signature.parameters)[:dimensions] != indices or signature.results:
        wanted = f"({' '.join(map(str, indices))} ...) -> ()"
        raise function._fault(f"launch takes a function {wanted}, found {signature}")
    found = Grid(launched.name, signature, dimensions)
    return function._generate(found.name, lambda: grid(found))


def group_launch_of(function: Body, launched: object, arrays: Sequence[str]) -> Body:
    """The function that launches another one in groups."""
    what = "launch_groups"
    if not isinstance(launched, Body) or launched.program is not function.program:
        raise function._fault(f"{what} takes a function of this program, found {launched!r}")
    signature = launched.signature
    parameters = tuple(signature.parameters)
    if parameters[:2] != (I64, I64) or signature.results:
        raise function._fault(f"{what} takes a function (i64 i64 ...) -> (), found {signature}")
    made: list[ArrayType | None] = [None] * (len(parameters) - 2)
    for name in arrays:
        local = launched.locals.get(name)
        number = -1 if local is None else local.number - 2
        if not 0 <= number < len(made):
            raise function._fault(f"{what}: {name!r} is no parameter of {launched!r} for an array")
        made[number] = _array(function, what, parameters[number + 2])
    found = GroupLaunch(launched.name, signature, tuple(made))
    return function._generate(found.name, lambda: group_launch(found))


def scan_of(function: Body, operation: object) -> Body:
    """The function that scans the array on the stack of a function."""
    array = _numbers(function, "scan")
    found = _operation(function, "scan", operation, array)
    return function._generate(scan_name(found, array), lambda: scan(found, array))


def group_reduction_of(function: Body, operation: object) -> Body:
    """The function that reduces the values of a group."""
    values = _values(function, "group_reduce")
    found = _operation(function, "group_reduce", operation, values)
    name = group_reduction_name(found, values)
    return function._generate(name, lambda: group_reduction(found, values))


def group_scan_of(function: Body, operation: object, is_exclusive: bool) -> Body:
    """The function that scans the values of a group."""
    values = _values(function, "group_scan")
    found = _operation(function, "group_scan", operation, values)
    if found.is_function and is_exclusive:
        raise function._fault(f"group_scan with function {found.name!r} cannot be exclusive")
    name = group_scan_name(found, values, is_exclusive=is_exclusive)
    return function._generate(name, lambda: group_scan(found, values, is_exclusive=is_exclusive))


def group_broadcast_of(function: Body) -> Body:
    """The function that gives all items of a group the value of one of them."""
    values = _values(function, "group_broadcast")
    return function._generate(group_broadcast_name(values), lambda: group_broadcast(values))


def _values(function: Body, what: str) -> ArrayType:
    """The type of the array for the values of a group, on top of the stack."""
    array = _numbers(function, what)
    if array not in VALUE_ARRAYS:
        names = ", ".join(sorted(map(str, VALUE_ARRAYS)))
        raise function._fault(f"{what} takes an array of one of {names}, found {array}")
    return array


def _numbers(function: Body, what: str) -> ArrayType:
    """The type of the array of numbers on top of the stack."""
    stack = function.stack
    array = _NUMBERS.get(stack[-1]) if stack else None
    if array is None:
        raise function._fault(f"{what} takes an array of numbers, the stack has {function._shape}")
    return array


def _operation(function: Body, what: str, operation: object, array: ArrayType) -> Operation:
    """The operation on values of an array. Raises BuildError."""
    value = array.value
    if isinstance(operation, str) and operation in INTEGERS:
        found = Operation(operation)
        if not found.is_defined(value):
            raise function._fault(f"{what}: {operation!r} is not defined for {value}")
        return found
    if not isinstance(operation, Body) or operation.program is not function.program:
        names = ", ".join(INTEGERS)
        allowed = f"one of {names}, or a function of this program"
        raise function._fault(f"{what} takes {allowed}, found {operation!r}")
    assert isinstance(value, Type)
    signature = operation.signature
    if tuple(signature.parameters) != (value, value) or tuple(signature.results) != (value,):
        wanted = f"({value} {value}) -> ({value})"
        raise function._fault(f"{what}: a function {wanted} is expected, found {signature}")
    return Operation(operation.name, is_function=True)


def map_of(function: Body, mapped: object, arrays: int, in_place: bool) -> Body:
    """The function that maps another one over the arrays on the stack of a function."""
    what = "map_to" if in_place else "map"
    if not isinstance(mapped, Body) or mapped.program is not function.program:
        raise function._fault(f"{what} takes a function of this program, found {mapped!r}")
    signature = mapped.signature
    results, parameters = tuple(signature.results), tuple(signature.parameters)
    if not results or not 0 < arrays <= len(parameters):
        wanted = f"a function with results that takes elements of {arrays} arrays"
        raise function._fault(f"{what} takes {wanted}, found {signature}")
    count = len(parameters) + (len(results) if in_place else 0)
    operands = function.stack[-count:]
    if len(operands) < count:
        raise function._fault(f"{what} takes {count} operands, the stack has {function._shape}")
    read = [_array(function, what, operand) for operand in operands[-arrays:]]
    if in_place:
        to = [_array(function, what, operand) for operand in operands[: len(results)]]
    else:
        to = [_of_value(function, result) for result in results]
    for array, value in zip(read, parameters, strict=False):
        if not _is_possible(function, array, array.value, value):
            raise function._fault(f"{what}: an element of {array} is no {value} for {mapped!r}")
    for array, value in zip(to, results, strict=True):
        if not _is_possible(function, array, value, array.value):
            raise function._fault(f"{what}: {value} of {mapped!r} is no element of {array}")
    shared = (None,) * (len(parameters) - arrays)
    found = Mapping(mapped.name, signature, (*read, *shared), tuple(to), in_place)
    return function._generate(found.name, lambda: mapping(found))


def _array(function: Body, what: str, operand: ValueType) -> ArrayType:
    """The type of an array on the stack."""
    if operand in _NUMBERS:
        return _NUMBERS[operand]
    declared = function._types.array_type(operand)
    if declared is None:
        raise function._fault(f"{what} takes arrays, the stack has {function._shape}")
    return ArrayType(declared.type, declared.element)


def _of_value(function: Body, value: ValueType) -> ArrayType:
    """The type of a fresh array for values of a type."""
    if isinstance(value, Type):
        return OF_VALUE[value]
    declared = function._types.array(value)
    return ArrayType(declared.type, declared.element)


def _is_possible(function: Body, array: ArrayType, found: ValueType, wanted: ValueType) -> bool:
    """True if a value, an element of an array or to become one, can stand where another type is
    expected."""
    if array.is_narrow and I32 in (found, wanted):
        return True
    return function._types.fits(found, wanted)
