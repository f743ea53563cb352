# SPDX-License-Identifier: Apache-2.0
"""Runs a Python twin: `drive.py [--warm N,...] TWIN SIZE...` prints the seconds of its work, its
result and, if it was run with small sizes first, the seconds of that."""

from __future__ import annotations

import importlib.util
import sys
import time
from types import ModuleType


def main() -> None:
    """Run the twin named first with the sizes that follow."""
    arguments = sys.argv[1:]
    warm = None
    if arguments[0] == "--warm":
        warm = [int(text) for text in arguments[1].split(",")]
        del arguments[:2]
    work = _loaded(arguments[0]).work
    sizes = [int(text) for text in arguments[1:]]
    warming = None
    if warm is not None:
        start = time.perf_counter()
        work(*warm)
        warming = time.perf_counter() - start
    start = time.perf_counter()
    result = work(*sizes)
    seconds = time.perf_counter() - start
    print(f"{seconds:.9f} {result!r}", *([] if warming is None else [f"{warming:.9f}"]))


def _loaded(path: str) -> ModuleType:
    """The twin as a module that `sys.modules` knows, without which Numba cannot compile
    recursion."""
    spec = importlib.util.spec_from_file_location("twin", path)
    if spec is None or spec.loader is None:
        sys.exit(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["twin"] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
