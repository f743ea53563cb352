# SPDX-License-Identifier: Apache-2.0
"""Faults in what compilers make of the region IR: LLVM IR, C text, the machine's code."""

from __future__ import annotations

from .planting import CompilerFault

LOWERING: list[CompilerFault] = []
"""By compiler."""


def _put(module: str, backend: str, name: str, what: str, old: str, new: str) -> None:
    package = {"c": "ferryvm.ir.c", "cc": "ferryvm_cc"}.get(module.split(":")[0])
    path = module.split(":")[-1]
    name_ = f"{package or 'ferryvm_backends'}.{path}"
    LOWERING.append(CompilerFault(name, what, backend, name_, old, new))


# --- llvm -----------------------------------------------------------------------------------------

_put(
    "llvm.call",
    "llvm",
    "throw-not-paid",
    "A caller that catches an exception does not pay for the throw.",
    'storage.field(control, "fuel"), word(1))',
    'storage.field(control, "fuel"), word(0))',
)
_put(
    "llvm.call",
    "llvm",
    "tag-one-too-high",
    "A caller catches the tag after the one that its clause takes.",
    "switch.add_case(ir.Constant(INT32, FIRST_TAG + tag), block)",
    "switch.add_case(ir.Constant(INT32, FIRST_TAG + tag + 1), block)",
)
_put(
    "llvm.call",
    "llvm",
    "first-tag-caught",
    "Of the tags that a call catches each goes on as the first one.",
    "            numbers.append((number, block))\n",
    "            numbers.append((1, block))\n",
)
_put(
    "llvm.call",
    "llvm",
    "caught-as-returned",
    "A call that has caught an exception goes on as if it had returned.",
    "for number, block in [(0, before), *numbers]:",
    "for number, block in [(0, before), *((0, each) for _, each in numbers)]:",
)
_put(
    "llvm.call",
    "llvm",
    "next-value-of-an-exception",
    "A handler reads the value after the one that it is to get.",
    "WORD_BYTES * operation.fact(0, int))",
    "WORD_BYTES * (operation.fact(0, int) + 1))",
)
_put(
    "llvm.side_exit",
    "llvm",
    "values-below-the-exception",
    "The values of an exception are read from the operand below them on.",
    "self.function.frame, word(WORD_BYTES * place))",
    "self.function.frame, word(WORD_BYTES * (place - 1)))",
)
_put(
    "llvm.exit_stub",
    "llvm",
    "frame-written-backwards",
    "The words of a frame are written in the opposite order.",
    "WORD_BYTES * place)",
    "WORD_BYTES * (len(types) - 1 - place))",
)
_put(
    "llvm.exit_stub",
    "llvm",
    "stack-pointer-without-the-header",
    "An exit leaves the stack pointer two words too low.",
    "where, parameters, pc, status, len(types))",
    "where, parameters, pc, status, len(types) - 2)",
)
_put(
    "llvm.side_exit",
    "llvm",
    "exit-at-the-next-instruction",
    "Code leaves at the instruction after the one that is to be run.",
    "self.builder, where, parameters, state.pc, status, layout",
    "self.builder, where, parameters, state.pc + 1, status, layout",
)
_put(
    "llvm.side_exit",
    "llvm",
    "raw-nan-written-at-exits",
    "An exit writes a float as it was computed, whose NaN may have any bits.",
    "return self._canonical(value, self.function.value(value.raw))",
    "return self.function.value(value.raw)",
)
_put(
    "llvm.side_exit",
    "llvm",
    "fuel-off-by-one",
    "Each payment takes one more.",
    "self.builder.sub(fuel, word(paid))",
    "self.builder.sub(fuel, word(paid + 1))",
)
_put(
    "llvm.side_exit",
    "llvm",
    "unpaid-fuel-kept",
    "An exit does not give back what has been paid for and not run.",
    "        if state.unpaid:\n",
    "        if state.unpaid < 0:\n",
)
_put(
    "llvm.side_exit",
    "llvm",
    "frame-of-the-caller-not-written",
    "Where a callee leaves, the frame of its caller is not written.",
    "        elif words:\n            self.shared.writers.write_frame",
    "        elif not words:\n            self.shared.writers.write_frame",
)
_put(
    "llvm.side_exit",
    "llvm",
    "statics-not-written-at-exits",
    "An exit does not write the statics of its state.",
    "        for number, value in state.statics:\n",
    "        for number, value in state.statics[1:]:\n",
)
_put(
    "llvm.side_exit",
    "llvm",
    "another-trap",
    "A trap has the number of the next kind.",
    "trap = ir.Constant(INT32, int(operation.fact(0, Trap)))",
    "trap = ir.Constant(INT32, int(operation.fact(0, Trap)) + 1)",
)
_put(
    "_llvm.arithmetic",
    "llvm",
    "extension-by-zeros",
    "extend_s extends by zeros.",
    "return self.builder.sext(a, self._as(I64, a))",
    "return self.builder.zext(a, self._as(I64, a))",
)
_put(
    "_llvm.arithmetic",
    "llvm",
    "words-extended-by-sign",
    "An i32 is extended by its sign in its word.",
    "return self.builder.zext(a, self._as(I64, a)) if t.bits == 32 else a",
    "return self.builder.sext(a, self._as(I64, a)) if t.bits == 32 else a",
)
_put(
    "_llvm.arithmetic",
    "llvm",
    "comparison-holds-for-nan",
    "Float comparisons hold if an operand is a NaN.",
    "return self.builder.fcmp_ordered(predicate, a, b)",
    "return self.builder.fcmp_unordered(predicate, a, b)",
)
_put(
    "_llvm.arithmetic",
    "llvm",
    "shift-right-of-the-sign",
    "shr_u shifts the sign in.",
    "return self.builder.lshr(a, b)",
    "return self.builder.ashr(a, b)",
)
_put(
    "_llvm.arithmetic",
    "llvm",
    "halves-rounded-away",
    "Halves are rounded away from zero.",
    'f"llvm.roundeven.{t}"',
    'f"llvm.round.{t}"',
)
_put(
    "llvm.access",
    "llvm",
    "loads-extended-by-sign",
    "Loads of less than eight bytes are extended by sign.",
    "return self.builder.zext(loaded, WORD) if",
    "return self.builder.sext(loaded, WORD) if",
)
_put(
    "llvm.access",
    "llvm",
    "stores-of-eight-bytes",
    "A store of less than eight bytes stores eight.",
    "narrow = self.builder.trunc(value, ir.IntType(bits)) if bits < WORD.width else value",
    "narrow = value",
)
_put(
    "llvm.body",
    "llvm",
    "strip-one-too-long",
    "A strip-mined loop has one more iteration in each strip.",
    'continues = builder.icmp_signed("<", value, limit)',
    'continues = builder.icmp_signed("<=", value, limit)',
)
_put(
    "llvm.body",
    "llvm",
    "last-case-of-a-switch",
    "The last case of a switch goes where the one before goes.",
    "switch.add_case(word(number), target)",
    "switch.add_case(word(number), targets[max(0, number - 1)])",
)
_put(
    "llvm.call",
    "llvm",
    "frame-of-the-callee-too-low",
    "The frame of a callee begins one word below.",
    "word(WORD_BYTES * base), flags=",
    "word(WORD_BYTES * (base - 1)), flags=",
)

