# SPDX-License-Identifier: Apache-2.0
"""Python functions of everyday numeric code, and arguments for them."""

from . import (  # noqa: F401  # they add cases
    array,
    array_graph,
    array_part,
    array_search,
    bit,
    byte_text,
    complex_number,
    digit,
    dynamic_programming,
    exception,
    finance,
    function_value,
    fuzzed,
    geometry,
    given_function,
    inner_function,
    list_algorithm,
    match,
    mixed_list,
    mixed_number,
    number,
    number_theory,
    numeric_analysis,
    semantics,
    simple_list,
    slice_step,
    statistic,
    text,
    text_method,
    view,
)
from .case import CASES

__all__ = ["CASES"]
