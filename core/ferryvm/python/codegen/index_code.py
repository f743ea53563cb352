# SPDX-License-Identifier: Apache-2.0
"""Indices of Python, of which negative ones count from the end: for arrays, lists and tuples."""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.build import Function, Local


def push_from_end(f: Function, index: Local, push_size: Callable[[], object]) -> None:
    """Push the index in a local; where it is negative, the size, which `push_size` pushes, is
    added."""
    f.local_get(index)
    push_size()
    f.i64_const(0)
    f.local_get(index)
    f.i64_const(0)
    f.i64_lt_s()
    f.select()
    f.i64_add()
