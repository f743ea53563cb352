# SPDX-License-Identifier: Apache-2.0
"""A kernel in Python compared with itself: CPython, and each backend.

check_kernel(kernel, n, *arguments)  ──>  exceptions, and what is in the arrays afterwards, bit for bit
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any

from ferryvm.failure import shown
from ferryvm.python.fault import UnsupportedError
from ferryvm.python.group.kernel import Kernel, launch
from ferryvm.python.hosted.work_item import KernelError
from ferryvm.testing.kernel_run import run_kernel
from ferryvm.testing.python_check import (
    Outcome,
    PythonDifferenceError,
    is_same,
    outcome_of,
    usable_backends,
)

_ITEM = re.compile(r"(^|, )in (item|group) [^a-zA-Z].* of kernel \w+$")
"""The item at the end of a message."""


def check_kernel(
    kernel: Kernel[...],
    n: int | Sequence[int],
    /,
    *arguments: Any,
    group: int | Sequence[int] | None = None,
    backends: Sequence[str] | None = None,
    races: bool = True,
) -> tuple[Any, ...]:
    """The arguments after a launch of a kernel, after a comparison of all backends with CPython:
    type and message of the exception, or the arrays afterwards, bit for bit.

    Arguments as of `ferryvm.launch`; each run has copies of them. `backends`: their names; by
    default all that can run here. `races`: check that items are independent, too, and raise
    KernelError if they are not. Raises PythonDifferenceError, which names the backend and both
    outcomes, and the exception of CPython if all agree on it.
    """
    wanted = outcome_of(lambda *given: run_kernel(kernel, n, *given, group=group), arguments)
    for backend in usable_backends() if backends is None else backends:
        found = outcome_of(
            lambda *given: launch(kernel, n, *given, group=group, backend=backend),  # noqa: B023  # called at once
            arguments,
        )
        if isinstance(found.error, UnsupportedError):
            raise found.error
        difference = _difference(wanted, found)
        if difference:
            raise PythonDifferenceError(f"{kernel.__name__} on {backend}: {difference}")
    if wanted.error is not None:
        raise wanted.error
    if races:
        launch(kernel, n, *copy.deepcopy(arguments), group=group, check="independence")
    return tuple(wanted.arguments)


def _difference(wanted: Outcome, found: Outcome) -> str:
    """The difference between CPython's outcome and another one; empty if there is none."""
    raised, error = wanted.error, found.error
    if type(error) is not type(raised):
        return f"{_shown(error)}; CPython: {_shown(raised)}"
    if error is not None:  # other items may have run
        is_like = isinstance(error, KernelError) or _ITEM.sub("", str(error)) == str(raised)
        return "" if is_like else f"{_shown(error)}; CPython: {_shown(raised)}"
    for number, (a, b) in enumerate(zip(wanted.arguments, found.arguments, strict=True)):
        if not is_same(a, b):
            return f"argument {number + 1} is {shown(b)} afterwards; CPython: {shown(a)}"
    return ""


def _shown(error: Exception | None) -> str:
    return "no exception" if error is None else f"{type(error).__name__}({str(error)!r})"
