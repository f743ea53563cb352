# SPDX-License-Identifier: Apache-2.0
"""Calling a function whose address is a value."""

from __future__ import annotations

from llvmlite import ir


class Callee:
    """An address as llvmlite wants a callee: it asks for the signature, which an opaque pointer
    has not."""

    type = ir.PointerType()

    def __init__(self, address: ir.Value, signature: ir.FunctionType) -> None:
        self._address, self.function_type = address, signature

    def get_reference(self) -> str:
        """The address as it stands in a call."""
        return str(self._address.get_reference())
