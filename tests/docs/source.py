# SPDX-License-Identifier: Apache-2.0
"""Parsed sources, each parsed once for all tests of a process that read them."""

from __future__ import annotations

import ast
import functools
from pathlib import Path


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a module. It is shared, so it must not be changed."""
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module's syntax tree."""
    return tuple(ast.walk(parsed(path)))
