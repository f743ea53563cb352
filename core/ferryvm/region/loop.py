# SPDX-License-Identifier: Apache-2.0
"""The natural loops of a function's bytecode, with the names by which users refer to them.

`ferryvm.flowgraph.loop` finds them. A block is called by the pc of its first instruction.
"""

from __future__ import annotations

import dataclasses

from ferryvm.flowgraph.loop import NaturalLoop


@dataclasses.dataclass(eq=False)
class Loop(NaturalLoop):
    """A natural loop; one loop of a function is one object."""

    function: str
    """Name of the function that it is in."""

    @property
    def name(self) -> str:
        """Its name, the same in every run: `work/loop.2.1`."""
        return f"{self.function}/loop.{self.path}"
