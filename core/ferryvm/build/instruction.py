# SPDX-License-Identifier: Apache-2.0
"""Every instruction of the table as a method. `instruction.pyi` declares them for type checkers;
`ferryvm.build.stub` writes it, and a test compares it with the table."""

from __future__ import annotations

from ferryvm.build.body import Body, method_name
from ferryvm.build.method import made
from ferryvm.isa import INSTRUCTIONS


class Instructions(Body):
    """Code to which instructions can be appended."""


for _row in INSTRUCTIONS:
    setattr(Instructions, method_name(_row), made(_row))
