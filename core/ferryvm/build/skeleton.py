# SPDX-License-Identifier: Apache-2.0
"""Reductions in a program under construction: the generated function for the operands on the
stack."""

from __future__ import annotations

from ferryvm.build.body import Body
from ferryvm.isa.element import Element
from ferryvm.isa.type import Type, ValueType
from ferryvm.skeleton.array_type import ArrayType
from ferryvm.skeleton.operation import INTEGERS, Operation
from ferryvm.skeleton.reduction import reduction, reduction_name

_NUMBERS: dict[ValueType, ArrayType] = {element.array: ArrayType.of(element) for element in Element}


def reduction_of(function: Body, operation: object, initial: bool) -> Body:
    """The function that reduces the array on the stack of a function."""
    array = _numbers(function, "reduce")
    found = _operation(function, "reduce", operation, array)
    if found.is_function and not initial:
        raise function._fault(f"reduce with function {found.name!r} needs an initial value")
    name = reduction_name(found, array, initial)
    return function._generate(name, lambda: reduction(found, array, initial))


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