# --- C: cc and opencl -----------------------------------------------------------------------------

_put(
    "c:call",
    "cc",
    "next-tag-caught",
    "A caller goes on as if the tag after the one that was thrown had been thrown.",
    "{self._caught[caught]} = {number}; break;",
    "{self._caught[caught]} = {number + 1}; break;",
)
_put(
    "c:call",
    "opencl",
    "exception-not-paid",
    "A caller that catches an exception does not pay for the throw.",
    'scope.lines.add("control->fuel -= 1;")',
    'scope.lines.add("control->fuel -= 0;")',
)
_put(
    "c:side_exit",
    "cc",
    "values-from-the-second-on",
    "The values of an exception are read from the second one on.",
    "distance = len(end.state.words) - end.fact(1, int)",
    "distance = len(end.state.words) - end.fact(1, int) - 1",
)
_put(
    "c:expression",
    "cc",
    "shift-without-the-sign",
    "shr_s shifts zeros in.",
    'return self.cast(t, f"({self._signed(t, a)} >> {b})")',
    'return self.cast(t, f"({a} >> {b})")',
)
_put(
    "c:expression",
    "opencl",
    "signs-of-comparisons-exchanged",
    "Unsigned comparisons are signed, and the other way round.",
    '        if sign == "s":\n',
    '        if sign == "u":\n',
)
_put(
    "c:expression",
    "cc",
    "extend-s-by-zeros",
    "extend_s extends by zeros.",
    "return self.cast(I64, self._signed(I64, self._signed(I32, a)))",
    "return self.cast(I64, a)",
)
_put(
    "c:expression",
    "opencl",
    "unsigned-division",
    "div_s divides unsigned.",
    'return self.cast(t, f"({self._signed(t, a)} / {self._signed(t, b)})")',
    'return self.cast(t, f"({a} / {b})")',
)
_put(
    "c:function",
    "cc",
    "arguments-one-after-another",
    "The arguments of an edge are assigned one after another, not at once.",
    "if not any(q is not p and _has_name(b, self.names[p]) for q, b in pending)",
    "if True",
)
_put(
    "c:side_exit",
    "opencl",
    "static-of-an-exit-forgotten",
    "An exit writes all statics of its state but the first.",
    "        for number, value in state.statics:\n",
    "        for number, value in state.statics[1:]:\n",
)
_put(
    "c:side_exit",
    "cc",
    "fuel-not-given-back",
    "An exit does not give back what has been paid for and not run.",
    "        if state.unpaid:\n",
    "        if state.unpaid < 0:\n",
)
_put(
    "c:side_exit",
    "cc",
    "stack-pointer-off-by-one",
    "An exit leaves the stack pointer one word too low.",
    "{self.scope.body.header_of(state)}, {len(state.words)}, {state.pc}",
    "{self.scope.body.header_of(state)}, {len(state.words) - 1}, {state.pc}",
)
_put(
    "cc:compiler",
    "cc",
    "contraction-allowed",
    "The C compiler may fuse a multiplication and an addition.",
    '"-ffp-contract=off",',
    '"-ffp-contract=fast",',
)
_put(
    "cc:compiler",
    "cc",
    "fast-mathematics",
    "The C compiler may treat floats as real numbers.",
    '"-fno-fast-math",',
    '"-ffast-math",',
)

