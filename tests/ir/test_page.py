# SPDX-License-Identifier: Apache-2.0
"""docs/ir.md describes what there is; every operation and every pass has its tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ferryvm.ir import passes
from ferryvm.ir.operation import SHAPES

from .evaluator import Evaluator
from .lane.evaluator import LaneEvaluator

HERE = Path(__file__).resolve().parent
PAGE = (HERE.parents[1] / "docs" / "ir.md").read_text(encoding="utf-8")
PASSES = sorted(
    file.stem
    for file in Path(str(passes.__file__)).parent.glob("*.py")
    if file.stem not in ("__init__", "pipeline")
)


def described(heading: str) -> set[str]:
    """Names in the first column of the tables below a heading."""
    found = re.search(rf"^## {heading}$\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    rows = re.findall(r"^\| (`.*?) \|", found[1], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_the_page_describes_every_operation_and_no_other() -> None:
    assert described("Operations") == set(SHAPES)


def test_the_page_describes_every_pass_and_no_other() -> None:
    found = re.search(r"^## Passes$\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    assert set(re.findall(r"^\| `(\w+)` \|", found[1], re.MULTILINE)) == set(PASSES)


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_has_a_room_of_tests(name: str) -> None:
    text = (HERE / f"test_{name}.py").read_text(encoding="utf-8")
    assert f"from ferryvm.ir.passes.{name} import " in text


OF_GROUPS = {"barrier", "member", "group_array"} | {
    "begin_group",
    "bounded",
    "fail_if",
    "fail_if_interrupted",
    "has_failed",
    "iterations_spent",
    "member_index",
    "context_load",
    "context_load_lanes",
    "context_store",
    "context_store_lanes",
    "release_objects",
}
"""Operations of groups of items: tests/backends/opencl/test_groups.py runs those of one of several
members, tests/backends/llvm/test_groups.py and test_item_lanes.py those of a loop over all."""

ENDS = {"jump", "branch", "switch", "return", "leave", "trap", "host", "halt", "throw"}


def test_every_operation_is_run_by_the_evaluator() -> None:
    missing = {
        name
        for name in set(SHAPES) - ENDS - OF_GROUPS
        if not hasattr(Evaluator, name)
        and not hasattr(Evaluator, f"_do_{name}")
        and not hasattr(LaneEvaluator, f"do_{name}")
    }
    assert not missing
