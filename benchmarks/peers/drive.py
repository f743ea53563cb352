# SPDX-License-Identifier: Apache-2.0
"""Runs a Python twin: `drive.py [--processor] [--warm N,...] TWIN SIZE...` prints the seconds of
its work (of the processor's time, if asked), its result and, if it was run with small sizes first,
the seconds of that."""

from __future__ import annotations

import importlib.util
import sys
import time
from types import ModuleType


def main() -> None:
    """Run the twin named first with the sizes that follow."""
    arguments = sys.argv[1:]
    clock = time.perf_counter
    if arguments[0] == "--processor":
        clock = time.process_time
        del arguments[0]
    warm = None
    if arguments[0] == "--warm":
        warm = [int(text) for text in arguments[1].split(",")]
        del arguments[:2]
    work = _loaded(arguments[0]).work
    sizes = [int(text) for text in arguments[1:]]
    warming = None
    if warm is not None:
        start = clock()
        work(*warm)
        warming = clock() - start
    start = clock()
    result = work(*sizes)
    seconds = clock() - start
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
