# SPDX-License-Identifier: Apache-2.0
"""Faults in lifting and in the passes of the region IR."""

from __future__ import annotations

from .planting import CompilerFault

PASSES: list[CompilerFault] = []
"""In the order of the pipeline."""


def _put(module: str, backend: str, name: str, what: str, old: str, new: str) -> None:
    PASSES.append(CompilerFault(name, what, backend, f"ferryvm.ir.{module}", old, new))


# --- lifting --------------------------------------------------------------------------------------

_put(
    "lifter",
    "llvm",
    "poll-not-made",
    "Lifting makes the block of an edge that goes back, but no poll in it.",
    'poll.operations.append(Operation("poll", None, (), (), state))',
    "assert state is not None",
)
_put(
    "lifter",
    "llvm",
    "statics-not-dirty-at-joins",
    "Behind a join, exits do not write statics that were changed before.",
    "frozenset(self.written), pointer",
    "frozenset(), pointer",
)
_put(
    "lifter",
    "llvm",
    "payment-not-given-back",
    "An exit in the middle of a block keeps the fuel of instructions that have not completed.",
    "        self.unpaid = count\n",
    "        self.unpaid = 0\n",
)
_put(
    "lifter",
    "llvm",
    "dispatch-to-the-first-target",
    "A cycle with several entries is always entered at the first one.",
    "self.constant(I64, stop.numbers[target])",
    "self.constant(I64, 0)",
)
_put(
    "region_order",
    "llvm",
    "cycles-without-a-head",
    "Cycles that are entered in several places are lifted as they are.",
    "        if self._graph.irreducible:\n",
    "        if False:\n",
)
_put(
    "call",
    "llvm",
    "static-not-loaded-after-a-call",
    "After a call statics are assumed unchanged.",
    "            if any(number in e.statics_written for e in seen):\n",
    "            if False:\n",
)

_put(
    "exception",
    "llvm",
    "outer-clause-first",
    "Of the clauses around a call that take an exception the outermost one catches it.",
    "        covering = self.verified.clauses.covering(pc)\n",
    "        covering = self.verified.clauses.covering(pc)[::-1]\n",
)
_put(
    "exception",
    "llvm",
    "edges-of-tags-exchanged",
    "A call that catches several tags goes on at the handlers in the opposite order.",
    "(returned, *(found[tag] for tag in tags))",
    "(returned, *(found[tag] for tag in tags[::-1]))",
)
_put(
    "exception",
    "llvm",
    "record-of-the-first-tag",
    "The record of an exception that is caught has the number of the first tag.",
    "return [*references, self.constant(I64, tag), *numbers]",
    "return [*references, self.constant(I64, 0), *numbers]",
)
_put(
    "exception",
    "llvm",
    "record-read-from-its-tag-on",
    "What a record throws has the record's tag as its first value.",
    'self.close(Terminator("throw", (tag, first), (), here))',
    'self.close(Terminator("throw", (tag, first - 1), (), here))',
)
_put(
    "exception",
    "llvm",
    "operands-of-a-handler-from-one-tag",
    "A handler of several tags gets the operands that it has for the last one.",
    'block.terminator = Terminator("jump", edges=(Edge(join, passed),))',
    'block.terminator = Terminator("jump", edges=(Edge(join, [*blocks[-1][1]]),))',
)

# --- thread, prune, hoist -------------------------------------------------------------------------

