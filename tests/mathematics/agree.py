# SPDX-License-Identifier: Apache-2.0
"""Compare the bits of mathematical functions across backends.

    python -m tests.mathematics.agree [NAME...] [--backends llvm,opencl] [--device gpu]
        [--operands 10000000]

The same pseudo-random operands (`tests.mathematics.hard`) pass through a launch on each backend.
The first operands with different results are named, and each backend's digest of its results is
printed, so that machines can be compared. `vliw`, `switch` and `reference` are slow and have fewer
operands. A finished function is noted in a file, so that a run that was stopped goes on; `--fresh`
begins again.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.engine.mixing import placements
from tests.mathematics.hard import Words, operands
from tests.mathematics.progress import Progress

import ferryvm
from ferryvm.engine import Engine
from ferryvm.engine.instance import Instance
from ferryvm.engine.mixed import Mixed
from ferryvm.errors import FerryError
from ferryvm.ir.c import C11
from ferryvm.ir.c.expression import function_name
from ferryvm.ir.c.function_helper import function_definitions
from ferryvm.isa.mathematics import FUNCTIONS
from ferryvm.isa.pure_function import PureFunction

PART = 1 << 20
"""Operands of a launch."""

MOST = {"switch": 1_000_000, "vliw": 1_000_000, "reference": 2_000}
"""Operands of a function on slow backends."""

_FEW = 10_000
"""So many operands may be done before a backend has code."""

_TEXT = """
(define (item (i i64) {parameters} (to (array {t})))
  (array-set! to i ({function} {elements})))
(define (work (n i64) {parameters} (to (array {t})))
  (for-each-item n (item {names} to)))
"""


class NotCompiledError(Exception):
    """A compiler has not made code for the launch: the interpreter has run it."""


@dataclasses.dataclass
class Place:
    """A function on a backend."""

    function: PureFunction
    backend: str
    instance: Instance
    digest: Any = dataclasses.field(default_factory=hashlib.sha256)
    done: int = 0

    @classmethod
    def of(cls, function: PureFunction, backend: str, device: str = "") -> Place:
        """The function on the backend of that name."""
        t, names = function.result, "xy"[: len(function.parameters)]
        text = _TEXT.format(
            t=t,
            function=function,
            names=" ".join(names),
            parameters=" ".join(f"({name} (array {t}))" for name in names),
            elements=" ".join(f"(array-ref {name} i)" for name in names),
        )
        on = Engine(backend, device=device if backend == "opencl" else "")
        return cls(function, backend, on.instantiate(ferryvm.compile(text)))

    def results(self, words: Sequence[Words]) -> NDArray[Any]:
        """The bits of the results. Raises NotCompiledError: a large launch has to run on the
        backend."""
        wide = self.function.result.bits == 64
        kind, word = (np.float64, np.uint64) if wide else (np.float32, np.uint32)
        arrays = [each.astype(word).view(kind) for each in words]
        to = np.zeros(len(words[0]), kind)
        self.instance.exports["work"](len(to), *arrays, to)
        self.done += len(to)
        self._check()
        found = to.view(word)
        self.digest.update(found.tobytes())
        return found

    def _check(self) -> None:
        execution = self.instance.idle_execution()
        if self.done < _FEW or not isinstance(execution.engine.backend, Mixed):
            return  # an interpreter
        launches = [each for each in placements(execution) if each.kind == "launch"]
        if not any(backend == self.backend for each in launches for backend, _ in each.activity()):
            raise NotCompiledError(f"{self.backend} has not compiled the launch of {self.function}")
        runs = [run for each in launches for run in each.launches]
        if self.done > PART / 2 and runs and sum(run.items for run in runs) < self.done / 2:
            reasons = [run.stopped for run in runs if run.stopped]
            why = "; ".join(reasons) or "they ran in order, as so few do not pay for threads"
            raise NotCompiledError(f"{self.backend} leaves items of {self.function}: {why}")


def disagreement(
    places: Sequence[Place], count: int, note: Callable[[int], None] = lambda done: None
) -> str | None:
    """The first operands whose results differ between backends, as a sentence; None if there are
    none. The backends have as many operands as `MOST` says, the first one all."""
    function = places[0].function
    for first in range(0, count, PART):
        size = min(PART, count - first)
        words = operands(function, first, size)
        expected = places[0].results(words)
        for place in places[1:]:
            share = min(size, MOST.get(place.backend, count) - first)
            if share <= 0:
                continue
            found = place.results([each[:share] for each in words])
            if not np.array_equal(found, expected[:share]):
                at = int(np.flatnonzero(found != expected[:share])[0])
                width = function.result.bits // 4
                given = " ".join(f"{int(each[at]):0{width}x}" for each in words)
                return (
                    f"{function} {given} (number {first + at}): {expected[at]:0{width}x} on"
                    f" {places[0].backend}, {found[at]:0{width}x} on {place.backend}"
                )
        note(first + size)
    return None


def main() -> None:
    """Compare and print; exit code 1 if results differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.mathematics.agree")
    parser.add_argument("names", nargs="*", metavar="NAME", help="f64.erf and so on; default: all")
    parser.add_argument("--backends", default="llvm,opencl,threaded,vliw")
    parser.add_argument("--device", default="", help="of opencl: gpu, cpu, or a part of its name")
    parser.add_argument("--operands", type=int, default=10_000_000, help="of each function")
    parser.add_argument("--fresh", action="store_true", help="forget finished functions")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in FUNCTIONS]
    if unknown:
        parser.error(f"no function {', '.join(unknown)}; there are {', '.join(FUNCTIONS)}")
    names = options.names or list(FUNCTIONS)
    try:
        differ = [_compare(FUNCTIONS[name], options) for name in names]
    except (FerryError, NotCompiledError) as error:
        sys.exit(str(error))
    sys.exit(1 if any(differ) else 0)


def _compare(function: PureFunction, options: argparse.Namespace) -> bool:
    """True if backends differ."""
    key = f"{options.backends} {options.device} {options.operands}"
    text = "".join(function_definitions(C11, {function_name(function)}))
    progress = Progress(f"agree-{function}", text, options.fresh)
    entry = progress.parts.get(key)
    if entry is None:
        names = options.backends.split(",")
        places = [Place.of(function, backend, options.device) for backend in names]

        def note(done: int) -> None:
            print(f"\r{function} {done:,}", end="", file=sys.stderr)

        wrong = disagreement(places, options.operands, note)
        print(file=sys.stderr)
        lines = [f"{each.backend} {each.done:,} {each.digest.hexdigest()[:16]}" for each in places]
        entry = {"first": key, "wrong": wrong, "lines": lines}
        if wrong is None:
            progress.add(entry)
    print(f"{function}: {entry['wrong'] or 'equal'}; {'; '.join(entry['lines'])}", flush=True)
    return entry["wrong"] is not None


if __name__ == "__main__":
    main()
