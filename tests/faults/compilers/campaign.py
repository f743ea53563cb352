# SPDX-License-Identifier: Apache-2.0
"""The slow job for compilers: every fault planted in one is looked for until it is found.

    python -m tests.faults.compilers.campaign [--faults A,B] [--programs N] [--jobs N] [--json FILE]

Each is looked for twice: in generated programs, and in those by hand. Exit code 1 if under 95 % are
found, or one that no program by hand shows: it may be no fault at all. Each search has a process of
its own, since faulty code may end it, or never end: then the fault is found, too. These processes
are forked from one that has made the code without a fault of every program.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import multiprocessing.connection
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ferryvm.atomic_file import replace_file
from ferryvm.errors import UnknownNameError

from .planting import CompilerFault
from .programs import MOST, Origin, count
from .search import make_right, search, warm_up
from .table import FAULTS, by_name, origins

SHARE = 0.95
"""Of the faults that have to be found."""

LONGEST = 150.0
"""Seconds that a search may take for one program: a compiler that takes longer does not end."""

_FORK = multiprocessing.get_context("fork")


class _Search:
    """One fault that is looked for in the programs of one origin."""

    def __init__(self, fault: CompilerFault, origin: Origin, most: int) -> None:
        self.fault, self.origin = fault, origin
        self.began = time.perf_counter()
        self.receiver, sender = _FORK.Pipe(duplex=False)
        self.process = _FORK.Process(target=_look, args=(fault, origin, most, sender))
        self.process.start()
        sender.close()

    def result(self) -> dict[str, Any] | None:
        """What came of it; None if it goes on, and does not take too long for a program."""
        found: dict[str, Any] | None = None
        try:
            while found is None and self.receiver.poll(0):
                found = self.receiver.recv()
                self.began = time.perf_counter()
            if found is None:
                if time.perf_counter() < self.began + LONGEST:
                    return None
                found = {"tool": "does not end", "said": f"no end in {LONGEST:g} s"}
        except EOFError:
            self.process.join()
            if (self.process.exitcode or 0) > 0:  # what it printed says why
                raise AssertionError(f"looking for {self.fault.name} failed") from None
            found = {"tool": "process dies", "said": f"exit code {self.process.exitcode}"}
        self.process.kill()
        self.process.join()
        self.receiver.close()
        return found


def _look(fault: CompilerFault, origin: Origin, most: int, sender: Any) -> None:
    began = time.process_time()
    find, runs = search(fault, origin, most, progress=lambda: sender.send(None))
    spent = {"of": count(origin, fault.backend, most), "runs": runs}
    spent |= {"cpu": round(time.process_time() - began, 1)}
    sender.send(spent | ({} if find is None else dataclasses.asdict(find)))


def look(
    searches: Iterable[tuple[CompilerFault, Origin]], most: int, jobs: int
) -> Iterator[tuple[CompilerFault, Origin, dict[str, Any]]]:
    """What came of each search, as they end; `jobs`: how many go on at once."""
    waiting, under_way = [*searches][::-1], dict[Any, _Search]()
    while waiting or under_way:
        while waiting and len(under_way) < jobs:
            started = _Search(*waiting.pop(), most)
            under_way[started.receiver] = started
        multiprocessing.connection.wait([*under_way], 1.0)
        for key, each in [*under_way.items()]:
            found = each.result()
            if found is not None:
                yield each.fault, each.origin, found
                del under_way[key]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.compilers.campaign")
    parser.add_argument("--faults", default="", help="names with commas between; all by default")
    parser.add_argument("--programs", type=int, default=MOST, help="generated ones for each")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="file that gets the results as they come")
    return parser.parse_args()


def _prepare(faults: list[CompilerFault], most: int) -> None:
    """Make all that searches share: what runs code is kept out of this process, which forks."""
    backends = sorted({fault.backend for fault in faults})
    process = _FORK.Process(target=warm_up, args=(backends,))
    process.start()
    process.join()
    if process.exitcode != 0:
        raise AssertionError("a compiler without a fault fails")
    for origin in Origin:
        make_right([fault for fault in faults if origin in origins(fault)], origin, most)


def _keep(path: Path, entry: dict[str, Any]) -> None:
    """Put what came of one fault into a file, in place of what was there of it."""
    old = json.loads(path.read_text(encoding="utf-8"))["results"] if path.exists() else []
    entries = {each["fault"]: each for each in old}
    entries[entry["fault"]] = entries.get(entry["fault"], {}) | entry
    kept = [entries[fault.name] for fault in FAULTS if fault.name in entries]
    content = {"results": kept}
    replace_file(path, (json.dumps(content, indent=1) + "\n").encode())


def main() -> int:
    """Run the campaign; the exit code."""
    options = _arguments()
    try:
        faults = by_name([name for name in options.faults.split(",") if name])
    except UnknownNameError as error:
        print(f"campaign: {error}", file=sys.stderr)
        return 2
    began = time.perf_counter()
    _prepare(faults, options.programs)
    print(f"{len(faults)} faults; right code made in {time.perf_counter() - began:.0f} s")
    results: dict[str, dict[str, Any]] = {fault.name: {"fault": fault.name} for fault in faults}
    # Those by hand first: each says soon that its fault is one.
    searches = [
        (fault, origin)
        for origin in reversed(Origin)
        for fault in faults
        if origin in origins(fault)
    ]
    for fault, origin, found in look(searches, options.programs, options.jobs):
        results[fault.name][origin.value] = found
        told = f"{found['tool']}: {found['said']}" if "tool" in found else "not found"
        place = found.get("program", "-")
        spent = f"{found.get('runs', '-'):>4} {found.get('cpu', '-'):>6}"
        print(f"{fault.name:40} {origin.value:10} {place:14} {spent}  {told}", flush=True)
        if options.json is not None:
            _keep(options.json, results[fault.name])
    by_origin = {
        origin: [name for name, each in results.items() if "tool" in each.get(origin.value, {})]
        for origin in Origin
    }
    found_all = {name for names in by_origin.values() for name in names}
    parts = ", ".join(f"{len(names)} in {origin.value}" for origin, names in by_origin.items())
    share = len(found_all) / len(faults)
    spent = time.perf_counter() - began
    print(f"{len(found_all)} of {len(faults)} faults found ({share:.1%}; {parts}) in {spent:.0f} s")
    return 0 if share >= SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
