# SPDX-License-Identifier: Apache-2.0
"""How many of the faults planted in compilers the default tier of the tests finds.

    python -m tests.faults.compilers.tiers [--faults A,B] [--tier default] [--jobs N] [--json FILE]

For each fault the tests of its compiler run with the fault planted: first the default tier, then,
where that does not find it, the nightly one, each up to the first failure. Found means that a test
fails, or that the tests do not end; an error at collection or in a fixture is no finding. What the
page or the table of faults says is no test of a compiler, so tests/faults is left out.
Before a tier of a compiler is used, it runs without a fault. A test that fails there says nothing
of faults: the campaign names it and leaves it out.
A fault that a file of results has already is not looked for again, and a tier that it has is not
run again without a fault. Exit code 1 if the default tier finds less than 90 % of what both find.
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
import threading
import time
from collections.abc import Mapping
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

PLUGIN = "tests.faults.compilers.plugin"

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


class Control:
    """The tests that fail without a fault, by compiler and tier, from one run of each."""

    def __init__(self, cache: Path, jobs: int, known: Mapping[str, list[str]]) -> None:
        """`jobs`: the processes of a run; `known`: what runs of an earlier campaign said."""
        self._cache = cache
        self._jobs = jobs
        self._running = threading.Lock()
        self.failed = dict(known)
        """Tests by a compiler's name, a space and a tier."""

    def of(self, backend: str, tier: str) -> list[str]:
        """The tests of a compiler that fail without a fault. Raises AssertionError if none ran."""
        name = f"{backend} {tier}"
        if name not in self.failed:
            with self._running:
                if name not in self.failed:  # another thread's run may have said it meanwhile
                    self.failed[name] = self._run(backend, tier)
                    print(_said(name, self.failed[name]), flush=True)
        return self.failed[name]

    def _run(self, backend: str, tier: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(self._cache, Path(folder) / "cache")
            words = [*_words(backend, tier), "-n", str(self._jobs)]
            done = _run(words, backend, Path(folder))
        name = f"{backend} {tier} without a fault"
        if done is None or done.returncode < 0:
            raise AssertionError(f"{name}: no end, or one by a signal")
        judge(name, done)
        return _FAILED.findall(done.stdout)


def _said(name: str, failed: list[str]) -> str:
    """A line on a run without a fault."""
    if not failed:
        return f"control: {name}: no test fails without a fault"
    return f"control: {name}: fail without a fault, so find none: {', '.join(failed)}"


def look(fault: CompilerFault, cache: Path, tiers: list[str], control: Control) -> Found:
    """Run the tests with a fault planted; `cache` is copied, since what is put there is faulty
    code."""
    seconds = 0.0
    for tier in tiers:
        left_out = control.of(fault.backend, tier)
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(cache, Path(folder) / "cache")
            test = _failed(fault, tier, left_out, Path(folder))
        seconds += time.perf_counter() - began
        if test is not None:
            return Found(fault.name, tier, test, round(seconds, 1))
    return Found(fault.name, None, "", round(seconds, 1))


def _words(backend: str, tier: str) -> list[str]:
    """The arguments that all runs of a tier of a compiler have."""
    return ["-q", "-p", PLUGIN, "-m", TIERS[tier], "--ferry-backend", backend]


def _failed(fault: CompilerFault, tier: str, left_out: list[str], folder: Path) -> str | None:
    names = folder / "left-out.txt"
    names.write_text("".join(f"{name}\n" for name in left_out), encoding="utf-8")
    words = [*_words(fault.backend, tier), "-n", "0", "--plant", fault.name]
    words += ["--leave-out", str(names)]
    done = _run([*words, "--exitfirst"], fault.backend, folder)
    if done is not None and "FAILED" not in done.stdout and "ERROR" in done.stdout:
        done = _run(words, fault.backend, folder)  # it ended at what is no finding
    return f"no end in {LONGEST:g} s" if done is None else judge(fault.name, done)


def _run(words: list[str], backend: str, folder: Path) -> subprocess.CompletedProcess[str] | None:
    """The tests of a compiler; None if they do not end."""
    places = ["-p", "no:cacheprovider", "--basetemp", str(folder / "temporary")]
    environment = {**os.environ, "FERRYVM_CACHE_DIR": str(folder / "cache")}
    try:
        return subprocess.run(
            [sys.executable, "-m", "pytest", *words, *places, *TESTS[backend]],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None


_FAILED = re.compile(r"^FAILED (.+?)(?: - .*)?$", re.MULTILINE)
"""A line of pytest's summary. A test's name has blanks where a parameter has some."""


def judge(name: str, done: subprocess.CompletedProcess[str]) -> str | None:
    """The test that failed in a run, or how the run ended; None if all passed. Raises
    AssertionError if no test ran: with the name of what was run."""
    if done.returncode < 0:
        return f"exit code {done.returncode}"
    failed = _FAILED.search(done.stdout)
    if failed is not None:
        return failed[1]
    if re.search(r"^.*\b\d+ passed\b", done.stdout, re.MULTILINE) is None:
        raise AssertionError(f"{name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return None


def _save(path: Path, found: list[Found], control: Control) -> None:
    results = [dataclasses.asdict(each) for each in found]
    content = {"control": control.failed, "results": results}
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
    failed: dict[str, list[str]] = {}
    if options.json is not None and options.json.exists():
        earlier = json.loads(options.json.read_text(encoding="utf-8"))
        found = [Found(**row) for row in earlier["results"]]
        failed = earlier.get("control", {})
    known = {each.fault for each in found}
    tiers = options.tier or list(TIERS)
    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ThreadPoolExecutor(options.jobs) as pool,
    ):
        os.environ["FERRYVM_CACHE_DIR"] = folder
        warm_up(TESTS)
        control = Control(Path(folder), options.jobs, failed)
        waiting = [
            pool.submit(look, fault, Path(folder), tiers, control)
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
                _save(options.json, found, control)
    mine = [each for each in found if each.fault in {fault.name for fault in faults}]
    default = sum(each.tier == "default" for each in mine)
    both = sum(each.tier is not None for each in mine)
    for name, tests in control.failed.items():
        print(_said(name, tests))
    print(f"{len(mine)} faults: {both} found, {default} of them by the default tier")
    return 0 if default >= SHARE * both else 1


if __name__ == "__main__":
    sys.exit(main())
