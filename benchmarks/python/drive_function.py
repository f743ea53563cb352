# SPDX-License-Identifier: Apache-2.0
"""Runs a Python twin with `ferryvm.function`:
`python -m benchmarks.python.drive_function TWIN SIZE...`.

Prints the seconds of a call when all code has been compiled, its result, and how much longer the
first call of the process took.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import ferryvm
from benchmarks.python.item import loaded
from ferryvm.errors import FerryError


def main(arguments: list[str]) -> None:
    """Run the twin named first with the sizes that follow."""
    work = ferryvm.function(loaded(Path(arguments[0])).work)
    sizes = [int(text) for text in arguments[1:]]
    times, result = [], None
    for _ in range(2):
        began = time.perf_counter()
        result = work(*sizes)
        times.append(time.perf_counter() - began)
    if "CPython" in str(work.explain()):
        sys.exit(str(work.explain()))
    first, later = times
    print(f"{later:.9f} {result!r} {max(first - later, 0.0):.9f}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except FerryError as error:
        sys.exit(str(error))
