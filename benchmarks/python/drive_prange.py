# SPDX-License-Identifier: Apache-2.0
"""Maps with Numba: `drive_prange.py PROGRAM SIZE` answers each line on stdin with one on stdout.

`run`: the seconds of the work. `results PREFIX`: writes the arrays of results to PREFIX0.npy and so on.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Answer until stdin ends."""
    sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]  # the package imports ferryvm
    import numpy
    from item import OF, loaded  # type: ignore[import-not-found]  # of this folder

    name, size = sys.argv[1:]
    program = loaded(ROOT / "benchmarks" / "parallel" / "program.py")
    work = program.BY_NAME[name].make(int(size))
    items = OF[name](work.arguments)
    outs = tuple(work.arguments[position] for position in items.outs)
    call = _parallel(loaded(program.BY_NAME[name].path("py")), items, len(outs))
    given = (
        *(one for one in items.elements if not isinstance(one, range)),
        *items.arguments.values(),
    )
    for line in sys.stdin:
        command, *rest = line.split()
        if command == "run":
            began = time.perf_counter()
            call(len(items.elements[0]), *given, *outs)
            print(f"{time.perf_counter() - began:.9f}", flush=True)
        else:
            for number, position in enumerate(work.results):
                numpy.save(f"{rest[0]}{number}.npy", work.arguments[position])
            print("saved", flush=True)


def _parallel(module: Any, items: Any, results: int) -> Callable[..., None]:
    """A loop over all items, on all cores."""
    import numba  # type: ignore[import-not-found]  # in a Python of its own

    for name, value in vars(module).copy().items():
        if callable(value) and getattr(value, "__module__", "") == module.__name__:
            setattr(module, name, numba.njit(value))
    arrays = [f"e{n}" for n, one in enumerate(items.elements) if not isinstance(one, range)]
    elements = [f"e{n}[i]" if f"e{n}" in arrays else "i" for n in range(len(items.elements))]
    outs = [f"out{number}" for number in range(results)]
    parameters = ", ".join([*arrays, *items.arguments, *outs])
    targets = ", ".join(f"{out}[i]" for out in outs) or "_"
    text = f"""
def work(count, {parameters}):
    for i in prange(count):
        {targets} = item({", ".join([*elements, *items.arguments])})
"""
    scope: dict[str, Any] = {"item": module.item, "prange": numba.prange}
    exec(compile(text, "<prange>", "exec"), scope)  # noqa: S102  # made of names in this repository
    found: Callable[..., None] = numba.njit(parallel=True)(scope["work"])
    return found


if __name__ == "__main__":
    main()
