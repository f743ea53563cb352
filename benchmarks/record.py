# SPDX-License-Identifier: Apache-2.0
"""What a run found as a JSON file, with the machine and the commit."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.benchmark import ROOT
from ferryvm.atomic_file import replace_file

SCHEMA = 2


def circumstances() -> dict[str, Any]:
    """When, at which commit and on what machine."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
        },
    }


def write(path: str, report: dict[str, Any]) -> None:
    """Write a JSON report to a file, or to stdout for `-`."""
    text = json.dumps(report, indent=2)
    if path == "-":
        print(text)
    else:
        replace_file(Path(path), (text + "\n").encode())


def _commit() -> str | None:
    """The commit of the working tree, with `+` where files have changed since."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    wide = any("avx512f" in line for line in lines if line.startswith("flags"))
    return (names or ["unknown"])[0] + (" with AVX-512" if wide else "")
