# SPDX-License-Identifier: Apache-2.0
"""Compiled Python functions follow what they depend on: free names, helpers, defaults, sources."""

from __future__ import annotations

import importlib
import linecache
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferryvm

SETTINGS = types.ModuleType("settings")
SETTINGS.limit = 3  # type: ignore[attr-defined]  # a module that is made here
SHIFT = 0.0


def _plus_one(x):
    return x + 1


def _plus_two(x):
    return x + 2


def _helper(x, k=10, *, m=0):
    return x + k + m


def _limited(x):
    return x + SETTINGS.limit


def _called(x):
    return SETTINGS.step(x)


def _helped(x):
    return _helper(x)


def _defaulted(x, k=1):
    return x + k


def _shifted(x):
    return x * SHIFT


def _built_in(x):
    return abs(x)


def _patched(x):
    return _plus_one(x)


def _set(target: Any, name: str, value: object) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(target, name, value)


def _global(name: str, value: object) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setitem(globals(), name, value)


_CHANGES: list[tuple[Callable[..., Any], Callable[[pytest.MonkeyPatch], None]]] = [
    (_limited, _set(SETTINGS, "limit", 4)),
    (_called, _set(SETTINGS, "step", _plus_two)),
    (_helped, _set(_helper, "__defaults__", (20,))),
    (_helped, _set(_helper, "__kwdefaults__", {"m": 5})),
    (_helped, lambda patch: patch.setitem(_helper.__kwdefaults__, "m", 7)),
    (_helped, _global("_helper", _plus_two)),
    (_defaulted, _set(_defaulted, "__defaults__", (9,))),
    (_defaulted, _set(_defaulted, "__code__", (lambda x, k: x * 100).__code__)),
    (_shifted, _global("SHIFT", -0.0)),
    (_built_in, _global("abs", _plus_two)),
    (_patched, _set(_plus_one, "__code__", _plus_two.__code__)),
]


@pytest.mark.parametrize("number", range(len(_CHANGES)))
def test_a_change_of_what_code_depends_on_is_seen(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, change = _CHANGES[number]
    monkeypatch.setattr(SETTINGS, "step", _plus_one, raising=False)
    compiled = ferryvm.function(function)
    before = compiled(2)
    assert (before, ferryvm.map(compiled, np.array([2]))) == (function(2), function(2))
    change(monkeypatch)
    assert repr(function(2)) != repr(before)
    assert repr(compiled(2)) == repr(function(2))
    assert ferryvm.map(compiled, np.array([2])) == function(2)
    assert f"compiled {function.__name__} again " in str(compiled.explain())


def test_a_cell_that_changes_is_seen() -> None:
    def made() -> tuple[Any, Any]:
        step = 1

        def add(x):
            return x + step

        def change(value):
            nonlocal step
            step = value

        return add, change

    add, change = made()
    compiled = ferryvm.function(add)
    assert compiled(1) == 2
    change(0.5)
    assert compiled(1) == 1.5
    *_, note = str(compiled.explain()).splitlines()
    are = "step is an argument from now on"
    assert note == f"compiled add again once: step has changed; {are}"


def test_a_source_that_was_edited_is_not_compiled_for_old_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    path = tmp_path / "ferryvm_edited.py"
    path.write_text("K = 1\ndef f(x):\n    'text'\n    return x + K\n")
    module = importlib.import_module("ferryvm_edited")
    path.write_text("K = 1\ndef f(x):\n    'text'\n    return x + K + 1\n")
    with pytest.raises(ferryvm.UnsupportedError, match=r"source has changed .*; import its module"):
        ferryvm.function(module.f)(1)
    module = importlib.reload(module)
    assert ferryvm.function(module.f)(1) == 3
    monkeypatch.delitem(sys.modules, "ferryvm_edited")


def _cell(text: str, number: int, names: dict[str, Any]) -> None:
    """Run a cell as a notebook does."""
    file = f"<cell {number}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    exec(compile(text, file, "exec", dont_inherit=True), names)  # noqa: S102  # a test's own text


def test_a_function_that_a_notebook_cell_defines_again_is_the_new_one() -> None:
    names: dict[str, Any] = {"ferryvm": ferryvm}
    _cell("def g(x):\n    return x + 1\n", 1, names)
    _cell("@ferryvm.function\ndef f(x):\n    return g(x) * 2\n", 2, names)
    assert names["f"](1) == 4
    _cell("def g(x):\n    return x + 5\n", 3, names)
    assert names["f"](1) == 12
    _cell("@ferryvm.function\ndef f(x):\n    return g(x) * 3\n", 2, names)
    assert names["f"](1) == 18


def test_two_functions_of_one_name_and_place_are_two() -> None:
    def made(k: int) -> Any:
        return ferryvm.function(lambda x: x + k)

    assert [made(1)(1), made(2)(1), made(1)(1)] == [2, 3, 2]
