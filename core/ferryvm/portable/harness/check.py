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
    inputs_of,
    read_manifest,
    report,
    results_of,
)


class Function:
    """A function of C at an address."""

    def __init__(self, function: Any, manifest: Any) -> None:
        self.function, self.manifest = function, manifest
        self.names = [each["name"] for each in inputs_of(manifest)]
        self.results = results_of(manifest)
        self.returned = [each["name"] for each in arguments_of(manifest, "returned")]
        function.restype = None
        if manifest.get("status") is not None:
            function.restype = ctypes.c_int32
        for each in arguments_of(manifest, "returned"):
            function.restype = SCALARS[each["type"]]

    def call(self, arguments: list[Any]) -> tuple[int, list[Any]]:
        """The status and the results of a call."""
        named = dict(zip(self.names, arguments, strict=True))
        results = {each["name"]: SCALARS[each["type"]]() for each in self.results}
        given: list[Any] = []
        for each in self.manifest["arguments"]:
            match each["kind"]:
                case "array":
                    given.append(ctypes.c_void_p(named[each["name"]].address))
                case "length":
                    given.append(SCALARS[each["type"]](named[each["of"]].length))
                case "result":
                    given.append(ctypes.byref(results[each["name"]]))
                case "scalar":
                    given.append(named[each["name"]])
        status = self.function(*given)
        for name in self.returned:
            results[name].value, status = status, 0
        return status or 0, [*results.values()]


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
