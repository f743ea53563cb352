# SPDX-License-Identifier: Apache-2.0
"""The example policies are good, do what they are for, and are described."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ferryvm import policy
from ferryvm.policy import Policy, check

from .sample import LOOP, MACHINE, loop

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "configs").glob("*.toml"))
KNOWN = ("llvm", "opencl", "reference", "switch", "threaded")


def _load(name: str) -> Policy:
    return policy.load(ROOT / "configs" / f"{name}.toml", KNOWN)


def _backends(rules: Policy, kind: str) -> list[str]:
    rule = policy.choose(rules, loop(kind=kind), MACHINE).rule
    return [choice.backend for choice in rule.backends] if rule else []


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_an_example_has_no_faults(path: Path) -> None:
    assert check.read(path, check.KnownBackends(KNOWN)).faults == ()


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_an_example_says_what_it_does_and_when_to_use_it(path: Path) -> None:
    licence, *comment = path.read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    assert licence == "# SPDX-License-Identifier: Apache-2.0"
    assert len(comment) >= 2
    assert all(line.startswith("# ") for line in comment)
    assert re.search(r"\bFor |A place to start", "\n".join(comment))


def test_every_example_is_described_on_the_page_and_no_other() -> None:
    page = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `([\w-]+\.toml)` \|", page, re.MULTILINE)
    assert sorted(described) == [path.name for path in CONFIGS]


def test_interpreter_counts_and_compiles_nothing() -> None:
    assert _load("interpreter") == Policy.for_interpreter("threaded")


def test_native_compiles_loops_nests_and_functions() -> None:
    for kind in ("loop", "nest", "function"):
        assert _backends(_load("native"), kind) == ["llvm"]
    waiting = loop(host_calls=1, work=20)
    decision = policy.choose(_load("native"), waiting, MACHINE)
    assert decision.rule is not None
    assert decision.rule.backends == ()


def test_marked_compiles_scopes_only() -> None:
    assert _backends(_load("marked"), "scope") == ["llvm"]
    for kind in ("loop", "nest", "function"):
        assert _backends(_load("marked"), kind) == []


def test_whole_program_asks_about_the_program_and_must_have_it() -> None:
    rules = _load("whole-program")
    assert rules.whole_program
    rule = policy.choose(rules, loop(kind="program"), MACHINE).rule
    assert rule is not None
    (choice,) = rule.backends
    assert choice.options.required
    assert not choice.options.background


def test_paranoid_runs_the_reference_beside() -> None:
    rules = _load("paranoid")
    assert rules.shadow == policy.Shadow("reference")
    assert policy.choose(rules, LOOP, MACHINE).index == 0