_put(
    "passes.jump_threading",
    "llvm",
    "threaded-edge-loses-an-argument",
    "An edge that bypasses a block loses its last argument.",
    "edge.arguments = [values.get(a, a) for a in onward.arguments]",
    "edge.arguments = [values.get(a, a) for a in onward.arguments][:-1]",
)
_put(
    "passes.jump_threading",
    "llvm",
    "threaded-edge-keeps-the-parameters",
    "An edge that bypasses a block passes that block's parameters.",
    "edge.arguments = [values.get(a, a) for a in onward.arguments]",
    "edge.arguments = [*onward.arguments]",
)
_put(
    "passes.jump_threading",
    "llvm",
    "decided-the-other-way",
    "A branch on a constant goes the other way.",
    "return end.edges[0 if p.bits else 1]",
    "return end.edges[1 if p.bits else 0]",
)
_put(
    "passes.jump_threading",
    "llvm",
    "values-of-a-passed-block-forgotten",
    "Blocks whose values are used elsewhere are bypassed.",
    "        inner -= self._used_elsewhere(inner)\n",
    "        inner -= set()\n",
)
_put(
    "passes.jump_threading",
    "llvm",
    "joined-blocks-keep-parameters",
    "The arguments of a block that is merged into another do not replace its parameters.",
    "                new.update(zip(target.parameters, edge.arguments, strict=True))\n",
    "                new.update({})\n",
)
_put(
    "passes.dead_code",
    "llvm",
    "calls-are-dead-without-their-result",
    "A call whose result nobody uses is removed.",
    "operation.type is None or operation.name in EFFECTS:",
    "operation.type is None:",
)
_put(
    "passes.dead_code",
    "llvm",
    "parameter-is-its-first-argument",
    "A parameter is replaced by its argument on the first edge.",
    "{settled(edge.arguments[index]) for edge in edges} - {parameter}",
    "{settled(edge.arguments[index]) for edge in edges[:1]} - {parameter}",
)
_put(
    "passes.code_motion",
    "llvm",
    "division-moved-out-of-a-loop",
    "Divisions are moved in front of the check that they are defined.",
    "_MOVABLE = (PURE | _FIXED) - _PARTIAL - _SHIFTS",
    "_MOVABLE = (PURE | _FIXED) - _SHIFTS",
)
_put(
    "passes.code_motion",
    "llvm",
    "load-moved-out-of-a-loop",
    "Loads are moved out of loops that store.",
    "_MOVABLE = (PURE | _FIXED) - _PARTIAL - _SHIFTS",
    '_MOVABLE = (PURE | _FIXED | {"heap_load"}) - _PARTIAL - _SHIFTS',
)
_put(
    "passes.code_motion",
    "llvm",
    "check-moved-over-stores",
    "A check of what does not vary is moved in front of the loop, with its state.",
    "return operation.name in _MOVABLE or",
    'return operation.name in _MOVABLE or operation.name == "trap_if" or',
)

# --- objects --------------------------------------------------------------------------------------

_put(
    "object_lifter",
    "llvm",
    "field-of-the-type-named",
    "The field of a struct and the same field of its subtype are taken for two that never overlap.",
    "for ancestor in self.types.ancestors[number]:",
    "for ancestor in self.types.ancestors[number][-1:]:",
)
_put(
    "object_lifter",
    "llvm",
    "fields-in-the-order-of-the-stack",
    "The operands of `struct.new` become fields from the last one on.",
    "for field, value in enumerate(self._fields):",
    "for field, value in enumerate(self._fields[::-1]):",
)
_put(
    "passes.value_numbering",
    "llvm",
    "field-never-stored-to",
    "Loads of a field are merged across stores, as those of header words are.",
    "            elif name in FIXED:",
    '            elif name in FIXED or name == "field_load":',
)
_put(
    "passes.loop_versioning",
    "llvm",
    "one-array-not-asked",
    "A load of an element is hoisted although what is stored into may be the same array.",
    "for (place, other), pc in self.apart.items():",
    "for (place, other), pc in ():",
)

# --- number, check --------------------------------------------------------------------------------

