# SPDX-License-Identifier: Apache-2.0
"""docs/architecture.md says that imports go one way: no modules import each other in a circle.

Imports inside functions and those for types alone count too: a reader follows them like others.
"""

from __future__ import annotations

import grimp
import pytest

Graph = dict[str, set[str]]
"""The modules that each module imports, of one source root."""

KNOWN: dict[frozenset[str], str] = {}
"""Circles that remain, each with its reason: none. One that is dissolved leaves this table."""


def imports(package: str) -> Graph:
    """The imports of a package's modules from each other, wherever in the module."""
    graph = grimp.build_graph(package, cache_dir=None)
    return {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}


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


@pytest.mark.parametrize("package", ["ferryvm", "ferryvm_backends"])
def test_modules_import_each_other_in_no_circle_but_those_reviewed(package: str) -> None:
    known = {circle for circle in KNOWN if all(name.split(".")[0] == package for name in circle)}
    assert circles(imports(package)) == known
    assert all(KNOWN.values())


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a", "c"}}
    assert circles(graph) == {frozenset({"b", "c"})}
