# SPDX-License-Identifier: Apache-2.0
"""Host functions declared as Python functions: the signature is read from their annotations.

    @host                                      HostFunction("twice", (i64) -> (i64), twice, ...)
    def twice(x: i64) -> i64: ...      ──>     Engine(hosts=[twice])

    i32 i64 f32 f64                 the types themselves, for annotations
    int, bool                       i64, i32
    float                           f64
    numpy.typing.NDArray[float32]   f32[], and so on
    Annotated[StructView, "node"]   the type `node` of the program
    object                          anyref

A callable without inspectable parameters (a builtin, `*args`) needs an explicit signature. Types
that a program declares have no number here; `ferryvm.machine.host.bind` finds them by their names.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from types import UnionType
from typing import Annotated, Any, TypeAlias, Union, overload

from ferryvm.errors import FerryError
from ferryvm.isa.declared_type import PREDEFINED, is_type_name
from ferryvm.isa.element import Element
from ferryvm.isa.type import ANYREF, Reference, Type, ValueType
from ferryvm.machine.host import Context, Determinism, HostError, HostFunction, Output, System
from ferryvm.program import Signature

__all__ = ["Hosts", "f32", "f64", "host", "i32", "i64"]

i32 = Annotated[int, Type.I32]
"""A 32-bit integer, in the annotations of a host function: a Python int."""
i64 = Annotated[int, Type.I64]
"""A 64-bit integer: a Python int."""
f32 = Annotated[float, Type.F32]
"""An IEEE 754 binary32: a Python float."""
f64 = Annotated[float, Type.F64]
"""An IEEE 754 binary64: a Python float."""

_PLAIN = {int: Type.I64, float: Type.F64, bool: Type.I32}
_ALLOWED = (
    "i32, i64, f32, f64, or int, float, bool, numpy.typing.NDArray[...], object, "
    'Annotated[StructView, "node"]'
)
_KNOWN: dict[str, ValueType] = {str(t): t for t in (*Type, *PREDEFINED)}
_OF_DTYPE = {
    {"i": "int", "u": "uint", "f": "float"}[element.kind[0]] + str(element.bits): element.array
    for element in Element
}
"""Types of arrays by the name of NumPy's scalar type."""
_UNNUMBERED = -1
"""The number of a type that a program declares, where the program is not known."""
_NO_STRUCT = re.compile(r"[iuf]\d+|int|uint|float|double|long|bool|char|str|bytes|void|None")
"""Names that are not taken for a program's types, since they look like numbers or a mistake."""


@overload
def host(function: Callable[..., object], /) -> HostFunction: ...


@overload
def host(
    *,
    name: str | None = None,
    signature: str | Signature | None = None,
    summary: str | None = None,
    pure: bool = False,
    replayable: bool = False,
) -> Callable[[Callable[..., object]], HostFunction]: ...


def host(
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str | None = None,
    signature: str | Signature | None = None,
    summary: str | None = None,
    pure: bool = False,
    replayable: bool = False,
) -> HostFunction | Callable[[Callable[..., object]], HostFunction]:
    """Declare a function that programs can call; a decorator, with arguments or without.

    `name`: another than the function's own. `signature`: instead of annotations, such as "(i64
    f64[]) -> (node)". `summary`: instead of the first line of its docstring. A first parameter that
    is annotated as `ferryvm.Instance` gets the instance that calls.

    `pure`: the result depends on the arguments alone, and there are no effects; `replayable`: the
    result depends on more, such as the time or input, and a recorded one may be used instead of a
    call. Otherwise the function counts as one with effects of its own.

    Raises HostError for a callable that cannot be a host function, with the reason and the remedy.
    """

    def declare(function: Callable[..., object]) -> HostFunction:
        declared = _declare(function, name, signature, summary)
        kind = determinism(declared.name, pure, replayable)
        return dataclasses.replace(declared, determinism=kind)

    return declare if function is None else declare(function)


def determinism(name: str, pure: bool, replayable: bool) -> Determinism:
    """The determinism that a host function declares. Raises HostError."""
    if pure and replayable:
        raise HostError(f"host function {name} is pure and replayable: one is allowed")
    kinds = {Determinism.PURE: pure, Determinism.REPLAYABLE: replayable}
    return next((kind for kind, is_it in kinds.items() if is_it), Determinism.PLAIN)


