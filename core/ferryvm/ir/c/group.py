# SPDX-License-Identifier: Apache-2.0
"""Barriers and arrays of groups, as OpenCL C statements (The OpenCL Specification 1.2, 6.12.8)."""

from __future__ import annotations

from ferryvm.ir.c.scope import FunctionScope
from ferryvm.ir.graph import Operation


class Groups:
    """Prints operations of groups."""

    def __init__(self, scope: FunctionScope) -> None:
        self.scope = scope

    def do_member(self, operation: Operation) -> str:
        return "member"

    def do_group_array(self, operation: Operation) -> str:
        """No value: accesses name the array."""
        return "0"

    def do_barrier(self, operation: Operation) -> None:
        self.scope.lines.add(f"barrier({self.scope.shared.choices.fence});")
