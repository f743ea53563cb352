# SPDX-License-Identifier: Apache-2.0
"""Functions that a text defines, and the names by which messages and tracebacks refer to the text:
its function, and the line that called ferryvm with it."""

from __future__ import annotations

import ast
import itertools
import linecache
import sys
import textwrap
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ferryvm.python.fault import UnsupportedError


def defined(text: str, names: Mapping[str, Any] | None = None) -> types.FunctionType:
    """The last function that a text defines. `names`: of its module."""
    text = textwrap.dedent(text).strip("\n")
    place = _caller()
    tree = ast.parse(text, f"<text, {place}>")
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if not functions:
        raise UnsupportedError("the text defines no function; it must begin with def")
    file = _named(text, f"text of {functions[-1]}, {place}")
    names_of_module: dict[str, Any] = {"__name__": file, **(names or {})}
    exec(compile(tree, file, "exec"), names_of_module)  # noqa: S102  # what the caller wrote
    found = names_of_module[functions[-1]]
    assert isinstance(found, types.FunctionType)
    return found


def _named(text: str, name: str) -> str:
    """The file name under which Python finds the lines of a text: that name, with a number if
    another text has it."""
    lines = text.splitlines(keepends=True)
    for number in itertools.count(1):
        file = f"<{name}>" if number == 1 else f"<{name}, {number}>"
        linecache.cache.setdefault(file, (len(text), None, lines, file))
        if linecache.getlines(file) == lines:
            return file
    raise AssertionError("a number is free")


def _caller() -> str:
    """The file, without folders, and the line of the innermost call from outside of ferryvm."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("ferryvm."):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
