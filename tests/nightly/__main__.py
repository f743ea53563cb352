# SPDX-License-Identifier: Apache-2.0
"""Run what takes long, one job after the other, and go on where an earlier run was cut off.

    python -m tests.nightly                 all jobs that have no result for these sources
    python -m tests.nightly llvm faults.*   those of a group, or whose names fit
    python -m tests.nightly --list          the jobs, and what became of them
    python -m tests.nightly --again         failed ones once more

Its exit code is 1 if a job failed, 2 for faults of the arguments or the table, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from .job import Job, JobError, chosen, jobs
from .result import Result, read, state, summary, write

ROOT = Path(__file__).parent.parent.parent


def main(words: list[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.nightly")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="a name, a group or a pattern")
    parser.add_argument("--list", action="store_true", help="run nothing")
    parser.add_argument("--again", action="store_true", help="run failed jobs once more")
    parser.add_argument("--results", type=Path, default=ROOT / "nightly", metavar="FOLDER")
    parser.add_argument("--table", type=Path, metavar="FILE", help="jobs other than jobs.toml")
    options = parser.parse_args(words)
    try:
        every = jobs(options.table) if options.table else jobs()
        selected = chosen(every, options.jobs)
        where = state(ROOT)
    except (JobError, OSError, subprocess.CalledProcessError) as error:
        print(f"nightly: {error}", file=sys.stderr)
        return 2
    folder = options.results / where
    results = {job.name: result for job in every if (result := read(folder, job))}
    if options.list:
        for job in selected:
            verdict = results[job.name].verdict if job.name in results else "not run"
            print(f"{job.name:30} {verdict:8} {job.command}")
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "README.md"
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it leaves no job behind, too
    code = 0
    for number, job in enumerate(selected, 1):
        result = results.get(job.name)
        is_new = result is None or (options.again and result.verdict == "failed")
        head = f"[{number}/{len(selected)}] {job.name}"
        if is_new:
            print(f"{head} ...", flush=True)
            try:
                result = run(job, folder / f"{job.name}.log")
            except KeyboardInterrupt:
                print(f"nightly: interrupted in {job.name}; the same command goes on with it")
                code = 130
                break
            write(folder, result)
            results[job.name] = result
            page.write_text(summary(where, every, results), encoding="utf-8")
        assert result is not None
        told = "" if is_new else " (before)"
        print(f"{head} {result.verdict}{told}, {result.seconds:.0f} s: {result.last}", flush=True)
        code = max(code, int(result.verdict == "failed"))
    page.write_text(summary(where, every, results), encoding="utf-8")
    print(f"nightly: {page}")
    return code


def run(job: Job, log: Path) -> Result:
    """What becomes of a job; what it prints is in the log. Ctrl-C ends it, with all that it
    started."""
    if obstacle := job.obstacle():
        return Result(job.name, job.command, None, 0.0, obstacle)
    environment = {**os.environ, **job.environment}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    started = time.monotonic()
    program = shutil.which(job.words[0], path=environment["PATH"])
    if program is None:
        return Result(job.name, job.command, 127, 0.0, f"there is no command {job.words[0]!r}")
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [program, *job.words[1:]],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    seconds = time.monotonic() - started
    return Result(job.name, job.command, code, round(seconds, 1), last_line(log))


def last_line(log: Path) -> str:
    """The last one of a log that is not empty; nothing if there is none."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:200]


if __name__ == "__main__":
    sys.exit(main())
