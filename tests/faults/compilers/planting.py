# SPDX-License-Identifier: Apache-2.0
"""A fault planted in a compiler: other source text in one place of one module.

Functions of a compiler are not wrapped, as meanings of instructions are: mistakes in passes stand
in the middle of them. So the module is compiled with one piece of its source replaced, and its
functions get the new code for as long as the fault is planted. Constants of the module change, too.

    with planted(fault):
        ...                     # every function of the module runs the faulty source
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import importlib
import inspect
import types
from collections.abc import Iterator
from pathlib import Path

from ferryvm.errors import FerryError


@dataclasses.dataclass(frozen=True)
class CompilerFault:
    """One fault and all that is known of it."""

    name: str
    what: str
    """What the faulty compiler does, in a sentence."""
    backend: str
    """The compiler whose code is looked at."""
    module: str
    old: str
    """Part of the source of that module, which is there once."""
    new: str
    """What stands in its place; as many lines."""
    in_loops: bool = False
    """True if it shows only where code is entered at a loop: the compiler makes code of each loop,
    in place of the whole program."""

    @property
    def place(self) -> str:
        """The module without its package."""
        return self.module.split(".", 1)[1]


def source_of(module: types.ModuleType) -> str:
    """The text of a module."""
    assert module.__file__ is not None
    return Path(module.__file__).read_text(encoding="utf-8")


@contextlib.contextmanager
def planted(fault: CompilerFault) -> Iterator[None]:
    """Have a module run with a fault. Raises FerryError where the source is another one now."""
    module = importlib.import_module(fault.module)
    source = source_of(module)
    if source.count(fault.old) != 1:
        raise FerryError(f"fault {fault.name}: {fault.module} does not have its text once")
    faulty = source.replace(fault.old, fault.new)
    code = compile(faulty, str(module.__file__), "exec")
    codes = {each.co_qualname: each for each in _codes(code)}
    functions = [each for each in _functions(module) if each.__qualname__ in codes]
    before = [each.__code__ for each in functions]
    constants = _changed(module, source, faulty)
    kept = {name: getattr(module, name) for name in constants}
    for function in functions:
        function.__code__ = codes[function.__qualname__]
    vars(module).update(constants)
    try:
        yield
    finally:
        vars(module).update(kept)
        for function, own in zip(functions, before, strict=True):
            function.__code__ = own


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """All code objects of a module, but for those inside of functions."""
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each
            if not each.co_flags & inspect.CO_OPTIMIZED:  # the body of a class
                yield from _codes(each)


def _functions(module: types.ModuleType) -> Iterator[types.FunctionType]:
    """The functions and methods that a module defines."""
    waiting: list[object] = [*vars(module).values()]
    while waiting:
        each = waiting.pop()
        if isinstance(each, type) and each.__module__ == module.__name__:
            waiting += vars(each).values()
        elif isinstance(each, property):
            waiting.append(each.fget)
        elif isinstance(each, functools.cached_property):
            waiting.append(each.func)
        elif isinstance(each, (staticmethod, classmethod)):
            waiting.append(each.__func__)
        elif hasattr(each, "__wrapped__"):
            waiting.append(each.__wrapped__)
        elif isinstance(each, types.FunctionType) and each.__module__ == module.__name__:
            yield each


def _constants(source: str) -> dict[str, str]:
    """The constants of a module's source, with what is assigned to them."""
    return {
        ast.unparse(each.targets[0]): ast.dump(each.value)
        for each in ast.parse(source).body
        if isinstance(each, ast.Assign)
    }


def _changed(module: types.ModuleType, source: str, faulty: str) -> dict[str, object]:
    """Constants that the module has otherwise with a fault."""
    right, wrong = _constants(source), _constants(faulty)
    names = [name for name in right if wrong.get(name) != right[name]]
    if not names:
        return {}
    made = {"__name__": module.__name__, "__file__": module.__file__}
    exec(faulty, made)  # noqa: S102 - the module's own source, but for the fault
    return {name: made[name] for name in names}
