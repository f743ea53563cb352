# SPDX-License-Identifier: Apache-2.0
"""docs/conformance.md says what there is, and shows what is printed."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from ferryvm.cli.command import ferry
from ferryvm.registry import Registry
from ferryvm.testing.conformance import script
from ferryvm.testing.conformance.expected import read_expected
from ferryvm.testing.conformance.export import lines
from ferryvm.testing.conformance.suite import checks, items

from ..double.distribution import plant_backend

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")


def _first_cells(heading: str) -> set[str]:
    """Names in the first column of the table whose head begins with that cell."""
    table = PAGE.split(f"| {heading} |", 1)[1].split("\n\n", 1)[0]
    rows = [line.split(" | ")[0] for line in table.splitlines()[2:]]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_number_of_cases_is_the_page_s() -> None:
    assert f"`test_conformance[GROUP/NAME/MANNER]`, {len(checks())} in all" in PAGE


def test_every_group_is_on_the_page() -> None:
    assert _first_cells("group") == {item.group for item in checks()}


@pytest.mark.nightly
def test_every_field_and_step_of_an_export_is_on_the_page() -> None:
    reference = Registry().get("reference")
    found = [
        json.loads(line)
        for item in items()
        if item.group in ("interrupt", "saved")
        or item.name in ("growths", "order", "floats", "elements-outside")
        for line in lines(item, reference)
    ]
    assert _first_cells("field of a line") == {field for line in found for field in line}
    steps = [step for line in found for step in line["steps"]]
    kinds = {step["do"] for step in steps}
    assert _first_cells("`do`") == kinds
    classes = {name.lower() for name, _ in inspect.getmembers(script, inspect.isclass)}
    assert kinds <= classes
    assert _first_cells("`trail` | the state") == {
        step["trail"] for step in steps if "trail" in step
    }
    table = PAGE.split("| `do` |", 1)[1].splitlines()
    for step in steps:
        row = next(line for line in table if line.startswith(f"| `{step['do']}` |"))
        fields = set(step) - {"do", "machine"}
        assert not {field for field in fields if f"`{field}`" not in row}
        for state in (step.get("expected"), step.get("state")):
            assert not {field for field in state or {} if f"`{field}`" not in PAGE}


def test_output_on_the_page_is_what_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant_backend(tmp_path / "site", "mine", 'Wrong(WRONG["pops at a trap"][0])')
    monkeypatch.syspath_prepend(tmp_path / "site")
    block = re.split(r"\n\n(?=\S)", PAGE.split("    $ ferry ", 1)[1], maxsplit=1)[0]
    command, *shown = [line.removeprefix("    ").rstrip() for line in block.splitlines()]
    result = CliRunner().invoke(ferry, command.split(), standalone_mode=False)
    printed = [line.rstrip() for line in result.output.splitlines()]
    gap = shown.index("...")
    rest = len(shown) - gap - 1
    assert printed[:gap] == shown[:gap]
    printed[-1] = re.sub(r"[\d.]+ s$", "0.0 s", printed[-1])
    assert printed[-rest:] == shown[-rest:]


def test_table_of_expected_failures_on_the_page_is_one(tmp_path: Path) -> None:
    block = PAGE.split("    [xfail]\n", 1)[1].split("\n\n", 1)[0]
    file = tmp_path / "known.toml"
    file.write_text("[xfail]\n" + textwrap.dedent(block), encoding="utf-8")
    assert len({entry.name for entry in read_expected(file).values()}) == 3
