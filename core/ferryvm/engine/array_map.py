# SPDX-License-Identifier: Apache-2.0
"""Maps, reductions and scans of NumPy arrays by functions of an instance.

    map(instance.f, xs, ys, a=2.0)  ──>  a launch in the instance over the elements of xs and ys

The launch is in a function that is added to the instance's program at its first use, one for each
combination of element kinds (`ferryvm.engine.extension`). A loop in Python that calls the function
for each element would do the same, some hundred times slower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Complex
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ferryvm.engine.array_argument import (
    NUMBER_ARRAYS,
    Place,
    address_of,
    host_array,
    is_masked,
    viewed,
)
from ferryvm.engine.exported_function import (
    ARRAY_TYPES,
    Exported,
    exported,
    fitting_array,
    of_result,
    other_dtype,
    unfit_result,
)
from ferryvm.engine.fast_call import made
from ferryvm.engine.marshal import CallError, described_parameters
from ferryvm.engine.resident_call import call_resident
from ferryvm.engine.target import Target
from ferryvm.failure import shown
from ferryvm.isa import INSTRUCTIONS
from ferryvm.isa.type import I64, Reference, Type, ValueType, signed, to_python
from ferryvm.skeleton import mapping
from ferryvm.skeleton.array_type import OF_RANGE, OF_VALUE, ArrayType
from ferryvm.skeleton.operation import FLOATS, INTEGERS, Operation
from ferryvm.skeleton.reduction import reduction, reduction_name
from ferryvm.skeleton.scan import scan as skeleton_scan
from ferryvm.skeleton.scan import scan_name

if TYPE_CHECKING:
    import numpy.typing as npt

    from ferryvm.engine.object_view import Item
    from ferryvm.residency import Residency

    Array = npt.NDArray[Any]


def map(
    function: Callable[..., Any],
    /,
    *arrays: Any,
    out: Array | Sequence[Array] | None = None,
    **arguments: Any,
) -> Any:
    """The values of a function of an instance for the elements of arrays at each index, as an array
    of their shape; a tuple of arrays if it has several results.

    `arrays`, `arguments`: for its parameters in order, and by name. A parameter of numbers takes an
    array, whose elements it gets, or one number for all items; one of i64 also a range, of which no
    array is made; other parameters take what a call takes. Arrays are used where they are; all have
    one shape. `out`: the array for the results, or one for each; it may be one of those that are
    read.

    Raises CallError for arguments that do not fit, and errors as `Instance.call`; a trap names the
    item, the index in row-major order. docs/embedding.md has examples.
    """
    f = exported("map", function)
    values = _bound(f, arrays, arguments)
    given = () if out is None else tuple(out) if isinstance(out, tuple | list) else (out,)
    return _mapped(f, values, given, ())


def map_elements(
    function: Callable[..., Any],
    values: Sequence[Any],
    out: Sequence[Array],
    mask: Array | None = None,
) -> None:
    """As `map` into arrays, with an argument for each parameter; an array of complex numbers is one
    for two parameters or two results. `mask`: of uint8; only items whose element of it is 0 run."""
    _mapped(exported("map", function), values, tuple(out), () if mask is None else (mask,))


def map_resident(
    function: Callable[..., Any],
    values: Sequence[Any],
    out: Sequence[Array],
    residency: Residency,
) -> bool:
    """As `map` into arrays, where elements of some are on a device alone; True if the results are
    there, or in the arrays; False if nothing was done. `values` has an argument for each parameter.
    The function has no effects."""
    f = exported("map", function)
    plan = _planned(f, values, tuple(out), ())
    passed = (*_passed(f, plan, values), *(_parts(each) for each in out))
    is_done = call_resident(f.calls, plan.target, passed, residency)
    release(function, out)
    return is_done


def _planned(
    f: Exported, values: Sequence[Any], given: tuple[Any, ...], mask: tuple[Array, ...]
) -> _Plan:
    key = (f.target.function, len(mask), *(_key(value) for value in (*values, *given)))
    plan: _Plan | None = f.calls.extension.plans.get(key)
    if plan is None:
        plan = f.calls.extension.plans[key] = _plan(f, values, given, has_mask=bool(mask))
    return plan


def _mapped(
    f: Exported, values: Sequence[Any], given: tuple[Any, ...], mask: tuple[Array, ...]
) -> Any:
    plan = _planned(f, values, given, mask)
    shape = _shape(f, plan, values)
    for array in given:
        if array.shape != shape or not array.flags.writeable:
            raise unfit_result(f, array, shape)
    results = given or tuple(np.empty(shape, dtype) for dtype in plan.dtypes)
    plan.call(*_passed(f, plan, values), *(_parts(each) for each in results), *mask)
    return results[0] if len(results) == 1 else results


def _passed(f: Exported, plan: _Plan, values: Sequence[Any]) -> Sequence[Any]:
    """The arguments as the adapter takes them."""
    if plan.sequences:
        values = _with_steps(f, plan, values)
    return [_parts(value) for value in values] if plan.has_pairs else values


def _parts(array: Any) -> Any:
    """An array of complex numbers as that of their parts; others as they are."""
    if _is_complex(array):
        return array.view(f"f{array.itemsize // 2}")
    return array


def _is_complex(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "c" and not is_masked(value)


def release(function: Callable[..., Any], out: Sequence[Array]) -> None:
    """Let an instance forget arrays for results, to which a function that was mapped into them has
    no reference. Their memory lives until its next collection otherwise."""
    calls, _ = function.__ferryvm__  # type: ignore[attr-defined]  # a function of an instance
    objects = calls.machine.objects
    try:
        del calls.busy.free
    except AttributeError:
        return  # another thread is in it
    try:
        for each in out:
            objects.space.release(address_of(each))
    finally:
        calls.busy.free = True


def prepared(
    function: Callable[..., Any], values: Sequence[Any], out: Sequence[Array]
) -> Callable[..., object]:
    """The call of `map` by itself: of an argument for each parameter, then the arrays for the
    results. It takes all that are of the dtypes of these and of one shape, which it does not check;
    no ranges."""
    return _plan(exported("map", function), values, out, has_mask=False).call


def _key(value: object) -> object:
    """The part of an argument that a plan depends on."""
    if type(value) is np.ndarray and value.shape != ():
        return value.dtype
    if isinstance(value, int | float):
        return None
    view = viewed(value)
    return type(value) if view is None or view.ndim == 0 else view.dtype


class _Plan(NamedTuple):
    """A map of one function for certain kinds of arguments."""

    call: Callable[..., object]
    """Calls the adapter."""
    target: Target
    """The adapter."""
    elementwise: tuple[int, ...]
    """The numbers of the parameters that get elements of arrays, or numbers of ranges."""
    sequences: tuple[int, ...]
    """The numbers of those that get numbers of ranges."""
    dtypes: tuple[np.dtype[Any], ...]
    """The dtypes of fresh arrays for the results."""
    has_pairs: bool
    """True if arguments are arrays of complex numbers."""


def _plan(f: Exported, values: Sequence[Any], given: Sequence[Any], *, has_mask: bool) -> _Plan:
    """The plan for arguments, whose function is added to the program. Raises CallError for those
    that do not fit."""
    types = tuple(f.signature.parameters)
    has_pairs = len(values) < len(types)  # a public function takes an argument for each
    kinds: list[ArrayType | None] = []
    sequences, elementwise, firsts = [], [], []
    for place, value in enumerate(values):
        number = len(kinds)
        firsts.append(number)
        if has_pairs and _is_complex(value):
            parts = _kind(f, number, types[number], value.real)
            assert parts is not None
            kinds += (parts.paired, None)
            elementwise.append(place)
            continue
        kinds.append(_kind(f, number, types[number], value))
        if isinstance(value, range) and types[number] is I64:
            sequences.append((number, place))
            elementwise.append(place)
        elif kinds[-1] is not None:
            elementwise.append(place)
    if not elementwise:
        raise f.fault(f"no argument is an array of elements; call {f.target.name} itself")
    results = _result_types(f)
    fresh = [OF_VALUE[type_] for type_ in results]
    to = _targets(f, results, given) if given else fresh
    numbers = tuple(number for number, _ in sequences)
    of = mapping.Mapping(
        f.name,
        f.signature,
        tuple(kinds),
        tuple(to),
        sequences=numbers,
        has_mask=has_mask,
    )
    places = ["out"] if len(to) == 1 else [f"out[{number}]" for number in range(len(to))]
    names = [
        each
        for name, number in ((f.parameters[number], number) for number in firsts)
        for each in ((name, f"step of {name}") if number in numbers else (name,))
    ]
    target = f.calls.extension.target(
        of.adapter, lambda: mapping.adapter(of), f.what, (*names, *places, *["mask"] * has_mask)
    )
    dtypes = tuple(NUMBER_ARRAYS[array.reference.number].dtype for array in fresh)
    of_ranges = tuple(place for _, place in sequences)
    call = made(f.calls, target)
    return _Plan(call, target, tuple(elementwise), of_ranges, dtypes, has_pairs)


def _targets(f: Exported, results: Sequence[Type], given: Sequence[Any]) -> list[ArrayType]:
    """The types of the arrays for the results. Raises CallError for arrays that do not fit."""
    to = list[ArrayType]()
    has_pairs = len(given) < len(results)
    number = 0
    for array in given:
        is_pair = has_pairs and _is_complex(array)
        if number + is_pair >= len(results):
            break
        kind = of_result(f, results[number], array.real if is_pair else array)
        to.append(kind.paired if is_pair else kind)
        number += 1 + is_pair
    if number != len(results) or len(to) != len(given):
        raise f.fault(f"out has {len(given)} arrays, there are {len(results)} results")
    return to


def reduce(
    function: Callable[..., Any], array: Any, initial: complex | None = None
) -> Item | complex:
    """All elements of an array of numbers combined by a function of an instance, which takes two
    values and must be associative, with an initial value in front of them, if there is one.

    Without one an empty array has the neutral element of the function, if that does one operation
    that has one (`+ * min max & | ^`), and raises CallError otherwise. Of an array of complex
    numbers the function takes two pairs of floats, and returns one; a function of i64 takes the
    numbers of a range, too, of which no array is made. docs/parallel.md states the order. Raises CallError for arguments that do not fit, and errors as `Instance.call`.
    """
    f = exported("reduce", function)
    operation, kind = _combination(f, array)
    if initial is None and _is_empty(array):
        initial = _neutral(f)
    has_initial = initial is not None
    start: tuple[Any, ...] = (initial,) if has_initial else ()
    if initial is not None and kind.is_pair:
        if not isinstance(initial, Complex):
            raise f.fault(f"initial is {shown(initial)}; a complex number is needed")
        start = float(initial.real), float(initial.imag)
    target = f.calls.extension.target(
        reduction_name(operation, kind, has_initial),
        lambda: reduction(operation, kind, has_initial),
        f.what,
        (*("initial", "imaginary part of initial")[: len(start)], "array"),
    )
    found: Any = f.calls.call(target, (*start, _elements(f, kind, array)))
    return complex(*found) if kind.is_pair else found


def _neutral(f: Exported) -> float:
    """The neutral element of a function of two numbers, if it is one operation of the table."""
    calls, type_ = f.calls, f.signature.results[0]
    assert isinstance(type_, Type)
    program = calls.machine.program
    entry = program.functions[f.target.function].entry
    code = [INSTRUCTIONS[opcode].mnemonic for opcode in program.code.opcodes[entry : entry + 4]]
    is_of_both = len({*program.code.immediates[entry : entry + 2]}) == 2
    for name in FLOATS if type_.is_float else INTEGERS:
        if is_of_both and code == ["local.get", "local.get", f"{type_}.{name}", "return"]:
            return to_python(type_, Operation(name).identity(type_))
    raise f.fault("the array has no elements; an initial value is needed")


def scan(function: Callable[..., Any], array: Any, *, out: Array | None = None) -> Array:
    """An array that has for each element of an array of numbers the combination of all up to it,
    itself included, by a function of an instance; both are as of `reduce`.

    It is `out`, which has the shape of the array and may be the same, or a fresh one of one
    dimension. Raises CallError for arguments that do not fit, and errors as `Instance.call`.
    """
    f = exported("scan", function)
    operation, kind = _combination(f, array)
    in_place = out is not None
    target = f.calls.extension.target(
        scan_name(operation, kind, in_place=in_place),
        lambda: skeleton_scan(operation, kind, in_place=in_place),
        f.what,
        ("array", "out") if in_place else ("array",),
    )
    if out is None:
        found: Array = f.calls.call(target, (_elements(f, kind, array),))  # type: ignore[assignment]  # one result
        return found.view(array.dtype) if kind.is_pair else found
    assert isinstance(kind.value, Type)
    shape = _shape_if_known(array)
    parts = out.real if kind.is_pair and _is_complex(out) else out
    if of_result(f, kind.value, parts) != OF_VALUE[kind.value] or kind.is_pair != _is_complex(out):
        raise other_dtype(f, kind.value, out)
    if shape is not None and (out.shape != shape or not out.flags.writeable):
        raise unfit_result(f, out, shape)
    f.calls.call(target, (_elements(f, kind, array), _parts(out)))
    return out


def _shape_if_known(array: object) -> tuple[int, ...] | None:
    """The shape of an array or a range; None for anything else, of which the call tells."""
    if isinstance(array, range):
        return range_shape(array)
    view = viewed(array)
    return None if view is None else view.shape


def _is_empty(array: object) -> bool:
    shape = _shape_if_known(array)
    return shape is not None and 0 in shape


def _elements(f: Exported, kind: ArrayType, array: Any) -> Any:
    """An array of a type as compiled code takes it."""
    if kind.is_range:
        return np.array([*_start_and_step(f, "the array", array), *range_shape(array)])
    if not kind.is_pair:
        return array
    if not array.flags.c_contiguous:
        raise f.fault("an array is not contiguous; pass numpy.ascontiguousarray(a)")
    return _parts(array)


def _combination(f: Exported, array: object) -> tuple[Operation, ArrayType]:
    """The operation of a function of two values, and the type of an array for it."""
    parameters, results = tuple(f.signature.parameters), tuple(f.signature.results)
    value, is_pair = results[0] if results else None, len(results) == 2 and _is_complex(array)
    wanted = (value,) * (1 + is_pair)
    if not isinstance(value, Type) or (parameters, results) != (2 * wanted, wanted):
        described = described_parameters(f.target.parameters, f.signature)
        raise f.fault(f"a function of two numbers of one type is needed, found {described}")
    if isinstance(array, range) and value is I64:
        return Operation(f.name, is_function=True), OF_RANGE
    view = viewed(array.real if isinstance(array, np.ndarray) and is_pair else array)
    kind = None if view is None else ARRAY_TYPES.get(view.dtype)
    if kind is None or kind.value is not value:
        kind = OF_VALUE[value]  # the call tells that the array does not fit
    return Operation(f.name, is_function=True), kind.paired if is_pair else kind


def _bound(f: Exported, given: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
    """The argument of each parameter."""
    names = f.parameters
    for name in named:
        if name not in names:
            verb = "is" if len(names) == 1 else "are"
            raise f.fault(f"there is no parameter {name!r}; there {verb} {', '.join(names)}")
    free = [name for name in names if name not in named]
    if len(given) != len(free):
        described = f"{f.target.name}{described_parameters(f.target.parameters, f.signature)}"
        found = f"{len(given)} and {len(named)} by name" if named else str(len(given))
        count = f"{len(names)} argument{'s' * (len(names) != 1)}"
        raise f.fault(f"{described} takes {count}, found {found}")
    values = {**dict(zip(free, given, strict=True)), **named}
    return [values[name] for name in names]


def _kind(f: Exported, number: int, type_: ValueType, value: object) -> ArrayType | None:
    """The type of the array that is passed for a parameter; None for an argument of all items."""
    if isinstance(type_, Reference) or isinstance(value, int | float):
        return None
    if isinstance(value, range) and type_ is I64:
        return None
    view = viewed(value)
    if view is None or view.ndim == 0:
        if is_masked(value) or (isinstance(value, Sequence) and not isinstance(value, str)):
            name = f.parameters[number]
            host_array(_argument(f, number, name), OF_VALUE[type_].reference, value)
        return None
    kind = fitting_array(type_, view.dtype)
    if kind is None:
        name = f.parameters[number]
        host_array(_argument(f, number, name), OF_VALUE[type_].reference, value)
        raise AssertionError("host_array refuses an array of another type")
    return kind


def _argument(f: Exported, number: int, name: str) -> Place:
    return Place(f"{f.what}: argument {number + 1} ({name})", name)


def _shape(f: Exported, plan: _Plan, values: Sequence[Any]) -> tuple[int, ...]:
    """The shape of all arrays whose elements are taken."""
    first, *others = plan.elementwise
    found = _shape_of(values[first])
    for number in others:
        shape = _shape_of(values[number])
        if shape != found:
            names = f"{f.parameters[first]} and {f.parameters[number]}"
            message = f"{names} have different shapes, {found} and {shape}"
            raise f.fault(f"{message}; all arrays need the same")
    return found


def _with_steps(f: Exported, plan: _Plan, values: Sequence[Any]) -> list[Any]:
    """The arguments with start and step of each range. Raises CallError for other numbers than
    those of i64."""
    found: list[Any] = []
    for number, value in enumerate(values):
        if number not in plan.sequences:
            found.append(value)
            continue
        found += _start_and_step(f, f.parameters[number], value)
    return found


def _start_and_step(f: Exported, name: str, numbers: range) -> tuple[int, int]:
    """Start and step of a range, by which its numbers are computed modulo 2^64. Raises CallError
    for other numbers than those of i64."""
    if not fits_i64(numbers):
        raise f.fault(f"{name} is {numbers}, whose numbers do not fit into 64 bits")
    return signed(I64, numbers.start & I64.mask), signed(I64, numbers.step & I64.mask)


def fits_i64(numbers: range) -> bool:
    """True if all numbers of a range are numbers of i64."""
    ends = (numbers[0], numbers[-1]) if numbers else ()
    return all(-(1 << 63) <= each < 1 << 63 for each in ends)


def range_shape(numbers: range) -> tuple[int]:
    """The shape of an array with the numbers of a range. Raises CallError if none can have them."""
    try:
        return (len(numbers),)
    except OverflowError:
        raise CallError(f"{numbers} has more numbers than an array can have") from None


def _shape_of(array: object) -> tuple[int, ...]:
    if isinstance(array, range):
        return range_shape(array)
    view = array if isinstance(array, np.ndarray) else viewed(array)
    assert view is not None
    return view.shape


def _result_types(f: Exported) -> list[Type]:
    """The types of the results."""
    found = [type_ for type_ in f.signature.results if isinstance(type_, Type)]
    if not found or len(found) < len(f.signature.results):
        described = described_parameters(f.target.parameters, f.signature)
        raise f.fault(f"the results must be numbers, and at least one; found {described}")
    return found
