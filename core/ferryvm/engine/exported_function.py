# SPDX-License-Identifier: Apache-2.0
"""Functions of an instance that maps, reductions and scans take, and the arrays that fit them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ferryvm.engine.array_argument import NUMBER_ARRAYS
from ferryvm.engine.fast_call import parameter_names
from ferryvm.engine.marshal import CallError
from ferryvm.engine.target import Target
from ferryvm.failure import shown
from ferryvm.isa.element import Element
from ferryvm.isa.type import I32, Type
from ferryvm.program import Signature
from ferryvm.skeleton.array_type import OF_VALUE, ArrayType

if TYPE_CHECKING:
    import numpy.typing as npt

    from ferryvm.engine.call import Calls

    Array = npt.NDArray[Any]

ARRAY_TYPES = {
    NUMBER_ARRAYS[element.array.number].dtype: ArrayType.of(element) for element in Element
}
"""The types of arrays by the dtypes of NumPy."""


class Exported(NamedTuple):
    """A function of an instance."""

    calls: Calls
    target: Target
    form: str
    """The operation: map, reduce or scan."""

    @property
    def what(self) -> str:
        """The operation in messages: `map of scale`."""
        return f"{self.form} of {self.target.name}"

    @property
    def name(self) -> str:
        """Its name in the program, which may export it under another one."""
        return self.calls.machine.program.functions[self.target.function].name

    @property
    def signature(self) -> Signature:
        """Its parameters and results."""
        return self.target.signature

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters in Python."""
        return _names(self.target)

    def fault(self, message: str) -> CallError:
        """An error of a call."""
        return CallError(f"{self.what}: {message}")


@functools.lru_cache
def _names(target: Target) -> list[str]:
    return parameter_names(target.parameters, len(target.signature.parameters))


def exported(form: str, function: object) -> Exported:
    """A function that was passed to an operation. Raises TypeError for others."""
    found = getattr(function, "__ferryvm__", None)
    if found is None:
        wanted = "a function of an instance, such as instance.f"
        raise TypeError(f"{form} takes {wanted}; found {shown(function)}")
    calls, target = found
    return Exported(calls, target, form)


def fitting_array(type_: Type, dtype: np.dtype[Any]) -> ArrayType | None:
    """The type of arrays of a dtype, if their elements can be values of a type."""
    kind = ARRAY_TYPES.get(dtype)
    if kind is None or not (kind.value is type_ or (kind.is_narrow and type_ is I32)):
        return None
    return kind


def unfit_result(f: Exported, array: Array, shape: tuple[int, ...]) -> CallError:
    """The error for an array for results."""
    if array.shape != shape:
        return f.fault(f"out has the shape {array.shape}, the arrays have {shape}")
    return f.fault("out is read-only; an array that can be written is needed")


def of_result(f: Exported, type_: Type, result: Any) -> ArrayType:
    """The type of an array for results of a type."""
    if not isinstance(result, np.ndarray):
        raise f.fault(f"out is {shown(result)}; an ndarray is needed, or a tuple of them")
    kind = fitting_array(type_, result.dtype)
    if kind is None:
        raise other_dtype(f, type_, result)
    return kind


def other_dtype(f: Exported, type_: Type, result: Array) -> CallError:
    """The error for an array for results of another type."""
    dtype = NUMBER_ARRAYS[OF_VALUE[type_].reference.number].dtype.name
    made = f"numpy.empty({result.shape}, numpy.{dtype})"
    return f.fault(f"out is an array of {result.dtype}; one of {dtype} is needed, as {made}")
