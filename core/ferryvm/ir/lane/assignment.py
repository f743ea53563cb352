# SPDX-License-Identifier: Apache-2.0
"""Assignments of edges in lanes: parameters of blocks, masks, and values that are used behind
loops.

An edge assigns where it begins, in the lanes that take it. If another edge to the same block has
assigned before, in other lanes, the two are blended. The edge out of a divergent loop also assigns
what the loop defines and later code uses: each lane keeps that of its own last iteration.
"""

from __future__ import annotations

import dataclasses

from ferryvm.ir.graph import BOOLEAN, Block, Body, Constant, Edge, Parameter, Value, ValueType
from ferryvm.ir.lane.emission import Emission
from ferryvm.ir.lane.order import Nest
from ferryvm.ir.lane.variable import LaneValue, Variable
from ferryvm.ir.loop.natural import Loop


@dataclasses.dataclass
class Assumptions:
    """Assumptions until the code shows otherwise."""

    varying: set[Value] = dataclasses.field(default_factory=set)
    """Parameters of loops that are varying although their initial values are not."""
    divergent: set[Loop] = dataclasses.field(default_factory=set)


class Assignments:
    """The variables of an item's code, and the edges that assign them."""

    def __init__(self, item: Body, nest: Nest, assumed: Assumptions, emission: Emission) -> None:
        self.item, self.nest, self.assumed, self.emission = item, nest, assumed, emission
        self._old = item.blocks[0]
        self._of: dict[object, Variable] = {}
        self._live_out: dict[Loop, dict[Value, Variable]] = {loop: {} for loop in nest.loops}
        self._find_live_out()

    def start(self, old: Block) -> None:
        """Go on with a block of the item's code."""
        self._old = old

    def _made(self, key: object, variable: Variable) -> Variable:
        return self._of.setdefault(key, variable)

    def variable(self, value: Value) -> Variable:
        """The variable of a value, where it is used."""
        block = self.nest.graph.blocks[self.nest.graph.definitions[value]]
        home = self.nest.around[block]
        if isinstance(value, Parameter) and not self.nest.is_header(block):
            return self._assigned(value, value.type, block, home)
        return self._made(value, Variable(value.type, home))

    def _assigned(self, key: object, t: ValueType, block: Block, home: Loop | None) -> Variable:
        """A variable that edges to a block assign."""
        if key not in self._of:
            graph = self.nest.graph
            sources: set[Loop] = set()
            for source, _ in graph.incoming[graph.places[block]]:
                loop = self.nest.around[graph.blocks[source]]
                while loop is not home and loop is not None:
                    sources.add(loop)
                    loop = loop.parent
            self._of[key] = Variable(t, home, frozenset(sources))
        return self._of[key]

    def _home(self, block: Block, *, is_back: bool) -> Loop | None:
        """The loop in which edges to a block assign."""
        loop = self.nest.around[block]
        if self.nest.is_header(block) and not is_back:
            return self.nest.headed(block).parent
        return loop

    def passed(self, parameter: Parameter, block: Block, *, is_back: bool = False) -> Variable:
        """The variable that edges to a block assign for one of its parameters."""
        if not self.nest.is_header(block):
            return self.variable(parameter)
        home = self._home(block, is_back=is_back)
        return self._assigned((parameter, is_back), parameter.type, block, home)

    def mask(self, block: Block, *, is_back: bool = False) -> Variable:
        """The mask with which edges lead to a block."""
        home = self._home(block, is_back=is_back)
        return self._assigned((block, is_back), BOOLEAN, block, home)

    def _find_live_out(self) -> None:
        """Find the values that are used behind a divergent loop that defines them."""
        definitions = self.nest.graph.definitions
        for block in self.item.blocks:
            for operation in (*block.operations, block.end):
                for value in operation.uses():
                    if value not in definitions:
                        continue
                    origin = self.nest.graph.blocks[definitions[value]]
                    loops = self.nest.exited(origin, block)
                    for loop in loops:
                        if loop in self.assumed.divergent:
                            inside = {*self.nest.loops}
                            sources = {each for each in inside if loop.contains(each)}
                            variable = Variable(value.type, loop.parent, frozenset(sources))
                            self._live_out[loop].setdefault(value, variable)

    def value(self, value: Value) -> LaneValue:
        """The value in lanes of one that is used in the current block."""
        if isinstance(value, Constant):
            return LaneValue(self.emission.constant(value.type, value.bits))
        if value not in self.nest.graph.definitions:  # it is defined around the items' loop
            return LaneValue(value)
        variable = self.variable(value)
        origin = self.nest.graph.blocks[self.nest.graph.definitions[value]]
        for loop in self.nest.exited(origin, self._old):
            if loop in self.assumed.divergent:
                variable = self._live_out[loop][value]
        return self.read(variable)

    def read(self, variable: Variable) -> LaneValue:
        """The value of a variable at the end of the current block of the body of lanes."""
        found = self.emission.variables.read(self.emission.block, variable)
        if found is None:  # only where no lane takes part
            return LaneValue(self.emission.nothing(variable.type))
        return found

    def take(self, edge: Edge, mask: Value) -> None:
        """Assign what an edge passes, in the lanes that take it."""
        emission, block = self.emission, self.emission.block
        variables = emission.variables
        target = edge.block
        for loop in self.nest.exited(self._old, target):
            if loop in self.assumed.divergent:
                for value, variable in self._live_out[loop].items():
                    self._assign(variable, mask, self.value(value))
        found = [self.value(argument) for argument in edge.arguments]
        for parameter, each in zip(target.parameters, found, strict=True):
            self._assign(self.passed(parameter, target, is_back=edge.is_back), mask, each)
        variable = self.mask(target, is_back=edge.is_back)
        variables.write(block, variable, emission.either(variables.read(block, variable), mask))

    def _assign(self, variable: Variable, mask: Value, value: LaneValue) -> None:
        block = self.emission.block
        old = self.emission.variables.read(block, variable)
        self.emission.variables.write(block, variable, self.emission.blend(mask, value, old))
