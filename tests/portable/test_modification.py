# SPDX-License-Identifier: Apache-2.0
"""The three modifications of TornadoVM's interoperability mode, with the texts that docs/export.md
shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ferryvm
from ferryvm.portable import export_region
from ferryvm.verify import verify

from ..command import ferry

ROOT = Path(__file__).parents[2]
ARRAYS = ROOT / "examples" / "arrays.skiff"


def plain(text: str) -> str:
    """A text without indentation, and without comments."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return "\n".join(line for line in map(str.strip, text.splitlines()) if line)


@pytest.fixture(scope="module")
def before() -> str:
    """The kernel that ferryvm itself runs."""
    pytest.importorskip("pyopencl")
    words = ("compile", ARRAYS, "--region", "dot", "--backend", "opencl", "--emit", "opencl")
    shown = ferry(*words)
    assert shown.code == 0, shown.err
    return plain(shown.out)


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The exported text."""
    folder = tmp_path_factory.mktemp("export") / "dot"
    export_region(verify(ferryvm.read(ARRAYS)), "dot", folder)
    return plain((folder / "dot.c").read_text("utf-8"))


@pytest.fixture(scope="module")
def shown() -> list[str]:
    """The texts on the page: two of each modification, before and after."""
    page = (ROOT / "docs" / "export.md").read_text("utf-8")
    section = page[page.index("\n## Three modifications") : page.index("\n## Speed")]
    return [plain(text) for text in re.findall(r"```c\n(.*?)```", section, re.DOTALL)]


def test_parameters_of_the_runtime_are_gone(before: str, after: str, shown: list[str]) -> None:
    assert shown[0] in before
    assert shown[1] in after
    assert not re.search(r"_buffer|_at\b|control|stack|heap", after)


def test_headers_are_in_no_address(before: str, after: str, shown: list[str]) -> None:
    assert shown[2] in before
    assert shown[3] in after
    assert not re.search(r"objects|object_load|header|<< 3", after)


def test_sizes_are_parameters(after: str) -> None:
    for name in ("a_length", "b_length"):
        assert f"int64_t {name}" in after
        assert re.search(rf"p1 >= {name}_\)", after)
