# SPDX-License-Identifier: Apache-2.0
"""Values of the scalar body in the body of lanes: variables, in SSA form where they are read.

Linearised control flow leads to blocks by other paths than before, so a definition need not
dominate its uses any more, and a parameter is assigned where an edge began, once for each edge.
Where paths meet, a block gets parameters for what is read behind it. (Braun et al.: Simple and
Efficient Construction of Static Single Assignment Form, CC 2013.)

A variable is visible in one iteration of its loop. Only in a divergent loop inside that, from which
lanes leave in different iterations, it keeps what lanes that have left were assigned.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ferryvm.ir.graph import Block, Edge, Parameter, Value, ValueType
from ferryvm.ir.lane.shape import UNIFORM, VARYING, Shape
from ferryvm.ir.loop.natural import Loop
from ferryvm.named_tuple import NamedTuple


class LaneValue(NamedTuple):
    """A value in lanes: that of the first lane, and the stride; or a varying value."""

    value: Value
    shape: Shape = UNIFORM


@dataclasses.dataclass(eq=False)
class Variable:
    """A variable."""

    type: ValueType
    home: Loop | None
    """The innermost loop around its uses; None: it is outside of all loops."""
    sources: frozenset[Loop] = frozenset()
    """Loops inside that one in which it is assigned."""


class Variables:
    """The values of variables at the ends of blocks."""

    def __init__(
        self,
        materialise: Callable[[LaneValue, Block], Value],
        nothing: Callable[[ValueType], Value],
        varying: set[Value],
    ) -> None:
        """`materialise`: the value of each lane as one operand in a block; `nothing`: some value,
        for lanes that never look at it; `varying`: receives new varying parameters."""
        self._materialise, self._nothing, self._varying = materialise, nothing, varying
        self._found: dict[Block, dict[Variable, LaneValue | None]] = {}
        self.incoming: dict[Block, list[tuple[Block, Edge]]] = {}
        """Edges to each block, each with its source; of a header only the entry until it is
        sealed."""
        self.headers: dict[Block, tuple[Loop, bool]] = {}
        """Headers of loops; True: the loop is divergent."""
        self._bound: dict[Edge, dict[Parameter, Value]] = {}
        self._pending: dict[Block, list[tuple[Variable, Parameter]]] = {}
        """Of headers that are not sealed, the variables of parameters without arguments."""

    def write(self, block: Block, variable: Variable, value: LaneValue) -> None:
        """Assign at the current end of a block."""
        self._found.setdefault(block, {})[variable] = value

    def read(self, block: Block, variable: Variable) -> LaneValue | None:
        """The value at the current end of a block; None if no path assigns one."""
        found = self._found.setdefault(block, {})
        if variable not in found:
            found[variable] = self._read_before(block, variable)
        return found[variable]

    def _read_before(self, block: Block, variable: Variable) -> LaneValue | None:
        incoming = self.incoming.get(block, [])
        if block in self.headers:
            loop, is_divergent = self.headers[block]
            if loop is variable.home:
                return None
            if is_divergent and loop in variable.sources:
                return self._carried(block, variable)
            return self.read(incoming[0][0], variable)
        if not incoming:
            return None
        found = [self.read(source, variable) for source, _ in incoming]
        present = [each for each in found if each is not None]
        if not present:
            return None
        if len(present) == len(found) and all(each == present[0] for each in present):
            return present[0]
        shapes = {each.shape for each in present}
        shape = shapes.pop() if len(shapes) == 1 else VARYING
        parameter = self.parameter(block, variable.type, shape)
        for (source, edge), each in zip(incoming, found, strict=True):
            self.bind(edge, parameter, self._argument(each, shape, variable.type, source))
        return LaneValue(parameter, shape)

    def _carried(self, header: Block, variable: Variable) -> LaneValue:
        """The parameter for what a variable was assigned in earlier iterations of a loop."""
        parameter = self.parameter(header, variable.type, VARYING)
        value = LaneValue(parameter, VARYING)
        self.write(header, variable, value)
        is_sealed = len(self.incoming[header]) > 1
        if is_sealed:
            self._complete(header, variable, parameter)
        else:
            self._pending.setdefault(header, []).append((variable, parameter))
        return value

    def parameter(self, block: Block, t: ValueType, shape: Shape) -> Parameter:
        """A new parameter of a block."""
        parameter = Parameter(t)
        block.parameters.append(parameter)
        if shape is VARYING:
            self._varying.add(parameter)
        return parameter

    def _argument(
        self, found: LaneValue | None, shape: Shape, t: ValueType, source: Block
    ) -> Value:
        if found is None:
            return self._nothing(t)
        return found.value if shape is not VARYING else self._materialise(found, source)

    def seal(self, header: Block, latch: Block, edge: Edge) -> None:
        """Complete the parameters of a header, whose back edge leads from a latch."""
        self.incoming[header].append((latch, edge))
        for variable, parameter in self._pending.pop(header, []):
            self._complete(header, variable, parameter)

    def _complete(self, header: Block, variable: Variable, parameter: Parameter) -> None:
        """Give a parameter of a header its arguments."""
        for source, edge in self.incoming[header]:
            found = self.read(source, variable)
            self.bind(edge, parameter, self._argument(found, VARYING, variable.type, source))

    def bind(self, edge: Edge, parameter: Parameter, value: Value) -> None:
        """Pass a value along an edge for a parameter."""
        self._bound.setdefault(edge, {})[parameter] = value

    def finish(self) -> None:
        """Give all edges their arguments, in the order of the parameters."""
        for incoming in self.incoming.values():
            for _, edge in incoming:
                bound = self._bound.get(edge, {})
                edge.arguments = [bound[parameter] for parameter in edge.block.parameters]