# --- vliw -----------------------------------------------------------------------------------------

_put(
    "vliw.code.lower.access",
    "vliw",
    "wrap-of-a-word-left-out",
    "The low half of a loaded word is used without truncation.",
    "_loaded_bytes(value) <= 4:",
    "_loaded_bytes(value) <= 8:",
)
_put(
    "vliw.code.lower.body",
    "vliw",
    "predicate-inverted",
    "A predicated store is done where its condition does not hold.",
    "each.operands, each.holds = (*each.operands, p), holds",
    "each.operands, each.holds = (*each.operands, p), not holds",
)
_put(
    "vliw.code.lower.body",
    "vliw",
    "branch-inverted",
    "A branch goes the other way where its first target is joined to its block.",
    'self._exit("exit_unless", p, no)',
    'self._exit("exit", p, no)',
)
_put(
    "vliw.code.lower.access",
    "vliw",
    "store-of-eight-bytes",
    "A store of less than eight bytes stores eight.",
    "Segment.HEAP, address, offset, value, size, self",
    "Segment.HEAP, address, offset, value, 8, self",
)
_put(
    "vliw.code.lower.side_exit",
    "vliw",
    "words-of-an-exit-shifted",
    "An exit writes each word of its frame one place too high.",
    "self.emission.frame, WORD_BYTES * place, self._in_state(word)",
    "self.emission.frame, WORD_BYTES * (place + 1), self._in_state(word)",
)
_put(
    "vliw.code.lower.side_exit",
    "vliw",
    "payment-takes-one-more",
    "Each payment takes one more.",
    "(fuel, paid)))",
    "(fuel, paid + 1)))",
)
_put(
    "vliw.code.dependence",
    "vliw",
    "result-read-a-cycle-early",
    "Operations read a result one cycle before it is written.",
    "reason.own * mine + delay_slots + reason.cycles",
    "reason.own * mine + delay_slots + reason.cycles - (reason is DependenceKind.VALUE)",
)
_put(
    "vliw.code.dependence",
    "vliw",
    "accesses-apart-by-size",
    "Two accesses are assumed disjoint if they begin at different addresses.",
    "return start < self.start + self.place.size and self.start < end",
    "return start == self.start",
)
_put(
    "vliw.code.dependence",
    "vliw",
    "store-moved-over-an-exit",
    "A store may be done before an exit in front of it.",
    "            for other in exits[-1:]:\n                depend_on(other, DependenceKind.CONTROL)\n            effects",
    "            for other in exits[:0]:\n                depend_on(other, DependenceKind.CONTROL)\n            effects",
)
