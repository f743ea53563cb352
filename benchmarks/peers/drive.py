# SPDX-License-Identifier: Apache-2.0
"""Runs a Python twin once: `drive.py TWIN SIZE...` prints the seconds of its work and its result."""

from __future__ import annotations

import runpy
import sys
import time


def main() -> None:
    """Run the twin named first with the sizes that follow."""
    work = runpy.run_path(sys.argv[1])["work"]
    sizes = [int(text) for text in sys.argv[2:]]
    start = time.perf_counter()
    result = work(*sizes)
    seconds = time.perf_counter() - start
    print(f"{seconds:.9f} {result!r}")


if __name__ == "__main__":
    main()
