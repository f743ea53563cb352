# SPDX-License-Identifier: Apache-2.0
"""Functions of the instruction table as helpers in C."""

from __future__ import annotations

from ferryvm.ir.c import C11
from ferryvm.ir.c.function_helper import function_definitions
from ferryvm.ir.function_body import function_body
from ferryvm.isa.mathematics import FUNCTIONS, PARTS


def test_function_for_rare_operands_is_defined_before_and_applied_in_a_selection() -> None:
    used = {"ferry_f64_sin"}
    huge, sine = function_definitions(C11, used)
    assert "ferry_f64_sin_huge(double a0)" in huge
    assert "? ferry_f64_sin_huge(a0) : " in sine
    assert "ferry_f64_sin_huge" in used


def test_only_functions_that_apply_another_one_conditionally_have_such_applications() -> None:
    found = {name for name, each in FUNCTIONS.items() if function_body(each).conditional()}
    assert found == {name.rpartition("_")[0] for name in PARTS}
