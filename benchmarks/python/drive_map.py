# SPDX-License-Identifier: Apache-2.0
"""Maps of a peer: `drive_map.py numba|jax|numexpr PROGRAM SIZE` answers each line on stdin with one
on stdout.

The first line tells if the peer can map the program: `ready`, or why not. `run`: the seconds of the
work. `processor`: the processor's time of this process so far. `results PREFIX`: writes the arrays
of results to PREFIX0.npy and so on.
"""

from __future__ import annotations

import os
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

    peer, name, size = sys.argv[1:]
    program = loaded(ROOT / "benchmarks" / "parallel" / "program.py")
    work = program.BY_NAME[name].make(int(size))
    items = OF[name](work.arguments)
    outs = tuple(work.arguments[position] for position in items.outs)
    try:
        call = _MAKERS[peer](loaded(program.BY_NAME[name].path("py")), items, outs)
    except (ImportError, NotImplementedError) as error:
        print(error, flush=True)
        return
    print("ready", flush=True)
    for line in sys.stdin:
        command, *rest = line.split()
        if command == "run":
            began = time.perf_counter()
            call()
            print(f"{time.perf_counter() - began:.9f}", flush=True)
        elif command == "processor":
            print(f"{time.process_time():.9f}", flush=True)
        else:
            for number, position in enumerate(work.results):
                numpy.save(f"{rest[0]}{number}.npy", work.arguments[position])
            print("saved", flush=True)


def _numba(module: Any, items: Any, into: tuple[Any, ...]) -> Callable[[], object]:
    """A loop over all items, on all cores."""
    import numba  # type: ignore[import-not-found]  # in a Python of its own

    for name, value in vars(module).copy().items():
        if callable(value) and getattr(value, "__module__", "") == module.__name__:
            setattr(module, name, numba.njit(value))
    arrays = [f"e{n}" for n, one in enumerate(items.elements) if not isinstance(one, range)]
    elements = [f"e{n}[i]" if f"e{n}" in arrays else "i" for n in range(len(items.elements))]
    outs = [f"out{number}" for number in range(len(into))]
    parameters = ", ".join([*arrays, *items.arguments, *outs])
    targets = ", ".join(f"{out}[i]" for out in outs) or "_"
    text = f"""
def work(count, {parameters}):
    for i in prange(count):
        {targets} = item({", ".join([*elements, *items.arguments])})
"""
    scope: dict[str, Any] = {"item": module.item, "prange": numba.prange}
    exec(compile(text, "<prange>", "exec"), scope)  # noqa: S102  # made of names in this repository
    work = numba.njit(parallel=True)(scope["work"])
    given = (
        *(one for one in items.elements if not isinstance(one, range)),
        *items.arguments.values(),
    )
    return lambda: work(len(items.elements[0]), *given, *into)


def _jax(module: Any, items: Any, into: tuple[Any, ...]) -> Callable[[], object]:
    """The function of an item by `vmap`, compiled; the result is copied to the host's array, as
    ours is in one."""
    # Processors with AVX alone have no fused multiply-add, which would give other bits.
    flags = "--xla_cpu_max_isa=AVX"
    os.environ.update(JAX_ENABLE_X64="1", JAX_PLATFORMS="cpu", XLA_FLAGS=flags)
    import jax  # type: ignore[import-not-found]  # in a Python of its own
    import numpy

    _only_daxpy(module, "traces neither loops over data nor conditions")
    mapped = jax.jit(jax.vmap(module.item, in_axes=(0, 0, None)))
    elements = [jax.numpy.asarray(each) for each in items.elements]

    def run() -> None:
        found = mapped(*elements, *items.arguments.values()).block_until_ready()
        into[0][...] = numpy.asarray(found)

    return run


def _numexpr(module: Any, items: Any, into: tuple[Any, ...]) -> Callable[[], object]:
    """The expression of the item, on all cores."""
    import numexpr  # type: ignore[import-not-found]  # in a Python of its own

    _only_daxpy(module, "has neither loops nor several results")
    x, y = items.elements
    names = {"x": x, "y": y, **items.arguments}
    return lambda: numexpr.evaluate("a * x + y", local_dict=names, out=into[0])


def _only_daxpy(module: Any, reason: str) -> None:
    if not module.__name__.endswith("daxpy"):
        raise NotImplementedError(f"it {reason}")


_MAKERS: dict[str, Callable[[Any, Any, tuple[Any, ...]], Callable[[], object]]] = {
    "numba": _numba,
    "jax": _jax,
    "numexpr": _numexpr,
}


if __name__ == "__main__":
    main()
