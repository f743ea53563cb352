# SPDX-License-Identifier: Apache-2.0
"""The slow job for compilers: every fault planted in one is looked for until it is found.

    python -m tests.faults.compilers.campaign [--faults A,B] [--programs N] [--jobs N] [--json FILE]

Exit code 1 if under 95 % are found. Each fault has a process of its own, since faulty code may end it,
or never end: then it is found, too.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import multiprocessing
import sys
import time
from pathlib import Path
from typing import Any

from ferryvm.durable import replace_file
from ferryvm.errors import UnknownNameError

from .programs import MOST
from .search import search, warm_up
from .table import by_name

SHARE = 0.95
"""Of the faults that have to be found."""

LONGEST = 600.0
"""Seconds that a fault may take."""


def _look(name: str, most: int, sender: Any) -> None:
    (fault,) = by_name([name])
    find = search(fault, most)
    sender.send(None if find is None else dataclasses.asdict(find))


def look(name: str, most: int) -> dict[str, Any]:
    """What came of looking for a fault, in a process of its own."""
    began = time.perf_counter()
    context = multiprocessing.get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_look, args=(name, most, sender))
    process.start()
    sender.close()
    entry: dict[str, Any] = {"fault": name}
    try:
        if receiver.poll(LONGEST):
            entry |= receiver.recv() or {}
        else:
            entry |= {"tool": "does not end", "said": f"no end in {LONGEST:g} s"}
    except EOFError:
        process.join()
        entry |= {"tool": "process dies", "said": f"exit code {process.exitcode}"}
    process.kill()
    process.join()
    entry["seconds"] = round(time.perf_counter() - began, 1)
    return entry


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.compilers.campaign")
    parser.add_argument("--faults", default="", help="names with commas between; all by default")
    parser.add_argument("--programs", type=int, default=MOST)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="file for the results")
    return parser.parse_args()


def main() -> int:
    """Run the campaign; the exit code."""
    options = _arguments()
    try:
        faults = by_name([name for name in options.faults.split(",") if name])
    except UnknownNameError as error:
        print(f"campaign: {error}", file=sys.stderr)
        return 2
    multiprocessing.set_forkserver_preload(["tests.faults.compilers.search"])
    warm_up(sorted({fault.backend for fault in faults}))
    began = time.perf_counter()
    results = []
    print(f"{'fault':40} {'program':>7} {'runs':>4} {'seconds':>7}  found by")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for entry in pool.map(lambda fault: look(fault.name, options.programs), faults):
            results.append(entry)
            found = f"{entry['tool']}: {entry['said']}" if "tool" in entry else "not found"
            number = entry["number"] + 1 if "number" in entry else "-"
            runs = entry.get("runs", "-")
            line = f"{entry['fault']:40} {number:>7} {runs:>4} {entry['seconds']:7.1f}  {found}"
            print(line, flush=True)
    found = sum("tool" in entry for entry in results)
    spent = time.perf_counter() - began
    print(f"{found} of {len(faults)} faults found ({found / len(faults):.1%}) in {spent:.0f} s")
    if options.json is not None:
        content = {"programs": options.programs, "results": results}
        replace_file(options.json, (json.dumps(content, indent=1) + "\n").encode())
    return 0 if found >= SHARE * len(faults) else 1


if __name__ == "__main__":
    sys.exit(main())
