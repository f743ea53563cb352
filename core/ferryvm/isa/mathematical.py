# SPDX-License-Identifier: Apache-2.0
"""Instructions of mathematical functions."""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Emitter
from ferryvm.isa.mathematics import FUNCTIONS
from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.table import instruction

V = TypeVar("V")


def _function(function: PureFunction) -> None:
    def meaning(m: Emitter[V], *operands: V) -> V:
        return m.apply(function, *operands)

    meaning.__doc__ = function.summary
    instruction(function.name, pops=function.parameters, pushes=(function.result,))(meaning)


for _each in FUNCTIONS.values():
    _function(_each)
