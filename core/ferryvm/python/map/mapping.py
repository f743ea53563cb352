# SPDX-License-Identifier: Apache-2.0
"""Maps of Python functions over arrays: `ferryvm.map`.

    map(f, xs, ys, k=3.0)  ──>  f is compiled for the kinds of the elements and of k,
                                then a launch over the arrays in an instance of it

Functions of an instance are mapped by `ferryvm.engine.array_map`, which this uses.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ferryvm.engine import array_map
from ferryvm.python.call.function import PythonFunction
from ferryvm.python.map.map_plan import MapPlan, fault, plan_key
from ferryvm.python.map.mapped_function import bound, python_function
from ferryvm.python.map.resident_map import run_resident
from ferryvm.python.map.taken import Taken, data_of, is_taken
from ferryvm.python.value.device_array import device_arrays, is_resident, memory_of, on_host
from ferryvm.python.value.foreign_array import viewed_array
from ferryvm.python.value.value_kind import MisfitError

if TYPE_CHECKING:
    import numpy.typing as npt


def map(
    function: Callable[..., Any],
    /,
    *arrays: Any,
    out: npt.NDArray[Any] | Sequence[npt.NDArray[Any]] | None = None,
    **arguments: Any,
) -> Any:
    """The values of a function for the elements of arrays at each index, as an array of their
    shape; a tuple of arrays if it has several results.

    `function`: a Python function, also one of `ferryvm.function`, or a function of an instance.
    `arrays`: arrays of one shape, of NumPy or any library whose arrays it can read, and ranges, for
    its parameters in order; a number stands for an array of it. `arguments`: those of the other
    parameters, by name, as they are: an array is the same for all items. `out`: the array for the
    results, or one for each; it may be one of those that are read. For a function of an instance,
    `arguments` may be arrays of elements, too.

    Raises CallError for arguments that do not fit, UnsupportedError for a function that cannot be
    compiled, and what the function raises for the first item that raises. docs/python.md has
    examples.
    """
    if hasattr(function, "__ferryvm__"):
        return array_map.map(function, *arrays, out=out, **arguments)
    return _mapped(function, arrays, arguments, out)


def _mapped(
    given: Callable[..., Any], arrays: Sequence[Any], arguments: Mapping[str, Any], out: Any
) -> Any:
    of = python_function("map", given, len(arrays))
    function = given if given.__class__ is types.FunctionType else of.__ferryvm_function__
    values, count = _bound(of, function, arrays, arguments), len(arrays)
    if is_resident.get():
        return _resident(of, function, count, _viewed(of, values), out, True)
    plan: MapPlan | None = of.maps.get(plan_key(values, count))
    free = None if plan is None else plan.free(function)
    if plan is None or free is None:
        values = _viewed(of, values)
        if any(device_arrays(value) for value in values):
            return _resident(of, function, count, values, out, False)
        if any(is_taken(value) for value in values[:count]):
            return _looked_at(of, function, count, values, out)
        plan, free = _planned(of, function, count, values)
    return plan.run([*values, *free], out)


def _viewed(of: PythonFunction[..., Any], values: Sequence[Any]) -> list[Any]:
    """The arguments, with arrays of NumPy in the place of those of other libraries."""
    found = []
    for name, value in zip(of.parameters, values, strict=True):
        try:
            found.append(viewed_array(value))
        except MisfitError as misfit:
            raise fault(of, f"argument {name}: {misfit}") from None
    return found


def _resident(
    of: PythonFunction[..., Any],
    function: types.FunctionType,
    count: int,
    values: Sequence[Any],
    out: Any,
    remains: bool,
) -> Any:
    """The map of arrays that may be on a device. `remains`: results are to be there, too."""
    if any(is_taken(value) for value in values[:count]):
        return _looked_at(of, function, count, [on_host(value) for value in values], out)
    hosts = [memory_of(value) for value in values]
    plan, free = _planned(of, function, count, hosts)
    given = [each for value in values for each in device_arrays(value)]
    return run_resident(plan, [*hosts, *free], given, out, remains=remains)


def _planned(
    of: PythonFunction[..., Any], function: types.FunctionType, count: int, values: Sequence[Any]
) -> tuple[MapPlan, tuple[Any, ...]]:
    """The plan for arguments, and the values of free names for it."""
    key = plan_key(values, count)
    plan: MapPlan | None = of.maps.get(key)
    free = None if plan is None else plan.free(function)
    if plan is None or free is None:
        plan = of.maps[key] = MapPlan(of, function, count, values)
        free = plan.version.free.values(function)
    return plan, free


def _looked_at(
    of: PythonFunction[..., Any],
    function: types.FunctionType,
    count: int,
    values: Sequence[Any],
    out: Any,
) -> Any:
    """The map with arguments that have to be looked at."""
    try:
        taken = Taken(of.parameters, values, count)
    except MisfitError as misfit:
        raise fault(of, str(misfit)) from None
    plan, free = _planned(of, function, count, taken.values)
    return taken.masked(plan.run([*taken.arrays, *free], data_of(out), taken.mask), out)


def map_into(
    function: Callable[..., Any],
    out: npt.NDArray[Any] | Sequence[npt.NDArray[Any]],
    /,
    *arrays: Any,
    **arguments: Any,
) -> Any:
    """The array for the results, or a tuple of them, with the values of a function for the elements
    of arrays at each index: as `map` with `out`, also where the function has a parameter of that
    name.
    """
    if hasattr(function, "__ferryvm__"):
        return array_map.map(function, *arrays, out=out, **arguments)
    return _mapped(function, arrays, arguments, out)


def _bound(
    of: PythonFunction[..., Any],
    function: types.FunctionType,
    arrays: Sequence[Any],
    arguments: Mapping[str, Any],
) -> list[Any]:
    """The argument of each parameter."""
    if len(arrays) == len(of.parameters) and not arguments:
        return [*arrays]
    try:
        return bound(function, of.parameters, arrays, arguments)
    except TypeError as error:
        raise fault(of, str(error)) from None
