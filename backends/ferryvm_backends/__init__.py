# SPDX-License-Identifier: Apache-2.0
"""The in-tree backends: every folder here without a leading underscore is one.

A backend's package exports `BACKEND`, a `ferryvm.backend.Backend`. It is imported at its first use,
so that the libraries of one backend are not loaded for another. A backend with a module `command`
provides the `ferry` command of its own name: `COMMAND` there, of click.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ferryvm.backend import Backend
from ferryvm.hooks import BackendEntry, CommandEntry

if TYPE_CHECKING:
    import click


def _load(name: str) -> Backend:
    backend: Backend = importlib.import_module(f"{__name__}.{name}").BACKEND
    return backend


def _load_command(name: str) -> click.Command:
    command: click.Command = importlib.import_module(f"{__name__}.{name}.command").COMMAND
    return command


def _folders() -> Iterator[str]:
    """Names of the backends. Raises OSError, which pkgutil would take for an empty folder."""
    for path in __path__:
        for name in sorted(os.listdir(path)):
            if not name.startswith("_") and os.path.isfile(os.path.join(path, name, "__init__.py")):
                yield name


def ferryvm_backends() -> list[BackendEntry]:
    """One entry a folder."""
    return [
        BackendEntry(name, lambda name=name: _load(name))  # type: ignore[misc]
        for name in _folders()
    ]


def ferryvm_commands() -> list[CommandEntry]:
    """One entry a folder that has a command."""
    return [
        CommandEntry(name, lambda name=name: _load_command(name))  # type: ignore[misc]
        for name in _folders()
        if any((Path(path) / name / "command.py").is_file() for path in __path__)
    ]
