# SPDX-License-Identifier: Apache-2.0
"""Words that code of a launch takes for constant: arguments that all items share, and statics.

The words are checked where such code is entered. Items do not change them: arguments are the
launch's own, and statics that an item may write are no candidates.
"""

from __future__ import annotations

from ferryvm.isa.type import Type
from ferryvm.named_tuple import NamedTuple
from ferryvm.region.call import call_graph
from ferryvm.region.effect import function_effects
from ferryvm.region.launch import CALL_DISTANCE
from ferryvm.region.memo import memoised
from ferryvm.verify import Verified


class KnownWord(NamedTuple):
    """A word and its value."""

    is_static: bool
    number: int
    """Of a static, or of an argument among those that the items of the launch share, from 0."""
    bits: int
    """Its value. Floats with other bits are other words, so -0 is not 0, and a NaN is itself."""


@memoised
def candidates(verified: Verified, launch: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Numbers of the arguments and of the statics that the items of the launch at a pc may use as
    constants: numbers that no item writes."""
    program = verified.program
    item = program.code.immediates[launch + CALL_DISTANCE]
    parameters = program.signature(item).parameters[1:]
    calls = call_graph(verified)
    arguments = tuple(k for k, t in enumerate(parameters) if isinstance(t, Type))
    if item in calls.reached(calls.direct[item]):
        arguments = ()  # it has other arguments there
    effects = function_effects(verified, item)
    statics = sorted(effects.statics_read - effects.statics_written)
    return arguments, tuple(n for n in statics if isinstance(program.statics[n].type, Type))