Hosts: TypeAlias = (
    Mapping[str, HostFunction | Callable[..., object]]
    | Iterable[HostFunction | Callable[..., object]]
)
"""Host functions as users give them: by name, or each under its own name. A plain function's
signature is read from its annotations."""


def offered(hosts: Hosts | None) -> dict[str, HostFunction]:
    """Host functions by name. Raises HostError for an object that cannot be one, or a duplicate
    name."""
    if hosts is None:
        return {}
    found: dict[str, HostFunction] = {}
    if isinstance(hosts, Mapping):
        for name, given in hosts.items():
            found[name] = dataclasses.replace(_declared(given, name), name=name)
        return found
    if isinstance(hosts, HostFunction) or not isinstance(hosts, Iterable):
        raise HostError(f"hosts: {hosts!r}; a list or a mapping of host functions is expected")
    for given in hosts:
        function = _declared(given)
        if found.setdefault(function.name, function) is not function:
            raise HostError(f"two host functions are called {function.name!r}")
    return found


def _declared(given: object, name: str | None = None) -> HostFunction:
    """A host function, or the declaration of a plain function."""
    if isinstance(given, HostFunction):
        return given
    if not callable(given):
        kind = type(given).__name__
        what = f"host function {name!r}" if name else "a host function"
        raise HostError(f"{what} is {given!r} ({kind}); a function or a HostFunction is expected")
    return _declare(given, name, None, None)


