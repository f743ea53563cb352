# SPDX-License-Identifier: Apache-2.0
"""The example in C, which knows the documentation and the exported scripts and nothing else."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferryvm.isa import INSTRUCTIONS
from ferryvm.registry import Registry
from ferryvm.testing.conformance.export import lines
from ferryvm.testing.conformance.suite import Item, items

from ..tier import sample

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "c-backend"
KNOWN = 189
"""Instructions that the interpreter has. One that the table has got since may be refused."""

COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
MISSING = [name for name in ("make", "awk") if not shutil.which(name)]
pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="no C compiler: neither cc, gcc nor clang"),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]


def _is_chosen(item: Item) -> bool:
    """All groups and all manners but `cuts`, without what takes the reference long."""
    if item.group == "instruction":
        return item.manner == "counting"
    return item.manner != "cuts" and not (
        item.group == "call" and item.manner in ("plain", "counting")
    )


def _build(folder: Path, before: str = "", after: str = "") -> Path:
    """The runner, made of the example with a piece of the interpreter's text changed."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("conformance", "opcodes.h"))
    source = folder / "interpreter.c"
    text = source.read_text("utf-8")
    assert before in text
    source.write_text(text.replace(before, after, 1) if before else text, "utf-8")
    reference = ROOT / "docs" / "isa.md"
    command = ["make", f"CC={COMPILER}", "CPPFLAGS=-Werror", f"REFERENCE={reference}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return folder / "conformance"


def _run(runner: Path, scripts: list[str]) -> tuple[int, list[str]]:
    """Its exit code, and a line for each script."""
    done = subprocess.run(
        [runner],
        input="".join(scripts),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    results = done.stdout.splitlines()
    assert len(results) == len(scripts)
    return done.returncode, results


def _verdicts(results: list[str]) -> Counter[str]:
    return Counter(result.partition(" ")[0] for result in results)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build(tmp_path_factory.mktemp("example") / "whole")


def _lines(*labels: str) -> list[str]:
    reference = Registry().get("reference")
    chosen = [item for item in items() if (item.label in labels if labels else _is_chosen(item))]
    return [line for item in chosen for line in lines(item, reference)]


@pytest.mark.nightly
def test_all_that_is_chosen_passes(runner: Path) -> None:
    scripts = _lines()
    code, results = _run(runner, scripts)
    verdicts = _verdicts(results)
    assert code == 0
    assert verdicts["passed"] + verdicts["refused"] == len(scripts) > 1500
    refused = {result.split("/")[1] for result in results if result.startswith("refused ")}
    assert len(INSTRUCTIONS) - len(refused) >= KNOWN
    groups = {result.removeprefix("passed ").partition("/")[0] for result in results}
    missing = {"barrier", "exception", "launch", "object"}  # the example refuses them, and says so
    assert groups >= {item.group for item in items()} - missing


def _flips(line: str) -> Iterator[str]:
    """The script with a bit flipped in one field of what is expected where it is entered."""
    script = json.loads(line)
    for number, step in enumerate(script["steps"]):
        if step["do"] != "enter":
            continue
        for field, value in step["expected"].items():
            wrong = copy.deepcopy(script)
            state = wrong["steps"][number]["expected"]
            if isinstance(value, int):
                state[field] ^= 1
            elif value and isinstance(value[0], str):
                state[field][0] = f"{int(value[0][0], 16) ^ 1:x}{value[0][1:]}"
            else:
                state[field] = [8, *value]
            yield json.dumps(wrong, separators=(",", ":")) + "\n"


@pytest.mark.nightly
@pytest.mark.parametrize(
    "label",
    sample(["value/high-halves/plain", "heap/exhaustion/counting", "fuel/hosts/counting"], 1),
)
def test_flipped_expectations_fail(runner: Path, label: str) -> None:
    scripts = [wrong for line in _lines(label) for wrong in _flips(line)]
    code, results = _run(runner, scripts)
    assert code == 1
    assert _verdicts(results) == {"failed": len(scripts)}
    assert len(scripts) > 8


@pytest.mark.parametrize(
    ("before", "after", "label", "result"),
    [
        pytest.param(
            "a >= b, INDEX",
            "a > b, INDEX",
            "trap/in-a-callee-index/plain",
            "failed trap/in-a-callee-index/plain: trap/in-a-callee-index, "
            "step 1: status: expected 4, found 1",
            id="index",
        ),
        pytest.param(
            "stack[top] = pc + 1;",
            "stack[top] = 1ul << 40;",
            "trap/on-the-way-back/plain",
            "failed trap/on-the-way-back/plain: Segmentation fault",
            id="crash",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            "OP(heap_size, PUSH(hp))",
            "",
            "instruction/heap.size/counting",
            "refused instruction/heap.size/counting",
            id="lacking",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_what_is_wrong_with_the_interpreter_is_seen(
    tmp_path: Path, before: str, after: str, label: str, result: str
) -> None:
    _, results = _run(_build(tmp_path / "changed", before, after), _lines(label))
    assert result in results