_put(
    "passes.value_numbering",
    "llvm",
    "store-changes-nothing",
    "Equal loads before and after a store are merged.",
    '"heap_load": HEAP_CHANGES,',
    '"heap_load": HEAP_CHANGES - {"heap_store"},',
)
_put(
    "passes.value_numbering",
    "llvm",
    "call-changes-nothing",
    "Equal loads before and after a call are merged.",
    '"heap_load": HEAP_CHANGES,',
    '"heap_load": frozenset({"heap_store", "canonicalise"}),',
)
_put(
    "passes.value_numbering",
    "llvm",
    "memory-of-one-edge",
    "At a join memory is assumed to be that of one edge.",
    "memory = found.pop() if len(found) == 1 else (place, 0)",
    "memory = min(found) if found else (place, 0)",
)
_put(
    "passes.value_numbering",
    "llvm",
    "equal-operation-elsewhere",
    "An operation is replaced by an equal one in a block that does not dominate it.",
    "if found is None or not self.graph.dominates(found[1], self.place):",
    "if found is None:",
)
_put(
    "passes.check_elimination",
    "llvm",
    "operands-not-exchanged",
    "a > b is treated as a < b where facts are compared.",
    "Condition.GT_S: (Condition.LT_S, True, True)",
    "Condition.GT_S: (Condition.LT_S, False, True)",
)
_put(
    "passes.check_elimination",
    "llvm",
    "fact-holds-everywhere",
    "A branch's fact is assumed in blocks that it does not dominate.",
    "            if self.graph.dominates(place, self.place):\n                return holds is is_so",
    "            if place >= 0:\n                return holds is is_so",
)
_put(
    "passes.check_elimination",
    "llvm",
    "branch-learnt-the-wrong-way",
    "After a branch its condition is assumed on the edge where it is false.",
    "self._learn(end.arguments[0], came[1] is end.edges[0])",
    "self._learn(end.arguments[0], came[1] is not end.edges[0])",
)
_put(
    "passes.check_elimination",
    "llvm",
    "extent-too-long",
    "A check of some bytes is assumed to cover eight bytes more.",
    "self._learn_extent(*_extent(fact))",
    "key, first, last = _extent(fact); self._learn_extent(key, first, last + 8)",
)
_put(
    "passes.check_elimination",
    "llvm",
    "both-of-one",
    "If one of two conditions is true both are assumed.",
    'elif p.name == ("all" if holds else "any"):',
    'elif p.name == ("any" if holds else "all"):',
)

# --- version --------------------------------------------------------------------------------------

_put(
    "passes.loop_versioning",
    "llvm",
    "overlap-of-loads-not-asked",
    "Objects may overlap in the version without checks if one of them is only loaded.",
    "                if a.stored or b.stored:\n",
    "                if a.stored and b.stored:\n",
)
_put(
    "passes.loop_versioning",
    "llvm",
    "order-without-sizes",
    "Objects in the order of their references are assumed disjoint.",
    "return self.m.compare(I64, Condition.LT_S, distance, each.extent.high)",
    "return self.m.compare(I64, Condition.LT_S, distance, self.m.constant(I64, 0))",
)
_put(
    "loop.runtime_check",
    "llvm",
    "largest-index-may-be-the-length",
    "The largest index may equal the length in the version without checks.",
    "self.conditions.compare(I64, Condition.GE_U, high, limit)",
    "self.conditions.compare(I64, Condition.GT_U, high, limit)",
)
_put(
    "passes.loop_versioning",
    "llvm",
    "load-advanced-over-stores",
    "Loads are hoisted over an inner loop that stores to the same object.",
    "                    and reference not in stored\n",
    "                    and reference is not stored\n",
)
_put(
    "loop.iteration_space",
    "llvm",
    "top-of-a-count-one-too-small",
    "The largest value of an induction variable is computed as one less.",
    "top = m.sub(I64, variable.bound, one)",
    "top = m.sub(I64, variable.bound, m.add(I64, one, one))",
)

# --- range, unswitch, formula ---------------------------------------------------------------------

