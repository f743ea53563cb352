# SPDX-License-Identifier: Apache-2.0
"""Host functions named on a command line, as `MODULE:NAME` or `FILE.py:NAME`.

The module is imported with the current folder first on the path, a file with its own folder, so its
imports are found next to it. NAME is a HostFunction, an annotated function, or a list or mapping of
them. An error is one line that begins with the given text.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import cast

from ferryvm.engine.host_declaration import Hosts, offered
from ferryvm.errors import FerryError, suggestion
from ferryvm.foreign import ForeignError, contained
from ferryvm.host_registry import HostRegistry
from ferryvm.machine.host import HostError, HostFunction


def add(registry: HostRegistry, texts: Iterable[str]) -> dict[str, HostFunction]:
    """Offer the host functions that texts name; these functions by name. Raises HostError."""
    added: dict[str, HostFunction] = {}
    for text in texts:
        value = _named(text)
        hosts = cast("Hosts", [value] if callable(value) else value)
        try:
            functions = offered(hosts)
        except FerryError as error:
            raise HostError(f"--hosts {text}: {error}") from error
        registry.add(functions, f"--hosts {text}")
        added.update(functions)
    return added


def _named(text: str) -> object:
    """The object that a text names."""
    where, colon, name = text.rpartition(":")
    if not (colon and where and name):
        raise HostError(
            f"--hosts {text}: MODULE:NAME, FILE.py:NAME or a folder with a kernel is expected"
        )
    module = _module(text, where)
    if not hasattr(module, name):
        known = [one for one in vars(module) if not one.startswith("_")]
        raise HostError(f"--hosts {text}: {where} has no {name!r}{suggestion(name, known)}")
    return getattr(module, name)


def _module(text: str, where: str) -> ModuleType:
    path = Path(where) if where.endswith(".py") else None
    if path is not None and not path.is_file():
        raise HostError(f"--hosts {text}: there is no file {where}")
    folder = str(path.resolve().parent) if path else os.getcwd()
    doing = f"importing {where}"
    sys.path.insert(0, folder)
    try:
        with contained(doing):
            return importlib.import_module(where) if path is None else _of_file(path)
    except ForeignError as error:
        cause = error.__cause__
        missing = cause.name if isinstance(cause, ModuleNotFoundError) else None
        if missing and f"{where}.".startswith(f"{missing}."):
            message = f"no module {missing!r} is installed or in the current folder"
            raise HostError(f"--hosts {text}: {message}") from error
        raise HostError(f"--hosts {text}: {doing} failed: {error}") from error
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:  # for its later imports; it takes no name of ours
            sys.path.append(folder)


def _of_file(path: Path) -> ModuleType:
    """The module in a file, which runs once in a process."""
    name = str(path.resolve())
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None  # its suffix is .py
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
