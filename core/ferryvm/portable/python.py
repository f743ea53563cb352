# SPDX-License-Identifier: Apache-2.0
"""Python functions as exported ones: `ferryvm.export`.

A version of the function, for the kinds of its arguments, is the program whose function is
exported. An array of NumPy of one dimension is a pointer and a length; of more, its lengths follow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from ferryvm.errors import Position, by_likeness
from ferryvm.portable.folder import Exported, ExportOptions, check_directory, export_subject
from ferryvm.portable.python_array import array_parameters
from ferryvm.portable.python_map import map_subject
from ferryvm.portable.refusal import ExportError
from ferryvm.portable.subject import Subject, function_subject, grid_subject
from ferryvm.portable.target import target as target_of
from ferryvm.python.call.function import PythonFunction
from ferryvm.python.compiled.compiled_version import Version
from ferryvm.python.control_flow.kernel_source import Layout, Role
from ferryvm.python.fault import UnsupportedError
from ferryvm.python.group.kernel import Kernel, arranged
from ferryvm.python.group.kernel_launch import LaunchedKernel
from ferryvm.python.map.mapped_function import python_function
from ferryvm.python.value.kind import DTYPES, PAIRS, Complex, Constant, Number, Scalar
from ferryvm.verify import verify

_ARRAY = re.compile(r"(\w+)\[(:(?:,\s*:)*)\]")
_EXAMPLES: dict[type, object] = {float: 0.0, int: 0, bool: False, complex: 0j}


def export(
    function: Any,
    arguments: Sequence[object],
    directory: str | Path,
    *,
    target: str = "c",
    name: str | None = None,
    vectors: int | None = None,
    seed: int = 1,
    optimize: int = 2,
    fold: Mapping[str, str | float] | None = None,
    group: int | Sequence[int] | None = None,
    dimensions: int = 1,
    elements: int = 0,
) -> Exported:
    """Write a folder with a Python function or kernel for programs without ferryvm; what was
    written.

    `arguments`: a kind for each parameter, as an example value (`2.0`, an array of NumPy), a type
    (`float`, `int`, `bool`, `complex`, `np.float32`), or a text for arrays (`"float64[:]"`, `"int32[:, :]"`).
    The others are as of `ExportOptions`. Of a kernel a launch is exported: in groups of the size
    `group`, which is as of `ferryvm.launch`, or without groups of so many `dimensions`. With
    `elements` a launch that runs the function as `ferryvm.map` does: so many of the first arguments
    are arrays, or `range`, of which an item gets an element; results are arrays, too. Where
    Python would raise an exception, or go on with integers of more than 64 bits, the exported
    function returns an error.

    Raises UnsupportedError for what cannot be compiled, ExportError for what cannot be exported,
    and FerryError for a folder that is not empty. docs/export.md has examples.
    """
    options = ExportOptions(target, name, seed, vectors, optimize, fold or {})
    target_of(target)
    where = Path(directory)
    check_directory(where)
    layout = _layout(function, group, dimensions)
    if elements and layout is not None:
        raise UnsupportedError(f"{function.__name__} is a kernel: its launch has no elements")
    found = (
        python_function("export", function, elements) if elements else _compiled(function, layout)
    )
    values = [_example(value) for value in arguments]
    if len(values) != len(found.parameters):
        names = ", ".join(found.parameters)
        raise UnsupportedError(
            f"{found.__name__} has the parameters {names}; found {len(values)} arguments"
        )
    if not 0 <= elements <= len(values):
        what = f"{found.__name__} has {len(values)} parameters, {elements} elements"
        raise UnsupportedError(f"{what}: as many at most")
    if elements:
        mapped = function if isinstance(function, FunctionType) else found.__ferryvm_function__
        return export_subject(map_subject(found, mapped, values, elements), where, options)
    version = found.version(values)
    subject = (
        _subject(found.__name__, version)
        if layout is None
        else _kernel_subject(found.__name__, version, layout)
    )
    return export_subject(subject, where, options)


def _layout(function: Any, group: int | Sequence[int] | None, dimensions: int) -> Layout | None:
    """The form of a kernel's launch; None for another function."""
    if not isinstance(function, Kernel):
        if group is not None:
            name = getattr(function, "__name__", str(function))
            raise UnsupportedError(f"{name} is no kernel: only a kernel has groups")
        return None
    sizes = (0,) * dimensions if group is None else group
    layout, _ = arranged(function.__name__, sizes, group)
    return layout


def _compiled(function: Any, layout: Layout | None) -> PythonFunction[..., Any]:
    if layout is not None:
        return LaunchedKernel(function.function, None, None, layout)
    if isinstance(function, PythonFunction):
        return function
    return PythonFunction(function, None, None, True)


def _example(value: object) -> object:
    """A value of the kind that an argument stands for."""
    if isinstance(value, str):
        match = _ARRAY.fullmatch(value.replace(" ", ""))
        if match is None:
            raise _no_array(value, value.partition("[")[0].strip())
        if match[1] not in DTYPES and match[1] not in PAIRS:
            raise _no_array(value, match[1])
        return np.zeros((1,) * match[2].count(":"), match[1])
    if value is range:
        return range(1)
    if isinstance(value, type):
        if value in _EXAMPLES:
            return _EXAMPLES[value]
        if issubclass(value, np.generic):
            return value(0)
        raise UnsupportedError(
            f"argument {value.__name__}: float, int, bool, complex or a type of NumPy expected"
        )
    return value


def _no_array(text: str, name: str) -> UnsupportedError:
    """The error for a text that stands for no array, with the types of elements, nearest first."""
    allowed = by_likeness(name, (*DTYPES, *PAIRS))
    types = f"types are {', '.join(allowed)}"
    if "[" not in text:
        python = by_likeness(name, [each.__name__ for each in _EXAMPLES])[0]
        number = f"pass the type itself, such as {python} or numpy.{allowed[0]}"
        return UnsupportedError(
            f"argument {text!r}: a text stands for an array, such as '{allowed[0]}[:]'; of a number "
            f"{number}; {types}"
        )
    return UnsupportedError(
        f"argument {text!r}: a type of elements is expected with a colon for each dimension, such as"
        f" '{allowed[0]}[:]'; {types}"
    )


def _kernel_subject(name: str, version: Version, layout: Layout) -> Subject:
    """The launch of a kernel."""
    names = [function.name for function in version.program.functions]
    member = names.index(name)
    number = member if layout.group is None else names.index(f"{Role.GROUP.value}{name}")
    axes = layout.dimensions
    lengths, shapes, pairs = array_parameters(name, version, 2 * axes)
    verified = verify(version.program)
    item = function_subject(
        verified, number, lengths, shapes, may_throw=True, sets_statics=False, pairs=pairs
    ).at(member)
    return grid_subject(item, axes, layout.group is not None, layout.group or ())


def _subject(name: str, version: Version) -> Subject:
    program = version.program
    (entry,) = program.exports
    position = Position(version.code.co_filename, version.code.co_firstlineno, 1)
    if len(version.results or ()) > 1:
        kinds = " or ".join(map(str, version.results))
        what = f"{name} returns {kinds}"
        raise ExportError(what, "return values of one type", position)
    lengths, shapes, pairs = array_parameters(name, version, 0)
    names: tuple[str, ...] = ()
    for kind in version.results or ():
        if not isinstance(kind, Number | Scalar | Complex | Constant):
            raise ExportError(f"{name} returns {kind}", "pass an array that it fills", position)
        if isinstance(kind, Complex):
            names = "result_real", "result_imag"
    return function_subject(
        verify(program), entry.function, lengths, shapes, True, names, pairs=pairs
    )
