# SPDX-License-Identifier: Apache-2.0
"""Data-parallel programs as functions of an item, in Python, and how they are mapped.

The functions are in benchmarks/programs/parallel. This module imports nothing of ferryvm: a Python
with Numba loads it, too.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

ITEM = "item"
"""The name of the function."""


@dataclasses.dataclass(frozen=True)
class Items:
    """What is mapped."""

    elements: tuple[Any, ...]
    """Arrays and ranges whose elements are the first arguments of the function."""
    arguments: dict[str, Any]
    """The other arguments, which are the same for all items."""
    outs: tuple[int, ...]
    """The positions of the arrays for results among the arguments of the program; none if the
    function stores them."""


def _rows(a: tuple[Any, ...]) -> range:
    return range(a[0])


def _square(a: tuple[Any, ...]) -> range:
    return range(a[0] * a[0])


OF: Mapping[str, Callable[[tuple[Any, ...]], Items]] = {
    "daxpy": lambda a: Items((a[2], a[3]), {"a": a[1]}, (4,)),
    "blackscholes": lambda a: Items(a[3:6], {"rate": a[1], "volatility": a[2]}, (6, 7)),
    "nbody": lambda a: Items(
        (_rows(a),), {"x": a[2], "y": a[3], "z": a[4], "mass": a[5]}, (6, 7, 8)
    ),
    "dft": lambda a: Items((_rows(a),), {"re": a[1], "im": a[2]}, (3, 4)),
    "mandelbrot": lambda a: Items((_square(a),), {"size": a[0], "most": a[1]}, (2,)),
    "kmeans": lambda a: Items((a[2], a[3]), {"cx": a[4], "cy": a[5]}, (6,)),
    "hilbert": lambda a: Items((_rows(a),), {"size": a[0], "matrix": a[1]}, ()),
    "spectralnorm": lambda a: Items((_rows(a),), {"v": a[1]}, (2,)),
}
"""What is mapped for the arguments of a program, by its name."""


def loaded(path: Path) -> ModuleType:
    """The module of a file, which `sys.modules` knows, without which Numba cannot compile
    recursion."""
    name = f"twin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
