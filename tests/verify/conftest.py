# SPDX-License-Identifier: Apache-2.0
"""What the tests of the verifier share: programs of a few lines."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

import ferryvm
from ferryvm import Program, Verified
from ferryvm.program import SourceMap
from ferryvm.verify import verify


@pytest.fixture
def assemble() -> Callable[[str], Program]:
    """The program of a text, in which ` / ` ends a line, without source positions."""

    def assemble(text: str) -> Program:
        program = ferryvm.assemble(text.replace(" / ", "\n"))
        return dataclasses.replace(program, source_map=SourceMap())

    return assemble


@pytest.fixture
def verified(assemble: Callable[[str], Program]) -> Callable[[str], Verified]:
    """The verified program of a text."""
    return lambda text: verify(assemble(text))
