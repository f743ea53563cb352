# SPDX-License-Identifier: Apache-2.0
"""The slow job: every planted fault is looked for until it is found.

    python -m tests.faults.campaign [--faults A,B] [--programs N] [--seed N] [--jobs N]
                                    [--native] [--json FILE] [--reduce]

Exit code 1 if under 95 % are found. With --native the faults are planted in the switch interpreter
and held against the right one: a few by default, since each is built anew.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import functools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ferryvm.atomic_file import replace_file
from ferryvm.errors import FerryError

from .fault import Fault
from .search import Find, Outcome, Searcher
from .table import by_name

SHARE = 0.95
"""Of the faults that have to be found."""

_CHUNK = 20
"""Programs that a process tries before it tells what it has found."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What to look for and where."""

    faults: tuple[str, ...]
    programs: int = 10_000
    seed: int = 1
    jobs: int = 2
    native: str | None = None
    """Folder for native code with faults; None to plant them in the reference backend."""


def search(plan: Plan, names: Sequence[str], numbers: range) -> Outcome:
    """Look for some of the faults in some of the programs; runs in a process of its own."""
    faults = by_name(list(names))
    if plan.native is None:
        return Searcher(faults, plan.seed).search(numbers)
    from .native import NativeFaultyBackend

    plant = functools.partial(NativeFaultyBackend, folder=Path(plan.native))
    return Searcher(faults, plan.seed, "switch", plant).search(numbers)


def campaign(plan: Plan) -> Iterator[tuple[str, Find | None, float]]:
    """Each fault with its find, as they come, and the seconds spent on it; None comes last.

    What is found does not depend on `jobs`: of several finds the earliest program's counts.
    """
    left = list(plan.faults)
    seconds = dict.fromkeys(left, 0.0)
    # One chunk at the start: most faults are found there, and none should be looked for twice.
    first, jobs = 0, 1
    with concurrent.futures.ProcessPoolExecutor(plan.jobs) as pool:
        while left and first < plan.programs:
            ends = [min(first + _CHUNK * (job + 1), plan.programs) for job in range(jobs)]
            starts = [first, *ends[:-1]]
            chunks = [range(a, b) for a, b in zip(starts, ends, strict=True) if a < b]
            futures = [pool.submit(search, plan, left, chunk) for chunk in chunks]
            finds: dict[str, Find] = {}
            for future in futures:
                outcome = future.result()
                for name, spent in outcome.seconds.items():
                    seconds[name] += spent
                finds = {**outcome.finds, **finds}
            first, jobs = ends[-1], 4 * plan.jobs
            for name in [name for name in left if name in finds]:
                left.remove(name)
                yield name, finds[name], seconds[name]
    for name in left:
        yield name, None, seconds[name]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.campaign")
    parser.add_argument("--faults", default="", help="names with commas between; all by default")
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--native", action="store_true", help="plant in the switch interpreter")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--reduce", action="store_true", help="reduce what is found, too")
    options = parser.parse_args()
    if options.native and options.reduce:
        parser.error("--reduce reduces what is planted in the reference backend, not --native")
    return options


def _chosen(names: str, native: bool) -> list[Fault]:
    if not names and native:
        from .native import NATIVE

        return by_name(list(NATIVE))
    return by_name([name for name in names.split(",") if name])


def main() -> int:
    """Run the campaign; the exit code."""
    options = _arguments()
    try:
        faults = _chosen(options.faults, options.native)
        plan = Plan(tuple(fault.name for fault in faults), *_counts(options))
        if not options.native:
            return _run(plan, options.json, options.reduce)
        with tempfile.TemporaryDirectory(prefix="ferryvm-faults-") as folder:
            _build(faults, Path(folder))
            return _run(dataclasses.replace(plan, native=folder), options.json, False)
    except FerryError as error:
        print(f"campaign: {error}", file=sys.stderr)
        return 2


def _counts(options: argparse.Namespace) -> tuple[int, int, int]:
    return options.programs, options.seed, options.jobs


def _build(faults: list[Fault], folder: Path) -> None:
    """Build all native code at once, so that no two processes build the same."""
    from .native import NativeFaultyBackend

    began = time.perf_counter()
    for fault in faults:
        NativeFaultyBackend(fault, folder).build()
    print(f"{len(faults)} interpreters woven in {time.perf_counter() - began:.0f} s", flush=True)


def _run(plan: Plan, file: Path | None, with_reduction: bool) -> int:
    names = plan.faults
    began = time.perf_counter()
    results: list[dict[str, Any]] = []
    print(f"{'fault':42} {'programs':>8}  {'kind':8}  {'schedule':14}  {'seconds':>7}  field")
    for name, find, seconds in campaign(plan):
        entry = {"fault": name, "seconds": round(seconds, 2)}
        if find is None:
            print(f"{name:42} {'-':>8}  not found in {plan.programs} programs, {seconds:.1f} s")
        else:
            entry |= dataclasses.asdict(find)
            print(
                f"{name:42} {find.number + 1:8}  {find.kind:8}  {find.schedule:14}  "
                f"{seconds:7.2f}  {find.field}{'' if find.is_counted else ' (uncounted)'}",
                flush=True,
            )
            if with_reduction:
                entry |= _reduced(plan, name, find)
        results.append(entry)
    found = sum("number" in entry for entry in results)
    spent = time.perf_counter() - began
    print(f"{found} of {len(names)} faults found ({found / len(names):.1%}) in {spent:.0f} s")
    if with_reduction:
        sizes = [entry["reduced"] or 1 << 20 for entry in results if "reduced" in entry]
        print(f"reduced to {statistics.median(sizes):g} instructions (median), {max(sizes)} (most)")
    if file is not None:
        content = {"seed": plan.seed, "programs": plan.programs, "results": results}
        replace_file(file, (json.dumps(content, indent=1) + "\n").encode())
    return 0 if found >= SHARE * len(names) else 1


def _reduced(plan: Plan, name: str, find: Find) -> dict[str, Any]:
    from .reducing import reduced

    size, seconds = reduced(plan.seed, name, find)
    what = "does not show to the reducer" if size is None else f"{size} instructions left"
    print(f"{'':42} {what} after {seconds:.1f} s", flush=True)
    return {"reduced": size, "reduction_seconds": round(seconds, 2)}


if __name__ == "__main__":
    sys.exit(main())
