# SPDX-License-Identifier: Apache-2.0
"""The jobs of the nightly run, as jobs.toml lists them."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import shlex
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import tomli

TABLE = Path(__file__).with_name("jobs.toml")

_NAME = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")
_KEYS = {"name", "command", "environment", "needs"}


class JobError(Exception):
    """A table of jobs with a fault: one line."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A command, under a name."""

    name: str
    command: str
    environment: dict[str, str]
    needs: str | None = None

    @property
    def words(self) -> list[str]:
        """The command, as the system takes it."""
        return shlex.split(self.command)

    def is_named_by(self, pattern: str) -> bool:
        """Whether a pattern is its name, its group, or fits with `*` and `?`."""
        return fnmatchcase(self.name, pattern) or self.name.startswith(pattern.rstrip(".") + ".")

    def obstacle(self) -> str | None:
        """Why it cannot run here; None if it can."""
        if self.needs is None or importlib.util.find_spec(self.needs) is not None:
            return None
        return f"{self.needs} is not installed"


def jobs(file: Path = TABLE) -> list[Job]:
    """Those of a table. Raises JobError."""
    try:
        table = tomli.loads(file.read_text(encoding="utf-8"))
    except tomli.TOMLDecodeError as error:
        raise JobError(f"{file.name}: {error}") from None
    found = [_job(number, row) for number, row in enumerate(table.get("job", []))]
    names = [job.name for job in found]
    for name in names:
        if names.count(name) > 1:
            raise JobError(f"{file.name}: two jobs are named {name}")
    return found


def chosen(every: list[Job], patterns: list[str]) -> list[Job]:
    """Those that patterns name, all if there are none. Raises JobError for one that names
    nothing."""
    for pattern in patterns:
        if not any(job.is_named_by(pattern) for job in every):
            groups = ", ".join(dict.fromkeys(job.name.split(".")[0] for job in every))
            raise JobError(f"no job is named {pattern!r} (groups: {groups})")
    return [job for job in every if not patterns or any(map(job.is_named_by, patterns))]


def _job(number: int, row: dict[str, Any]) -> Job:
    name = row.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise JobError(f"job {number}: name: found {name!r} (allowed: GROUP.NAME)")
    if unknown := set(row) - _KEYS:
        raise JobError(f"{name}: unknown: {', '.join(sorted(unknown))}")
    if not isinstance(row.get("command"), str):
        raise JobError(f"{name}: command: found {row.get('command')!r} (allowed: a text)")
    environment = {key: str(value) for key, value in row.get("environment", {}).items()}
    return Job(name, row["command"], environment, row.get("needs"))
