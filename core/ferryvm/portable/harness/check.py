# SPDX-License-Identifier: Apache-2.0
"""Checks an exported function with its golden vectors: check.py [LIBRARY [FOLDER]].

It needs no more than the standard library of Python 3.10. The status is 1 if a vector fails, 2 if
the files are damaged.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

from ferryvm.portable.harness.golden import (
    SCALARS,
    arguments_of,
    passed,
    read_manifest,
    report,
)


class Function:
    """A function of C at an address."""

    def __init__(self, function: Any, manifest: Any) -> None:
        self.function, self.manifest = function, manifest
        self.returned = [each["name"] for each in arguments_of(manifest, "returned")]
        function.restype = None
        if manifest.get("status") is not None:
            function.restype = ctypes.c_int32
        for each in arguments_of(manifest, "returned"):
            function.restype = SCALARS[each["type"]]

    def call(self, arguments: list[Any]) -> tuple[int, list[Any]]:
        """The status and the results of a call."""
        made = passed(self.manifest, arguments, 0, pointer, lambda number: number, False)
        status = self.function(*made.given)
        for name in self.returned:
            made.results[name].value, status = status, 0
        return status or 0, [*made.results.values()]


def pointer(address: int, _: int) -> Any:
    """The argument of an array: where its elements are."""
    return ctypes.c_void_p(address)


def check(library: Path, folder: Path) -> int:
    """Check the function in a library; 1 if a vector fails."""
    manifest = read_manifest(folder)
    function = getattr(ctypes.CDLL(str(library.absolute())), manifest["entry"])
    return report(folder, manifest, Function(function, manifest).call, "Python")


def main() -> int:
    """Check what the command line names; by default the folder of this file."""
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent
    libraries = [Path(sys.argv[1])] if len(sys.argv) > 1 else sorted(folder.glob("lib*.so"))
    if not libraries:
        print("check.py: no library here; build it first: make", file=sys.stderr)
        return 2
    try:
        return check(libraries[0], folder)
    except (OSError, ValueError, KeyError, StopIteration) as error:
        print(f"check.py: {type(error).__name__}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
