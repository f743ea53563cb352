# SPDX-License-Identifier: Apache-2.0
"""`ferry run --stats`: what backends tell of a run themselves, and the page that explains it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .test_cli import ferry

ROOT = Path(__file__).resolve().parents[2]
SIEVE = ROOT / "examples" / "sieve.skiff"
TRAPPING = "(define i 0) (while (< i 90) (set! i (+ i 1))) (print! i) (/ 1 (- i 90))\n"


def stats(*arguments: object) -> tuple[int, dict[str, Any]]:
    """The exit code of a run, and its metrics."""
    code, out, err = ferry("run", *arguments, "--stats", "-")
    metrics = out.partition("{")
    assert code or not err
    return code, json.loads("{" + metrics[2])


def keys(metrics: object) -> Iterator[str]:
    """All keys but the names of groups and units."""
    if isinstance(metrics, list):
        for each in metrics:
            yield from keys(each)
    elif isinstance(metrics, dict):
        for key, value in metrics.items():
            yield key
            if key in ("units", "each"):
                value = list(value.values())
            yield from keys(value)


def test_a_run_on_a_machine_of_a_file_has_all_its_figures_and_the_page_explains_each() -> None:
    code, found = stats(
        SIEVE, "--backend", "vliw", "--machine", ROOT / "configs" / "vliw" / "multi16.toml"
    )
    assert code == 0
    (machine,) = found["backends"]["vliw"]["machines"]
    assert machine["machine"] == "multi16"
    assert machine["device"].endswith("configs/vliw/multi16.toml")
    assert machine["regions"][0]["position"].startswith(f"{SIEVE}:")
    cycles = sum(region["cycles"] for region in machine["regions"])
    assert machine["total"]["cycles"] == cycles > 100_000
    pages = [
        (ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("vliw.md", "opencl.md")
    ]
    explained = set(re.findall(r'[`".]([a-z_]+)[`"]', " ".join(pages)))
    assert set(keys(machine)) <= explained


def test_figures_are_there_where_a_program_traps(tmp_path: Path) -> None:
    path = tmp_path / "t.skiff"
    path.write_text(TRAPPING)
    code, found = stats(path, "--backend", "vliw", "--machine", "single")
    assert (code, found["trap"]) == (1, "INTEGER_DIVIDE_BY_ZERO")
    (machine,) = found["backends"]["vliw"]["machines"]
    assert (machine["machine"], machine["device"]) == ("single", "single")
    assert machine["total"]["cycles"] > 90


@pytest.mark.nightly
def test_a_policy_s_machines_are_told_apart(tmp_path: Path) -> None:
    path, policy = tmp_path / "p.skiff", tmp_path / "two.toml"
    path.write_text(
        "(define (f x) (define i 0) (while (< i x) (set! i (+ i 1))) i)\n"
        "(define j 0) (while (< j 99) (f 9) (set! j (+ j 1)))\n"
    )
    policy.write_text(
        "[profile]\nloop_threshold = 40\nfunction_threshold = 2\n[[rule]]\nwhen.kind = 'function'\n"
        "backends = [{ name = 'vliw', device = 'dsp4', background = false }]\n"
        "[[rule]]\nbackends = [{ name = 'vliw', device = 'wide16', background = false }]\n"
    )
    code, found = stats(path, "--policy", policy)
    assert code == 0
    machines = {one["machine"]: one for one in found["backends"]["vliw"]["machines"]}
    assert set(machines) == {"dsp4", "wide16"}
    assert [region["region"] for region in machines["dsp4"]["regions"]] == ["f"]
    assert all(one["total"]["cycles"] > 0 for one in machines.values())


def test_a_run_without_such_a_backend_has_none(tmp_path: Path) -> None:
    path = tmp_path / "p.skiff"
    path.write_text("(print! 1)")
    assert stats(path, "--backend", "switch")[1]["backends"] == {}
