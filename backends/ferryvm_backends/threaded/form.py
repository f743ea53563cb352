# SPDX-License-Identifier: Apache-2.0
"""The form of the code with fused instructions, which do not cross cells.

A fused instruction may cover a pc after its first only while that has no cell. The handlers depend
on the present set of cells, not on the order in which they were installed: without cells they are
those that `Fusion` chose for the whole code, and removing the last cell restores them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Sequence

from ferryvm_backends._llvm.form import CellOperations, Form
from ferryvm_backends.threaded.fusion import Fusion


class FusedForm(Form):
    """A form whose operations are handlers, some of which run several instructions."""

    def __init__(
        self,
        fusion: Fusion,
        handlers: Sequence[int],
        opcodes: list[int],
        make: Callable[[list[int]], array[int]],
        cells: CellOperations,
        launches: Container[int],
        publish: Callable[[int, int], None],
    ) -> None:
        """`handlers`: the address of each, by its number; `make`: the code with those handlers."""
        chosen = fusion.handlers(opcodes)
        super().__init__(make([handlers[number] for number in chosen]), cells, launches, publish)
        self._fusion, self._handlers = fusion, handlers
        self._opcodes = opcodes
        self._chosen = array("I", chosen)
        """The handler's number for each pc without cells."""

    def _choose_before(self, pc: int) -> None:
        for start in range(max(0, pc - self._fusion.longest + 1), pc):
            number = self._chosen[start]
            end = start + self._fusion.length(number)
            if end > pc:
                for cell in range(start + 1, end):
                    if cell in self.places:
                        number = self._fusion.handlers(self._opcodes[start:cell])[0]
                        break
                self._set_original(start, self._handlers[number])
