# SPDX-License-Identifier: Apache-2.0
"""The child that tries golden vectors: python -m ferryvm.portable.imported.prover FOLDER DEVICE.

It says which vector it tries before it does, so its parent knows the one that ended it. Its output:

    try 1 / try 2 / fault 2: result is 3, expected 4      a fault
    try 1 / ... / passed 60                                none
    refused: there is no C compiler                        code that does not load
"""

from __future__ import annotations

import sys
from pathlib import Path

from ferryvm.portable.harness.golden import fault, in_time, read_manifest, read_vectors
from ferryvm.portable.imported.loader import LoadError, loader


def main(folder: Path, device: str) -> None:
    """Try the vectors of a folder until one fails."""
    manifest = read_manifest(folder)
    try:
        call = loader(manifest["target"]).load(folder, manifest, device)
        tried = 0
        for vector in read_vectors(folder / manifest["vectors"]["file"], manifest["entry"]):
            print(f"try {vector.number}", flush=True)
            found = in_time(lambda: fault(call, manifest, vector), vector.number)  # noqa: B023 - it is called at once
            if found is not None:
                print(f"fault {vector.number}: {found}")
                return
            tried += 1
    except LoadError as error:
        print(f"refused: {error}")
    except (ValueError, StopIteration) as error:
        print(f"refused: {error or 'the vectors end early'}")
    else:
        print(f"passed {tried}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