def _declare(
    function: Callable[..., object],
    name: str | None,
    signature: str | Signature | None,
    summary: str | None,
) -> HostFunction:
    if isinstance(function, HostFunction):
        raise HostError(f"host function {function.name} is declared already")
    found: object = name or getattr(function, "__name__", None)
    if not isinstance(found, str) or found == "<lambda>":
        raise HostError(f"{function!r} has no name of its own; give one: host(name=...)")
    summary = summary or next(iter((inspect.getdoc(function) or "").splitlines()), "")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise HostError(f"host function {found} is a coroutine or generator: a program cannot wait")
    if signature is None:
        context, signature = _read(function, found)
    else:
        if isinstance(signature, str):
            signature = parse_signature(signature)
        context = _context(_parameters(function), found)
        _check_count(function, found, signature, context)
    return HostFunction(found, signature, function, summary, context)


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter] | None:
    """The parameters with their annotations evaluated; None if they cannot be inspected."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    hints = _hints(function)
    return [p.replace(annotation=hints.get(p.name, p.annotation)) for p in parameters]


def _hints(function: Callable[..., object]) -> dict[str, object]:
    names = {"i32": i32, "i64": i64, "f32": f32, "f64": f64}
    target = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004 - a callable object
    try:
        return typing.get_type_hints(target, localns=_LocalNames(names), include_extras=True)
    except Exception as error:
        name = getattr(function, "__name__", repr(function))
        raise HostError(f"host function {name}: its annotations cannot be read: {error}") from error


class _LocalNames(dict[str, object]):
    """Names that annotations may use though the module does not define them: the types, and
    `Instance`, which a module may import for type checkers alone."""

    def __missing__(self, name: str) -> object:
        if name == "Instance":
            from ferryvm.engine.instance import Instance

            return Instance
        raise KeyError(name)


def _context(parameters: list[inspect.Parameter] | None, name: str) -> Context:
    """The context that the first parameter requires."""
    if not parameters:
        return Context.NONE
    wanted = parameters[0].annotation
    if wanted == Output:
        return Context.OUTPUT
    if wanted is System:
        return Context.SYSTEM
    if getattr(wanted, "is_instance", False):
        return Context.INSTANCE
    return Context.NONE


def _read(function: Callable[..., object], name: str) -> tuple[Context, Signature]:
    """The context and the signature that annotations declare."""
    parameters = _parameters(function)
    if parameters is None:
        raise HostError(
            f"host function {name}: the parameters of {function!r} cannot be told; "
            'write host(signature="(i64) -> (i64)")(...)'
        )
    context = _context(parameters, name)
    types = []
    for parameter in parameters[context is not Context.NONE :]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise HostError(
                f"host function {name} takes any number of arguments; give its signature: "
                'host(signature="(i64 i64) -> (i64)")'
            )
        if parameter.kind is parameter.KEYWORD_ONLY:
            if parameter.default is parameter.empty:
                raise HostError(f"host function {name}: programs give no keyword {parameter.name}")
            continue
        if parameter.annotation is parameter.empty and parameter.default is not parameter.empty:
            continue
        types.append(_type(parameter.annotation, f"host function {name}: {parameter.name}"))
    result = _hints(function).get("return", type(None))
    results = () if result is type(None) else (_type(result, f"host function {name}: its result"),)
    return context, Signature(tuple(types), results)


def _type(annotation: object, what: str) -> ValueType:
    if annotation is inspect.Parameter.empty:
        raise HostError(
            f"{what} has no annotation; one of {_ALLOWED} is expected, or all types in words: "
            'host(signature="(i64) -> (i64)")'
        )
    for found in getattr(annotation, "__metadata__", ()):
        if isinstance(found, Type | Reference):
            return found
        if isinstance(found, str):
            named = _named(found)
            if named is None:
                raise HostError(f"{what} is annotated as {found!r}; there is no such type")
            return named
    if isinstance(annotation, Type | Reference):
        return annotation
    plain = _PLAIN.get(annotation) if isinstance(annotation, type) else None
    found_type = plain or _reference(annotation)
    if found_type is None:
        shown = getattr(annotation, "__name__", annotation)
        raise HostError(f"{what} is {shown}; one of {_ALLOWED} is expected")
    return found_type


def _reference(annotation: object) -> ValueType | None:
    """The reference type of an annotation without a name of a type; None if it has none."""
    if annotation is object or annotation is Any:
        return ANYREF
    parts, origin = typing.get_args(annotation), typing.get_origin(annotation)
    alias = getattr(origin, "__value__", None)
    if alias is not None:  # a `type` statement, as that of NDArray since NumPy 2.5
        return _reference(alias[parts])
    if origin in (Union, UnionType):  # `... | None`: every type has null
        others = [part for part in parts if part is not type(None)]
        is_one = len(others) == 1 and len(others) < len(parts)
        found = _type(others[0], "it") if is_one else None
        return found if isinstance(found, Reference) else None
    for part in parts:  # numpy.ndarray[shape, numpy.dtype[scalar]]
        scalars = typing.get_args(part)
        name = getattr(typing.get_origin(part), "__name__", "")
        if name == "dtype" and len(scalars) == 1:
            return _OF_DTYPE.get(getattr(scalars[0], "__name__", ""))
    return None


def _named(name: str) -> ValueType | None:
    """The type of a name: one that every program has, or one that the program has to declare."""
    known = _KNOWN.get(name)
    if known is not None:
        return known
    own = name
    while own.endswith("[]"):
        own = own.removesuffix("[]")
    is_fit = is_type_name(own) and _NO_STRUCT.fullmatch(own) is None
    return Reference(_UNNUMBERED, name) if is_fit else None


def _check_count(
    function: Callable[..., object], name: str, signature: Signature, context: Context
) -> None:
    """Check that the function accepts as many arguments as the signature has."""
    try:
        form = inspect.signature(function)
    except (TypeError, ValueError):
        return
    count = len(signature.parameters) + (context is not Context.NONE)
    try:
        form.bind(*range(count))
    except TypeError as error:
        raise HostError(
            f"host function {name} is to be {signature}, but its function is {name}{form}: {error}"
        ) from None


def parse_signature(text: str) -> Signature:
    """The signature that a text such as "(i64 f64) -> (i64)" states. Raises HostError."""
    left, arrow, right = text.partition("->")
    try:
        parameters, results = _types(left), _types(right if arrow else "()")
    except FerryError as error:
        raise HostError(
            f'signature {text!r}: {error}; such as "(i64 f64) -> (i64)" is expected'
        ) from None
    return Signature(parameters, results)


def _types(text: str) -> tuple[ValueType, ...]:
    text = text.strip()
    if not (text.startswith("(") and text.endswith(")")):
        raise HostError(f"{text!r} has no parentheses")
    found = []
    for name in text[1:-1].replace(",", " ").split():
        t = _named(name)
        if t is None:
            raise HostError(f"there is no type {name!r}")
        found.append(t)
    return tuple(found)
