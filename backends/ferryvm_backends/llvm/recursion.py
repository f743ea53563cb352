# SPDX-License-Identifier: Apache-2.0
"""VM functions as native functions; recursive ones with copies of themselves inlined.

    f ── headroom on the VM's stack for all copies? ─┬─ yes ─> copy 1 ─> copy 2 ─> … ─> f
                                                     └─ no ──> plain version, which calls f

The copies check no stack limit, poll no flag, and are one function for the optimiser. The cost of
calls is most of the time of small recursive functions.
"""

from __future__ import annotations

import itertools

from ferryvm.ir.graph import Body
from ferryvm.ir.headroom import frame_headroom
from ferryvm.isa.type import WORD_BYTES
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import word
from ferryvm_backends.llvm.body import lower_body
from ferryvm_backends.llvm.context import LoweringContext, at_start
from ferryvm_backends.llvm.early_store import state_words
from ferryvm_backends.llvm.storage import Storage
from ferryvm_backends.llvm.variant import Variant

DEEPEST = 8
"""Copies of itself that are inlined into a function, at most."""

LARGEST = {0: 0, 1: 0, 2: 800, 3: 3200}
"""Operations of a function with all copies of itself, at most, by optimisation level; the words
that their states name may be twice as many."""


SMALL = 40
"""Operations of a function, at most, that is copied: in larger ones a call costs little of the
whole."""


def lower_function(shared: LoweringContext, number: int, body: Body) -> None:
    """Emit the native function of a VM function, with its copies."""
    function = shared.functions[number]
    copies = _copies(shared, number, body)
    builder = at_start(function)
    if not copies:
        lower_body(shared, Variant(body, shared.functions), builder)
        return
    plain = shared.function(f"{function.name}.plain", body)
    plain.attributes.add("noinline")
    lower_body(shared, Variant(body, shared.functions, is_inner=True), at_start(plain))
    _prefer_plain(builder, plain, _reach(body, len(copies)))
    for caller, callee in itertools.pairwise([function, *copies, function]):
        is_copy = caller is not function
        calls = {**shared.functions, number: callee}
        variant = Variant(body, calls, is_inner=is_copy, has_headroom=True)
        lower_body(shared, variant, at_start(caller) if is_copy else builder)


def _copies(shared: LoweringContext, number: int, body: Body) -> list[ir.Function]:
    """Copies of a function that calls itself, for each to be inlined into the one before."""
    if shared.is_forced:  # a copy looks at nothing, so there is nothing to be forced in it
        return []
    calls = sum(o.name == "call" and o.fact(0, int) == number for o in body.operations)
    operations = sum(len(block.operations) + 1 for block in body.blocks)
    if operations > SMALL:
        return []
    size = max(operations, state_words(body) // 2)
    copies: list[ir.Function] = []
    total = size
    largest = LARGEST[shared.options.optimize]
    while calls and len(copies) < DEEPEST and total * calls + size <= largest:
        total = total * calls + size
        copy = shared.function(f"f{number}.{len(copies) + 1}", body)
        copy.attributes.add("alwaysinline")
        copies.append(copy)
    return copies


def _reach(body: Body, copies: int) -> int:
    """Bytes from a frame to the end of the headroom that the last copy's stack checks require."""
    base = max(o.fact(1, int) for o in body.operations if o.name == "call")
    return WORD_BYTES * base * copies + max(frame_headroom(o) for o in body.operations)


def _prefer_plain(builder: ir.IRBuilder, plain: ir.Function, reach: int) -> None:
    """Go on only if the stack has so many bytes above the frame; else do as `plain` does."""
    control, frame, *_ = builder.function.args
    end = builder.add(frame, word(reach), flags=("nuw",))
    limit = Storage(builder).field(control, "stack_end")
    with builder.if_then(builder.icmp_unsigned(">", end, limit), likely=False):
        builder.ret(builder.call(plain, builder.function.args, cconv="fastcc"))
