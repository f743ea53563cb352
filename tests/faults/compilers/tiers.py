# SPDX-License-Identifier: Apache-2.0
"""How many of the faults planted in compilers the default tier of the tests finds.

    python -m tests.faults.compilers.tiers [--faults A,B] [--tier default] [--jobs N] [--json FILE]

For each fault the tests of its compiler run with the fault planted: first the default tier, then,
where that does not find it, the nightly one, each up to the first failure. Found means that a test
fails, or that the tests do not end; an error at collection or in a fixture is no finding. What the
page or the table of faults says is no test of a compiler, so tests/faults is left out.
A fault that a file of results has already is not looked for again. Exit code 1 if the default tier
finds less than 90 % of what both find.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ferryvm.atomic_file import replace_file
from ferryvm.errors import UnknownNameError

from .planting import CompilerFault
from .search import warm_up
from .table import by_name

SHARE = 0.9
"""Of what both tiers find, what the default tier is to find."""

LONGEST = 1800.0
"""Seconds that the tests may take: they do not end otherwise."""

ROOT = Path(__file__).resolve().parents[3]

_COMMON = ("tests/ir", "tests/backends/test_run_time_operands.py", "tests/object")
_CONFORMANCE = "tests/conformance/test_backends.py"
"""It runs on the compiler of a fault alone."""

TESTS = {
    "llvm": (
        *_COMMON,
        _CONFORMANCE,
        "tests/backends/llvm",
        "tests/engine",
        "tests/skiff",
    ),
    "opencl": (*_COMMON, _CONFORMANCE, "tests/backends/opencl"),
    "vliw": (*_COMMON, _CONFORMANCE, "tests/backends/vliw"),
}
"""What is run for a fault of each compiler, the quickest first. That of `cc` is tested in its own
folder."""

TIERS = {"default": "not nightly", "nightly": "nightly"}


@dataclasses.dataclass(frozen=True)
class Found:
    """What the tests say of a fault."""

    fault: str
    tier: str | None
    """The first tier that finds it; None: neither does."""
    test: str
    """The test that failed."""
    seconds: float


def look(fault: CompilerFault, cache: Path, tiers: list[str]) -> Found:
    """Run the tests with a fault planted; `cache` is copied, since what is put there is faulty
    code."""
    began = time.perf_counter()
    for tier in tiers:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(cache, Path(folder) / "cache")
            test = _failed(fault, TIERS[tier], Path(folder))
        if test is not None:
            return Found(fault.name, tier, test, round(time.perf_counter() - began, 1))
    return Found(fault.name, None, "", round(time.perf_counter() - began, 1))


def _failed(fault: CompilerFault, chosen: str, folder: Path) -> str | None:
    plugin = "tests.faults.compilers.plugin"
    words = ["-q", "-n", "0", "-p", plugin, "--plant", fault.name, "-m", chosen]
    words += ["--ferry-backend", fault.backend]
    done = _run([*words, "--exitfirst"], fault, folder)
    if done is not None and "FAILED" not in done.stdout and "ERROR" in done.stdout:
        done = _run(words, fault, folder)  # it ended at what is no finding
    return f"no end in {LONGEST:g} s" if done is None else judge(fault, done)


def _run(
    words: list[str], fault: CompilerFault, folder: Path
) -> subprocess.CompletedProcess[str] | None:
    """The tests of a fault's compiler; None if they do not end."""
    places = ["-p", "no:cacheprovider", "--basetemp", str(folder / "temporary")]
    environment = {**os.environ, "FERRYVM_CACHE_DIR": str(folder / "cache")}
    try:
        return subprocess.run(
            [sys.executable, "-m", "pytest", *words, *places, *TESTS[fault.backend]],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None


def judge(fault: CompilerFault, done: subprocess.CompletedProcess[str]) -> str | None:
    """The test that failed in a run with a fault, or how the run ended; None if it did not find the
    fault. Raises AssertionError if no test ran."""
    if done.returncode < 0:
        return f"exit code {done.returncode}"
    failed = re.search(r"^FAILED (\S+)", done.stdout, re.MULTILINE)
    if failed is not None:
        return failed[1]
    if re.search(r"^.*\b\d+ passed\b", done.stdout, re.MULTILINE) is None:
        raise AssertionError(f"{fault.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return None


def _keep(path: Path, found: list[Found]) -> None:
    content = {"results": [dataclasses.asdict(each) for each in found]}
    replace_file(path, (json.dumps(content, indent=1) + "\n").encode())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.compilers.tiers")
    parser.add_argument("--faults", default="", help="names with commas between; all by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--tier", choices=TIERS, action="append", help="only this one; both by default"
    )
    parser.add_argument("--json", type=Path, help="file that gets the results as they come")
    return parser.parse_args()


def main() -> int:
    """Run the campaign; the exit code."""
    options = _arguments()
    try:
        named = by_name([name for name in options.faults.split(",") if name])
    except UnknownNameError as error:
        print(f"tiers: {error}", file=sys.stderr)
        return 2
    faults = [fault for fault in named if fault.backend in TESTS]
    found: list[Found] = []
    if options.json is not None and options.json.exists():
        text = options.json.read_text(encoding="utf-8")
        found = [Found(**row) for row in json.loads(text)["results"]]
    known = {each.fault for each in found}
    tiers = options.tier or list(TIERS)
    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ThreadPoolExecutor(options.jobs) as pool,
    ):
        os.environ["FERRYVM_CACHE_DIR"] = folder
        warm_up(TESTS)
        waiting = [
            pool.submit(look, fault, Path(folder), tiers)
            for fault in faults
            if fault.name not in known
        ]
        for each in concurrent.futures.as_completed(waiting):
            result = each.result()
            found.append(result)
            print(
                f"{result.fault:40} {result.tier or '-':8} {result.seconds:6.0f} s  {result.test}",
                flush=True,
            )
            if options.json is not None:
                _keep(options.json, found)
    mine = [each for each in found if each.fault in {fault.name for fault in faults}]
    default = sum(each.tier == "default" for each in mine)
    both = sum(each.tier is not None for each in mine)
    print(f"{len(mine)} faults: {both} found, {default} of them by the default tier")
    return 0 if default >= SHARE * both else 1


if __name__ == "__main__":
    sys.exit(main())
