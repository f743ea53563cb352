# SPDX-License-Identifier: Apache-2.0
"""Names of exported arguments and functions hide no function that the printed text calls."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import ferryvm
from ferryvm.errors import FerryError
from ferryvm.portable.identifier import HELPERS, entry_name, identifier, identifiers


def roots(unlikely: Any, f64_of_bits: Any, sqrt: Any, y: Any) -> Any:
    """A function whose arguments have names of helpers, and of a function of C's library."""
    total = 0.0
    for i in range(len(y)):
        total += math.sqrt(y[i]) * unlikely + f64_of_bits // sqrt
    return total


def test_a_name_of_a_helper_is_changed() -> None:
    assert {"unlikely", "sqrt_f64", "load_8"} <= HELPERS
    assert not {identifier(name) for name in HELPERS} & HELPERS
    assert identifiers(["unlikely", "unlikely_"]) == ["unlikely_", "unlikely__2"]


def test_a_name_of_a_function_of_the_instruction_table_is_changed() -> None:
    assert identifier("sin_f64") == "sin_f64_"


@pytest.mark.parametrize("target", ["c", "opencl"])
def test_arguments_of_an_export_hide_no_helper(target: str, tmp_path: Path) -> None:
    made = ferryvm.export(roots, (float, float, float, "float64[:]"), tmp_path / "x", target=target)
    names = [argument.name for argument in made.interface.arguments]
    assert names == ["unlikely_", "f64_of_bits_", "sqrt", "y"]


def test_a_function_with_the_name_of_a_helper_is_refused() -> None:
    with pytest.raises(FerryError, match="is a function that exported text calls; choose another"):
        entry_name("fenced", "kernel")
