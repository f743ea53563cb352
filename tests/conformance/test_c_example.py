# SPDX-License-Identifier: Apache-2.0
"""The example in C, which knows ferryvm's documentation and the exported cases only, passes them."""

from __future__ import annotations

import fnmatch
import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ferryvm.isa import INSTRUCTIONS
from ferryvm.registry import Registry
from ferryvm.testing.conformance.export import export
from ferryvm.testing.conformance.suite import items

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "c-backend"
PATTERNS = ("call/indirect*/*", "entry/*/exits", "fuel/*/again*", "heap/*", "host/*", "idiom/*/moved",
    "interrupt/*", "jump/*/plain", "saved/*", "trap/*", "value/*", "instruction/*/counting")  # fmt: skip
COMPILER = next(filter(shutil.which, ("cc", "gcc", "clang")), None)
MISSING = [name for name in ("make", "awk") if not shutil.which(name)]

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="there is no C compiler (cc, gcc, clang)"),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    pytest.mark.skipif(os.name != "posix", reason="the example needs fork and mmap"),
]


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    return _built(folder)


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("cases")
    chosen = [i for i in items() if any(fnmatch.fnmatch(i.label, p) for p in PATTERNS)]
    export(chosen, folder, Registry().get("reference"))
    files = sorted(folder.rglob("*.jsonl"))
    return [line for file in files for line in file.read_text("utf-8").splitlines()]
