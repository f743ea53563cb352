# SPDX-License-Identifier: Apache-2.0
"""Targets by name: each writes the files of a function in plain form, and says how they are
compiled.

A target is a package of its own with a function `PlainFunction -> Written`. It is imported when it
is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from importlib import resources
from typing import NamedTuple

from ferryvm.errors import UnknownNameError
from ferryvm.portable.interface import Interface
from ferryvm.portable.plain import PlainFunction


class Written(NamedTuple):
    """The files of a target, without vectors and manifest."""

    interface: Interface
    """The function as the target has it."""
    files: Mapping[str, str | bytes]
    """Texts, and content of binary files, by name."""
    build: Mapping[str, object]
    """The field `build` of the manifest."""


Target = Callable[[PlainFunction], Written]

TARGETS = {
    "c": "ferryvm.portable.c.target:write_c",
    "llvm": "ferryvm.portable.llvm.target:write_llvm",
    "opencl": "ferryvm.portable.opencl.target:write_opencl",
    "ptx": "ferryvm.portable.ptx.target:write_ptx",
    "spirv": "ferryvm.portable.spirv.target:write_spirv",
    "wasm": "ferryvm.portable.wasm.target:write_wasm",
}
"""The function of each target."""

OF_ITEMS = frozenset({"opencl", "ptx", "spirv"})
"""Targets that run the items of a launch by themselves, and so take one of them."""

OF_GRIDS = frozenset({"opencl"})
"""Targets of items that know several indices of an item, and the numbers of items. All targets of
items run the members of a group by themselves, too."""


OF_SIZES = frozenset({"c", "llvm", "opencl", "wasm"})
"""Targets in which sizes of groups may be arguments. In the others they are constants."""


def target(name: str) -> Target:
    """The target of a name. Raises UnknownNameError."""
    home = TARGETS.get(name)
    if home is None:
        raise UnknownNameError("target", name, TARGETS)
    module, _, function = home.partition(":")
    found: Target = getattr(importlib.import_module(module), function)
    return found


def harness(name: str) -> str:
    """A harness that reads the manifest."""
    folder = resources.files("ferryvm.portable.harness")
    text = (folder / name).read_text(encoding="utf-8")
    return text.replace("from ferryvm.portable.harness.golden import", "from golden import")