_put(
    "passes.range_check",
    "llvm",
    "range-may-end-at-the-limit",
    "A range may include its limit.",
    "doubts[self.compare(I64, Condition.GE_U, high, self._limit(limit))] = None",
    "doubts[self.compare(I64, Condition.GT_U, high, self._limit(limit))] = None",
)
_put(
    "passes.range_check",
    "llvm",
    "range-with-a-negative-start",
    "An induction variable may begin below zero.",
    "                self._is_above(variable.start, LARGEST_COUNT),\n",
    "                self.constant(BOOLEAN, 0),\n",
)
_put(
    "passes.range_check",
    "llvm",
    "second-limit-not-compared",
    "A second limit of a value counts as no check, whatever the first one is.",
    "doubts[self.compare(I64, Condition.GT_U, first, second)] = None",
    "doubts[self.constant(BOOLEAN, 0)] = None",
)
_put(
    "passes.range_check",
    "llvm",
    "descending-from-the-bound",
    "The largest value of a descending variable is computed as its least one.",
    "ends = Interval(self.add(I64, variable.bound, self.one), variable.start)",
    "ends = Interval(self.add(I64, variable.bound, self.one), variable.bound)",
)
_put(
    "passes.unroll_and_jam",
    "llvm",
    "jam-of-one-array",
    "Iterations run together although one stores what another loads.",
    "same = m.any(same, m.compare(I64, Condition.EQ, a, b))",
    "same = m.all(same, m.compare(I64, Condition.EQ, a, b))",
)
_put(
    "passes.unroll_and_jam",
    "llvm",
    "jam-in-spite-of-a-doubt",
    "Iterations run together without their checks, whether these can fail or not.",
    "return self._without(copy.all(nest.doubts), block)",
    "return self._without([], block)",
)
_put(
    "passes.unroll_and_jam",
    "llvm",
    "jam-of-the-first-sum",
    "The jammed loop begins each sum with the value of the first one.",
    "found += [copy.all([value])[0] for copy in self.copies[:number]]",
    "found += [self.copies[0].all([value])[0] for copy in self.copies[:number]]",
)
_put(
    "passes.unswitch",
    "vliw",
    "loops-exchanged",
    "The loop without checks runs where one may fail.",
    "clone.select_version(first, original, preheader, [])",
    "clone.select_version(first, preheader, original, [])",
)
_put(
    "loop.induction",
    "opencl",
    "trip-count-one-too-large",
    "The trip count of a counting loop is one too large.",
    "distance = m.sub(I64, self.bound, self.value)",
    "distance = m.add(I64, m.sub(I64, self.bound, self.value), one)",
)
_put(
    "loop.induction",
    "opencl",
    "negative-trip-count",
    "The trip count of a loop that is not entered is negative.",
    "return m.select(is_entered, distance, m.constant(I64, 0))",
    "return distance",
)
_put(
    "passes.loop_deletion",
    "opencl",
    "pairs-of-trips",
    "The sum of the first n numbers is computed as that of n + 1.",
    "less = self.sub(I64, iterations, self.one)",
    "less = self.add(I64, iterations, self.one)",
)

# --- NaNs -----------------------------------------------------------------------------------------

_put(
    "passes.canonicalisation",
    "llvm",
    "bits-of-a-raw-nan-seen",
    "Reinterpretation takes the bits of any NaN.",
    '        "demote",\n        "canonical",',
    '        "reinterpret",\n        "canonical",',
)
_put(
    "passes.canonicalisation",
    "llvm",
    "raw-nan-in-a-state",
    "States name raw values, whose NaN may have any bits.",
    "self.virtual[raw] = Virtual(raw)",
    "self.virtual[raw] = raw",
)
_put(
    "passes.nan_check",
    "llvm",
    "canonicalisation-dropped",
    "Floats are stored raw, and are not made canonical later.",
    "self.operations.append(made)",
    "assert made",
)

# --- loops for compilers that schedule ------------------------------------------------------------

_put(
    "loop.induction",
    "vliw",
    "last-iteration-forgotten",
    "An unrolled loop omits its last iteration.",
    "if signed(I64, value) >= signed(I64, bound):",
    "if signed(I64, value) + signed(I64, step) >= signed(I64, bound):",
)
_put(
    "passes.unroll",
    "vliw",
    "count-does-not-rise",
    "Each iteration of an unrolled loop has the first value of the induction variable.",
    "clones.values[self.variable.value] = value",
    "clones.values[self.variable.value] = self.variable.start",
)
_put(
    "loop.affine",
    "vliw",
    "step-without-its-scale",
    "An address advances by the step of the induction variable, not by the size of an element.",
    "return self.at(expression._replace(base=m.constant(I64, 0)), steps)",
    "return steps[expression.terms[0][0]]",
)
_put(
    "passes.address_base",
    "vliw",
    "scale-twice-as-large",
    "A scale that is a power of two becomes the next power.",
    "self.constant(I64, size.bit_length() - 1)",
    "self.constant(I64, size.bit_length())",
)
_put(
    "passes.load_forwarding",
    "vliw",
    "kept-over-stores",
    "A loop reuses a loaded value although it may have stored there.",
    "and base in steps and self._is_apart_from_all(load):",
    "and base in steps:",
)
