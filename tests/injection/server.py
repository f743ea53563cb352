# SPDX-License-Identifier: Apache-2.0
"""Points of failure, each in a child that has everything imported; a process of its own.

    LD_PRELOAD=shim.so python -m tests.injection.server FOLDER PLAN     a line of JSON a point

A point is a scenario, a failure and the number k of the call that fails. After it, all that the
command may have written is whole, old or new, and the same command without failures does as it
should.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import faulthandler
import gc
import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

from .failure import FAILURES, NEVER, Failure, arm, disarm, leave_alone
from .scenario import SCENARIOS, Scenario, is_expected, prepared

_LONGEST = 60
"""Seconds after which a command hangs, on a machine that has other things to do."""
_CRASHED = 70


@dataclasses.dataclass(frozen=True)
class Ending:
    """How a command ended."""

    code: int
    """Negative: the number of the signal."""
    calls: int
    output: str
    said: str


@dataclasses.dataclass(frozen=True)
class Plan:
    """Which points are tried."""

    scenarios: tuple[str, ...]
    failures: tuple[str, ...]
    most: int
    """Points of a scenario and a failure; where there are more calls, so many of them, spread."""
    calls: tuple[int, ...] = ()
    """These calls alone."""


class Server:
    """Runs commands in a folder, with and without failures."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder, self._plan = folder, plan
        os.chdir(folder)
        prepared(self._clean, folder)
        self._old = {name: Path(name).read_bytes() for name in ("out.fvm", "out.ferry")}
        self._new: dict[str, bytes] = {}
        for name in plan.scenarios:
            self._warm(SCENARIOS[name])
        leave_alone("libllvmlite", "libstdc++")
        gc.collect()
        gc.freeze()  # else each child copies the pages of all objects when it collects

    def _clean(self, *arguments: str) -> int:
        """Run a command here, which also imports all that it needs."""
        from ferryvm.cli.outcome import run_command

        sys.argv = ["ferry", *arguments]
        return run_command()

    def _warm(self, scenario: Scenario) -> None:
        self._restore(scenario)
        code = self._clean(*scenario.arguments)
        assert code == scenario.code, (scenario, code)
        for name in scenario.outputs:
            self._new[name] = Path(name).read_bytes()

    def points(self) -> Iterator[tuple[Scenario, Failure, int]]:
        """All points of the plan."""
        for name in self._plan.scenarios:
            for failure in map(FAILURES.__getitem__, self._plan.failures):
                for call in self._plan.calls or self._spread(SCENARIOS[name], failure):
                    yield SCENARIOS[name], failure, call

    def _spread(self, scenario: Scenario, failure: Failure) -> Iterable[int]:
        calls = self._calls(scenario, failure)
        step = max(1, -(-calls // self._plan.most))
        return range(1 + len(scenario.name) % step, calls + 1, step)

    def _calls(self, scenario: Scenario, failure: Failure) -> int:
        self._restore(scenario)
        return self._run(scenario, failure, NEVER).calls

    def fault(self, scenario: Scenario, failure: Failure, call: int) -> tuple[str, str]:
        """What came of a point, in a word, and what is wrong with it; nothing if nothing is."""
        self._restore(scenario)
        before = self._files()
        ending = self._run(scenario, failure, call)
        kind, wrong = _judged(scenario, failure, ending)
        for name in scenario.outputs:
            content = Path(name).read_bytes()
            is_new = content == self._new[name]
            if not is_new and (content != self._old[name] or ending.code == scenario.code):
                wrong = wrong or f"{name} is not what it was or should be"
        left = [str(path) for path in self._folder.rglob(".ferry-*.part")]
        if left:
            wrong = wrong or f"{left[0]} is left behind"
        if not wrong and self._files() != before:  # else it would do what it did when all went well
            again = self._run(scenario, failure, NEVER)
            # What could not be kept is kept now; what could be read is told if it had to be mended.
            if again.code != scenario.code or not is_expected(scenario, again.output):
                wrong = f"afterwards: exit code {again.code}: {again.said or again.output!r}"
        return kind, wrong

    def _files(self) -> dict[str, tuple[int, ...]]:
        """All files that a command may read, by what changes when they are written."""
        found = {}
        for folder, _, names in os.walk("."):
            for name in names:
                facts = os.lstat(path := os.path.join(folder, name))
                found[path] = (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_mode)
        return {path: facts for path, facts in found.items() if path not in ("./output", "./said")}

    def _restore(self, scenario: Scenario) -> None:
        for path in self._folder.rglob(".ferry-*.part"):
            path.unlink()
        for name, content in getattr(self, "_old", {}).items():
            Path(name).write_bytes(content)
        if scenario.from_empty_cache:
            for file in Path("cache").glob("*/region-*.bin"):
                file.unlink()
            shutil.rmtree("state", ignore_errors=True)

    def _run(self, scenario: Scenario, failure: Failure, call: int) -> Ending:
        """A command in a child of which calls fail."""
        ends = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(ends[0])
            self._in_child(scenario, failure, call, ends[1])
        os.close(ends[1])
        with open(ends[0], "rb") as pipe:
            calls = int(pipe.read() or b"0")
        _, status = os.waitpid(child, 0)
        said = Path("said").read_text(errors="replace")
        return Ending(os.waitstatus_to_exitcode(status), calls, Path("output").read_text(), said)

    def _in_child(self, scenario: Scenario, failure: Failure, call: int, end: int) -> None:
        from ferryvm.cache import secret
        from ferryvm.cli.outcome import run_command

        faulthandler.enable()
        faulthandler.dump_traceback_later(_LONGEST - 5)
        signal.alarm(_LONGEST)
        for descriptor, name in ((1, "output"), (2, "said")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        secret._secret.cache_clear()
        sys.argv = ["ferry", *scenario.arguments]
        code = _CRASHED
        arm(failure, call)
        try:
            code = run_command()
        except BaseException:  # noqa: BLE001 - whatever it is, it is a finding
            disarm()
            traceback.print_exc()
        calls = disarm()
        with contextlib.suppress(BaseException):
            sys.stderr.flush()
        os.write(end, str(calls).encode())
        os._exit(code)


def _judged(scenario: Scenario, failure: Failure, ending: Ending) -> tuple[str, str]:
    if ending.code == -signal.SIGALRM:
        return "hang", ending.said[:1500] or "it hangs"
    if ending.code < 0:
        return "signal", f"ended by {signal.Signals(-ending.code).name}: {ending.said[:2500]}"
    for word in ("Traceback", "Exception ignored", "Error:"):
        if word in ending.said:
            return "traceback", ending.said[-1500:]
    if ending.code == scenario.code:
        if not is_expected(scenario, ending.output):
            return "wrong", f"printed {ending.output!r}"
        return ("told" if ending.said else "unaffected"), ""
    lines = ending.said.splitlines()
    if lines and lines[0].endswith("(allowed: none)"):
        return "misleading", lines[0]
    is_silent = failure.lasts and not lines  # what there was to say could not be written
    if not is_silent and not (lines and lines[0].startswith("ferry: ")):
        return "unclear", f"exit code {ending.code} and {ending.said!r}"
    return "refused", ""


def main() -> None:
    """Try the points of a plan."""
    folder, plan = Path(sys.argv[1]), Plan(**json.loads(sys.argv[2]))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    server = Server(folder, plan)
    tally: collections.Counter[str] = collections.Counter()
    for scenario, failure, call in server.points():
        kind, wrong = server.fault(scenario, failure, call)
        tally[kind] += 1
        line = {"at": [scenario.name, failure.name, call], "kind": kind, "wrong": wrong}
        print(json.dumps(line), file=out, flush=True)


if __name__ == "__main__":
    main()
