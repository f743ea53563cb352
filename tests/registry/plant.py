# SPDX-License-Identifier: Apache-2.0
"""Distributions with plugins, as pip would install them, in a folder for sys.path."""

from __future__ import annotations

import textwrap
from pathlib import Path

GOOD = """
from ferryvm.backend import Interpreter
from ferryvm.hooks import BackendEntry, hookimpl

class Small(Interpreter):
    name, version, protocol = "{name}", "2.5", 1
    def prepare(self, program):
        raise NotImplementedError

@hookimpl
def ferryvm_backends():
    return [BackendEntry("{name}", Small)]
"""
"""A plugin with one backend that can be listed and not run."""


def plant(
    folder: Path, distribution: str, source: str, *, entry: str = "", version: str = "0.7"
) -> None:
    """A distribution whose entry point (of its name, unless told otherwise) is a module."""
    module = f"{distribution.replace('-', '_')}_plugin"
    (folder / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
    info = folder / f"{distribution}-{version}.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    points = f"[ferryvm]\n{entry or distribution} = {module}\n"
    (info / "entry_points.txt").write_text(points, encoding="utf-8")


def compiler(name: str, body: str) -> str:
    """The source of a plugin with a compiler; `body`: of its class, after name and version."""
    indented = textwrap.indent(textwrap.dedent(body), "    ")
    return (
        "from ferryvm.backend import *\n"
        "from ferryvm.hooks import BackendEntry, hookimpl\n"
        "class Faulty(Compiler):\n"
        f"    name, version = {name!r}, '1'\n"
        f"{indented}\n"
        "@hookimpl\n"
        "def ferryvm_backends():\n"
        f"    return [BackendEntry({name!r}, Faulty)]\n"
    )
