# SPDX-License-Identifier: Apache-2.0
"""Every instruction of the table as a method. `instruction.pyi` says the same to type checkers; it
is written by `ferryvm.build.stub`, and a test holds it against the table."""

from __future__ import annotations

from ferryvm.build.body import Body, method_name
from ferryvm.build.method import made
from ferryvm.isa import INSTRUCTIONS


class Instructions(Body):
    """Code that grows by instructions."""


for _row in INSTRUCTIONS:
    setattr(Instructions, method_name(_row), made(_row))
