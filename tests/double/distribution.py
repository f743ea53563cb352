# SPDX-License-Identifier: Apache-2.0
"""Distributions with plugins, as pip would install them, in a folder for sys.path.

    plant(folder, "odd", source)                a plugin with that source
    plant(folder, "odd", module="double.campaign")      one that is a module of this room

The room goes along as the package `double`: a plugin's source may import of it.
"""

from __future__ import annotations

import os
import shutil
import textwrap
from pathlib import Path

from ferryvm.cache import key_path

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
    folder: Path,
    distribution: str,
    source: str = "",
    *,
    entry: str = "",
    version: str = "0.7",
    module: str = "",
) -> None:
    """A distribution whose entry point (of its name, unless told otherwise) is a module."""
    folder.mkdir(parents=True, exist_ok=True)
    if not module:
        module = f"{distribution.replace('-', '_')}_plugin"
        (folder / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
    room = Path(__file__).parent
    shutil.copytree(room, folder / room.name, dirs_exist_ok=True, ignore=_ignored)
    info = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    points = f"[ferryvm]\n{entry or distribution} = {module}\n"
    (info / "entry_points.txt").write_text(points, encoding="utf-8")


_ignored = shutil.ignore_patterns("__pycache__")


def python_path(folder: Path) -> str:
    """The PYTHONPATH with which processes see what was planted in a folder."""
    earlier = os.environ.get("PYTHONPATH")
    return f"{folder}{os.pathsep}{earlier}" if earlier else str(folder)


def plant_backend(folder: Path, name: str, lines: str) -> None:
    """A distribution with a backend. `lines` end with an expression for it, after the import of all
    that conformance.py has."""
    *before, last = textwrap.dedent(lines).strip().splitlines()
    source = (
        "import os, signal, sys, time",
        "from double.conformance import *",
        "from ferryvm.hooks import BackendEntry, hookimpl",
        *before,
        "def load():",
        f"    backend = {last}",
        f"    backend.name = {name!r}",
        "    return backend",
        "@hookimpl",
        "def ferryvm_backends():",
        f"    return [BackendEntry({name!r}, load)]",
        "",
    )
    plant(folder, name, "\n".join(source))


def plant_campaign(folder: Path) -> None:
    """The backends and compilers that go wrong on some programs."""
    plant(folder, "bad", module="double.campaign")
    plant(folder, "bad-compilers", entry="bad_compilers", module="double.campaign_compiler")


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


def state_of_its_own(folder: Path) -> str:
    """A state directory that holds nothing but the secret of the cache that all tests share: with
    another one commands would refuse its entries, and replace them by theirs."""
    secret = folder / "ferryvm" / key_path().name
    if not secret.exists():
        secret.parent.mkdir(mode=0o700, parents=True)
        shutil.copy2(key_path(), secret)
    return str(folder)
