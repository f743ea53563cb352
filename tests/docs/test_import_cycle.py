# SPDX-License-Identifier: Apache-2.0
"""docs/architecture.md says that imports go one way: no modules import each other in a circle.

Imports inside functions and those for types alone count too: a reader follows them like others.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from .source import nodes

ROOT = Path(__file__).resolve().parents[2]
Graph = dict[str, set[str]]
"""The modules that each module imports, of one source root."""

KNOWN: dict[frozenset[str], str] = {}
"""Circles that remain, each with its reason: none. One that is dissolved leaves this table."""


def modules(root: Path) -> dict[str, Path]:
    """The files of a package by the names of their modules."""
    found = {}
    for file in root.rglob("*.py"):
        parts = file.relative_to(root.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports(root: Path) -> Graph:
    """What each module of a package imports of it, wherever in the module."""
    found, graph = modules(root), Graph()
    for name, file in found.items():
        names = set()
        for node in nodes(file):
            match node:
                case ast.Import(names=aliases):
                    names |= {alias.name for alias in aliases}
                case ast.ImportFrom(module=str(module), names=aliases, level=0):
                    members = {f"{module}.{alias.name}" for alias in aliases}
                    names |= (members & found.keys()) or {module}
        graph[name] = (names & found.keys()) - {name}
    return graph


def circles(graph: Graph) -> set[frozenset[str]]:
    """The largest sets of modules each of which leads to each other one."""
    reached = {name: reachable(graph, name) for name in graph}
    return {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in graph
        if name in reached[name]
    }


def reachable(graph: Graph, name: str) -> set[str]:
    """The modules that imports lead to from one."""
    seen: set[str] = set()
    left = [name]
    while left:
        new = graph[left.pop()] - seen
        seen |= new
        left += new
    return seen


@pytest.mark.parametrize("root", ["core/ferryvm", "backends/ferryvm_backends"])
def test_modules_import_each_other_in_no_circle_but_those_reviewed(root: str) -> None:
    package = root.rpartition("/")[2]
    known = {circle for circle in KNOWN if all(name.split(".")[0] == package for name in circle)}
    assert circles(imports(ROOT / root)) == known
    assert all(KNOWN.values())


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a", "c"}}
    assert circles(graph) == {frozenset({"b", "c"})}
