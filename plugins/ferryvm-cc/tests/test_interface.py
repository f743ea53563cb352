# SPDX-License-Identifier: Apache-2.0
"""The plugin uses ferryvm's public interface, and nothing of its backends."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ferryvm_cc

MODULES = sorted(Path(ferryvm_cc.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.stem)
def test_nothing_private_of_ferryvm_is_imported(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [*node.module.split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [part for alias in node.names for part in alias.name.split(".")]
        else:
            continue
        if names[0].startswith("ferryvm"):
            assert names[0] in ("ferryvm", "ferryvm_cc")
            assert not any(name.startswith("_") for name in names)
