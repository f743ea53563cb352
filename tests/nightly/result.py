# SPDX-License-Identifier: Apache-2.0
"""What became of jobs, in files: a run that is cut off goes on where it was.

    nightly/STATE/NAME.log      what the job printed
    nightly/STATE/NAME.json     what became of it, written when it has ended
    nightly/STATE/README.md     the summary

STATE is the commit and, where the tree differs from it, a digest of the difference: no result
counts for other sources than it was had with.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from .job import Job


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of a job."""

    name: str
    command: str
    code: int | None
    """Its exit code, negative for a signal; None: it was skipped."""
    seconds: float
    last: str
    """The last line that it printed, or why it was skipped."""

    @property
    def verdict(self) -> str:
        """In a word."""
        if self.code is None:
            return "skipped"
        return "passed" if self.code == 0 else "failed"


def state(root: Path) -> str:
    """What the sources are. Raises OSError and CalledProcessError where there is no git."""

    def git(*words: str) -> bytes:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, check=True).stdout

    commit = git("rev-parse", "--short=12", "HEAD").decode().strip()
    changes = git("diff", "HEAD")
    for name in git("ls-files", "--others", "--exclude-standard", "-z").split(b"\0"):
        path = root / os.fsdecode(name)
        if name and path.is_file():
            changes += name + path.read_bytes()
    return f"{commit}-{hashlib.sha256(changes).hexdigest()[:8]}" if changes else commit


def read(folder: Path, job: Job) -> Result | None:
    """What became of a job; None if it has not ended, or its command was another one."""
    try:
        found = Result(**json.loads((folder / f"{job.name}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return found if found.command == job.command else None


def write(folder: Path, result: Result) -> None:
    """Keep it, whole or not at all."""
    file = folder / f"{result.name}.json"
    unfinished = file.with_suffix(".new")
    unfinished.write_text(json.dumps(dataclasses.asdict(result), indent=1), encoding="utf-8")
    unfinished.replace(file)


def summary(where: str, every: Iterable[Job], results: dict[str, Result]) -> str:
    """The page."""
    rows = []
    for job in every:
        result = results.get(job.name)
        told = result.last.replace("|", "\\|") if result else ""
        verdict, took = (result.verdict, _duration(result.seconds)) if result else ("not run", "")
        rows.append((verdict, f"| {job.name} | {verdict} | {took} | {told} | `{job.command}` |"))
    verdicts = [verdict for verdict, _ in rows]
    counts = [
        f"{verdicts.count(verdict)} {verdict}"
        for verdict in ("passed", "failed", "skipped", "not run")
        if verdict in verdicts
    ]
    # What needs somebody stands first.
    rows.sort(key=lambda row: ("failed", "not run", "skipped", "passed").index(row[0]))
    seconds = sum(result.seconds for result in results.values())
    head = [
        f"# Nightly run of {where}",
        "",
        f"{', '.join(counts)}; {_duration(seconds)} of work.",
        "",
        "| job | verdict | time | its last line | command |",
        "|---|---|---:|---|---|",
    ]
    return "\n".join([*head, *(row for _, row in rows)]) + "\n"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
