# SPDX-License-Identifier: Apache-2.0
"""Have calls fail, one after the other, in commands of `ferry`; what came of it.

    python -m tests.injection.campaign [--scenarios A,B] [--failures A,B] [--most N] [--calls K,L]

Exit code 1 if anything is lost or corrupt, hangs, crashes or is told with a traceback.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ferryvm import cache

from .failure import FAILURES, built
from .scenario import SCENARIOS

ROOT = Path(__file__).resolve().parents[2]


def tried(
    folder: Path, scenarios: list[str], failures: list[str], most: int, calls: Sequence[int] = ()
) -> Iterator[dict[str, Any]]:
    """What came of each point: scenario, failure and call in `at`, then `kind` and `wrong`."""
    library = built(folder)
    if library is None:
        raise FileNotFoundError("there is no C compiler to build the shim with")
    # Interpreters take long to build: they are taken from the user's own cache, with its key.
    work = folder / "work"
    (work / "state" / "ferryvm").mkdir(parents=True)
    if cache.key_path().exists() and cache.directory().exists():
        # Others may be storing an entry at this moment.
        ignored = shutil.ignore_patterns("region-*", ".ferry-*")
        shutil.copytree(cache.directory(), work / "cache", ignore=ignored)
        shutil.copy2(cache.key_path(), work / "state" / "ferryvm")
    plan = {"scenarios": scenarios, "failures": failures, "most": most, "calls": list(calls)}
    environment = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "FERRYVM_CACHE_DIR": str(work / "cache"),
        "XDG_STATE_HOME": str(work / "state"),
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(work),
        "PYTHONUNBUFFERED": "",  # Python's unbuffered streams lose what a short write leaves
    }
    command = [sys.executable, "-m", "tests.injection.server", str(work), json.dumps(plan)]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        yield from map(json.loads, server.stdout)
        said = server.stderr.read()
    if server.returncode:
        raise RuntimeError(f"the server of points ended with {server.returncode}: {said[-2000:]}")


def main() -> int:
    """Try all points and print a table; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.injection.campaign")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--failures", default=",".join(FAILURES))
    parser.add_argument("--most", type=int, default=1500, help="points of each pair")
    parser.add_argument(
        "--calls", default="", help="numbers of the calls that fail, in place of all"
    )
    options = parser.parse_args()
    calls = [int(call) for call in options.calls.split(",") if call]
    began, total, wrong = time.perf_counter(), 0, 0
    failures = options.failures.split(",")
    for scenario in options.scenarios.split(","):
        with tempfile.TemporaryDirectory(prefix="ferryvm-injection-") as folder:
            points = tried(Path(folder), [scenario], failures, options.most, calls)
            for failure, group in itertools.groupby(points, lambda point: point["at"][1]):
                tally: collections.Counter[str] = collections.Counter()
                for point in group:
                    tally[point["kind"]] += 1
                    if point["wrong"]:
                        wrong += 1
                        call = point["at"][2]
                        print(f"{scenario}, {failure}, call {call}: {point['wrong']}", flush=True)
                counts = ", ".join(f"{kind} {count}" for kind, count in sorted(tally.items()))
                print(f"{scenario}, {failure}: {tally.total()} points: {counts}", flush=True)
                total += tally.total()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = f"{time.perf_counter() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU"
    print(f"{total} points, {wrong} wrong, in {seconds}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
