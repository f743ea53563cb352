# SPDX-License-Identifier: Apache-2.0
"""Wrong backends as installed plugins, for commands that load backends in another process."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

SOURCE = Path(__file__).with_name("faulty.py")


def install(folder: Path, name: str, backend: str) -> None:
    """A distribution in a folder for sys.path, as pip would install it.

    `backend`: lines that end with an expression for the backend, after `import` of all of
    faulty.py.
    """
    folder.mkdir(exist_ok=True)
    shutil.copy(SOURCE, folder / "faulty_backends.py")
    *lines, last = textwrap.dedent(backend).strip().splitlines()
    text = "\n".join(
        (
            "import os, signal, sys, time",
            "from faulty_backends import *",
            "from ferryvm.hooks import BackendEntry, hookimpl",
            *lines,
            "def load():",
            f"    backend = {last}",
            f"    backend.name = {name!r}",
            "    return backend",
            "@hookimpl",
            "def ferryvm_backends():",
            f"    return [BackendEntry({name!r}, load)]",
        )
    )
    (folder / f"{name}_plugin.py").write_text(text + "\n", encoding="utf-8")
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[ferryvm]\n{name} = {name}_plugin\n")
