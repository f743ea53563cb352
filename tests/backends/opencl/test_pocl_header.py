# SPDX-License-Identifier: Apache-2.0
"""PoCL's header of built-in functions is left out, and nothing that kernels call is missing."""

from __future__ import annotations

import dataclasses
import re

import pyopencl as cl
import pytest

from ferryvm.ir.c.dialect import Dialect
from ferryvm.ir.c.opencl import opencl
from ferryvm.ir.c.opencl_item import items_dialect, one_item
from ferryvm.isa.type import F64
from ferryvm_backends.opencl import build, pocl_header
from ferryvm_backends.opencl.device import Device

from .test_build import GOOD

KNOWN = {
    *("if", "for", "while", "return", "sizeof", "defined", "__attribute__", "__asm__"),
    *("reqd_work_group_size", "overloadable", "const", "says"),
}
"""Words before a parenthesis that are no functions, and one of a message."""

OF_GROUPS = {"barrier", "get_local_id", "get_group_id"}
"""Functions that only kernels of reductions, scans and groups call."""

OTHERS = ("Intel(R) OpenCL", "OpenCL 3.0 PoCL 6.0")


@pytest.mark.parametrize("changed", [{"platform": OTHERS[0]}, {"platform_version": OTHERS[1]}])
def test_other_drivers_and_versions_get_the_text_alone(
    device: Device, changed: dict[str, str]
) -> None:
    other = dataclasses.replace(device, **changed)  # type: ignore[arg-type] # texts
    assert build.built_text(other, GOOD) == GOOD
    assert pocl_header.OPTION not in build.options(other)


def test_declarations_are_those_of_the_header(device: Device) -> None:
    if not pocl_header.is_replaced(device):
        pytest.skip(f"{device} is not the PoCL whose headers are known")
    # With the header, a declaration that it does not have would be a further function, and a call
    # of one of them ambiguous or not linked; a different result is an error of its own.
    calls = (
        "(float)clz(1u) + clz(1ul) + popcount(1u) + popcount(1ul) + sqrt(2.0f) + fma(1.0, 2.0, 3.0)"
    )
    source = f"{GOOD}double ferry_calls() {{ return {calls}; }}\n"
    plain = [each for each in build.options(device) if each != pocl_header.OPTION]
    cl.Program(build.session(device).context, pocl_header.DECLARATIONS + source).build(plain)


def called(dialect: Dialect) -> set[str]:
    """The functions that the helpers and the frame of kernels call and do not define."""
    text = "\n".join([dialect.prelude, *dialect.helpers.values(), dialect.entry])
    text = re.sub('_Pragma\\(".*"\\)', "_Pragma()", text)
    found = set(re.findall(r"\b([a-z_]\w*) ?\(", text))
    return {
        name
        for name in found - KNOWN
        if not name.startswith(("as_", "__builtin_", "__has_", "_Pragma"))
        and not re.search(rf"^(#define|[a-z_][\w *]*?) \*?{name}\(", text, re.MULTILINE)
    }


@pytest.mark.parametrize("apart", [False, True])
def test_each_function_that_kernels_call_is_declared(apart: bool) -> None:
    item = one_item("f", 1, [F64], 4)
    dialects = [opencl(apart=apart, objects=True)]
    dialects.append(items_dialect(item, aligned=False, apart=apart, objects=True))
    names = set(re.findall(r" (\w+)\(", pocl_header.DECLARATIONS)) - KNOWN
    found = set().union(*map(called, dialects))
    assert found == names - OF_GROUPS | {"f", "run"}  # those are made of a region
