# SPDX-License-Identifier: Apache-2.0
"""Faults in jumps, calls, frames and host calls."""

from __future__ import annotations

from typing import Any

from ferryvm.isa import BY_MNEMONIC, I32, I64, Trap
from ferryvm.isa.emitter import Condition, FunctionField
from ferryvm.isa.frame import HEADER_WORDS, RESULTS_BITS, return_counts

from .fault import Body, Fault, add, operation, planted

_CALLS = ("call", "call_indirect")

# --- jumps --------------------------------------------------------------------------------------

_JUMP = "i32.const {condition} / {jump} over / i32.const 1 / halt / :over / i32.const 2"


@planted("jump_if", witness=_JUMP.format(condition=2, jump="jump_if"))
def jump_by_the_low_bit(right: Body, m: Any, target: Any, condition: Any) -> Any:
    """jump_if looks at the low bit of its condition."""
    return right(m, target, m.bit_and(I32, condition, m.constant(I32, 1)))


@planted("jump_unless", witness=_JUMP.format(condition=-1, jump="jump_unless"))
def jump_unless_positive(_right: Body, m: Any, target: Any, condition: Any) -> Any:
    """jump_unless jumps for negative conditions too."""
    m.jump_if(m.compare(I32, Condition.LE_S, condition, m.constant(I32, 0)), target)


_TABLE = (
    "i32.const {index} / jump_table a b c / :a / i32.const 10 / halt / :b / i32.const 11 / halt / "
    ":c / i32.const 12"
)


@planted("jump_table", witness=_TABLE.format(index=1))
def jump_table_one_too_short(right: Body, m: Any, count: Any, index: Any) -> Any:
    """jump_table takes the last label from the number before its own on."""
    last = m.compare(I64, Condition.EQ, m.add(I64, m.extend_u(index), m.constant(I64, 1)), count)
    return right(m, count, m.select(last, m.constant(I32, I32.mask), index))


@planted("jump_table", witness=_TABLE.format(index=-1))
def jump_table_of_signed_index(right: Body, m: Any, count: Any, index: Any) -> Any:
    """jump_table goes to the first label for negative numbers."""
    negative = m.compare(I32, Condition.LT_S, index, m.constant(I32, 0))
    return right(m, count, m.select(negative, m.constant(I32, 0), index))


@planted("jump_table", witness=_TABLE.format(index=2))
def jump_table_at_the_count(right: Body, m: Any, count: Any, index: Any) -> Any:
    """jump_table goes to the first label for the number of the last one."""
    at_count = m.compare(I64, Condition.EQ, m.extend_u(index), count)
    return right(m, count, m.select(at_count, m.constant(I32, 0), index))


def _short(right: Body, m: Any, target: int, *condition: int) -> Any:
    return right(m, target if -128 <= target - m.pc < 128 else m.pc + 1, *condition)


add(
    Fault(
        "jump-distance-of-eight-bits",
        "Jumps over 128 instructions and more go on at the next one.",
        ("jump", "jump_if", "jump_unless"),
        " / ".join(["jump far", *["nop"] * 130, "i32.const 1 / halt / :far / i32.const 2"]),
        rows=dict.fromkeys(("jump", "jump_if", "jump_unless"), _short),
    )
)


# --- calls --------------------------------------------------------------------------------------

_DIRTY = (
    ".function main / i64.const 7 / call dirty / call clean / halt / "
    ".function dirty (i64) -> i64 / .local i64 / local.get 0 / local.set 1 / local.get 1 / "
    "local.get 1 / drop / return / "
    ".function clean () -> i64 / .local i64 i64 / local.get 0 / local.get 1 / i64.add / return"
)


@operation("clear_words", where=_CALLS, witness=_DIRTY, native=True)
def locals_not_cleared(_right: Body, _m: Any, _address: Any, _count: Any) -> Any:
    """A call leaves what stood on the stack in the locals."""


@operation("clear_words", where=_CALLS, witness=_DIRTY, native=True)
def last_local_not_cleared(right: Body, m: Any, address: Any, count: Any) -> Any:
    """A call leaves what stood on the stack in the last local."""
    some = m.compare(I64, Condition.NE, count, m.constant(I64, 0))
    less = m.select(some, m.sub(I64, count, m.constant(I64, 1)), count)
    return right(m, address, less)


_INDIRECT = (
    ".table one / .function main / i32.const {index} / call_indirect {signature} / halt / "
    ".function one () -> i64 / i64.const 1 / return"
)


@planted(
    "call_indirect",
    witness=_INDIRECT.format(index=0, signature="() -> f64"),
    native=False,
)
def signature_not_checked(right: Body, m: Any, _signature: Any, index: Any) -> Any:
    """call_indirect calls functions of any signature."""
    function = m.table[index] if index < len(m.table) else 0
    return right(m, m.functions[function][FunctionField.SIGNATURE], index)


@planted("call_indirect", witness=_INDIRECT.format(index=1, signature="() -> i64"))
def table_index_at_the_size(right: Body, m: Any, signature: Any, index: Any) -> Any:
    """call_indirect takes the size of the table as the index of its first entry."""
    past = m.compare(I64, Condition.EQ, m.extend_u(index), m.table_size())
    return right(m, signature, m.select(past, m.constant(I32, 0), index))


@planted("call_indirect", witness=_INDIRECT.format(index=-1, signature="() -> i64"))
def trap_of_a_negative_index(right: Body, m: Any, signature: Any, index: Any) -> Any:
    """call_indirect with a negative number traps for the signature, not for the number."""
    negative = m.compare(I32, Condition.LT_S, index, m.constant(I32, 0))
    m.trap_if(negative, Trap.SIGNATURE_MISMATCH)
    return right(m, signature, index)


_DEEPEST = (
    ".function main / i64.const 0 / call down / halt / .function down (i64) / {locals} "
    "local.get 0 / i64.const 1 / i64.add / call down / return"
)


@operation(
    "stack_limit",
    where=_CALLS,
    witness=_DEEPEST.format(locals=".local i64 i64 /"),
)
def stack_limit_one_frame_early(right: Body, m: Any) -> Any:
    """A call traps where its frame would end less than 6 words below the end of the stack."""
    return right(m) - 48


@operation(
    "stack_limit",
    where=_CALLS,
    witness=_DEEPEST.format(locals=".local i64 i64 i64 /"),
)
def stack_checked_without_operands(right: Body, m: Any) -> Any:
    """A call checks that its locals fit on the stack, but not its operands."""
    return right(m) + 16


@planted("return", witness=".function main / call f / halt / .function f () / return")
def result_counted_where_there_is_none(right: Body, m: Any, counts: Any) -> Any:
    """return leaves a word on the stack for a function without results."""
    return right(m, m.bit_or(I64, counts, m.constant(I64, 1)))


@planted(
    "return",
    witness=".function main / i64.const 5 / call f / halt / "
    ".function f () -> i64 / i64.const 1 / i64.const 2 / return",
    native=False,
)
def result_from_the_wrong_operand(right: Body, m: Any, counts: Any) -> Any:
    """return takes the deepest operand as the result where there are several."""
    frame = m.functions[owner(m)]
    base = m.fp + HEADER_WORDS + frame[FunctionField.LOCALS]
    if return_counts(counts)[1] and m.sp - base > 1:
        m.stack[m.sp - 1] = m.stack[base]
    return right(m, counts)


def owner(m: Any) -> int:
    """The running function: the last one that starts at or before pc."""
    starts = [(words[FunctionField.ENTRY], number) for number, words in enumerate(m.functions)]
    return max((entry, number) for entry, number in starts if entry <= m.pc)[1]


def _return_when_deep(right: Body, m: Any, counts: Any) -> Any:
    depth, frame = 0, m.fp
    while frame and depth < 9:
        frame -= m.stack[frame + 1]
        depth += 1
    if depth == 9 and return_counts(counts)[1]:
        m.stack[m.sp - 1] ^= 1
    return right(m, counts)


add(
    Fault(
        "result-wrong-when-deep",
        "return from the ninth call inwards and deeper gives another result.",
        ("return",),
        ".function main / i64.const 12 / call down / halt / "
        ".function down (i64) -> i64 / local.get 0 / i64.eqz / jump_if end / local.get 0 / "
        "i64.const 1 / i64.sub / call down / return / :end / i64.const 0 / return",
        rows={"return": _return_when_deep},
    )
)


@planted(
    "return",
    witness=".function main / i64.const 5 / i64.const 6 / call f / halt / "
    ".function f (i64 i64) -> i64 / i64.const 7 / return",
)
def argument_left_behind(right: Body, m: Any, counts: Any) -> Any:
    """return leaves the first argument of a function of several parameters on the caller's
    stack."""
    one = m.constant(I64, 1 << RESULTS_BITS)
    several = m.compare(I64, Condition.GE_U, counts, m.constant(I64, 2 << RESULTS_BITS))
    return right(m, m.select(several, m.sub(I64, counts, one), counts))


# --- host calls and the operand stack -----------------------------------------------------------


@operation(
    "host",
    where=("host",),
    witness=".host print_i64 (i64) / .host write_byte (i32) / .function main / i64.const 65 / "
    "drop / i32.const 65 / host write_byte / halt",
    native=True,
)
def host_number_wrong(right: Body, m: Any, number: Any) -> Any:
    """The second host function of a program is called as the first."""
    first = m.compare(I64, Condition.EQ, number, m.constant(I64, 1))
    return right(m, m.select(first, m.constant(I64, 0), number))


@planted("swap", witness="i64.const 1 / f64.const 2 / swap")
def swap_does_nothing(_right: Body, _m: Any, a: Any, b: Any) -> Any:
    """swap leaves its operands as they are."""
    return a, b


def _hot(right: Body, m: Any, a: Any, b: Any) -> Any:
    total = BY_MNEMONIC["i64.add"].meaning(m, a, b)
    return total ^ 1 if m.jumps >= 1000 else total


def _count_jump(right: Body, m: Any, target: Any) -> Any:
    m.jumps += 1
    return right(m, target)


def _cold(right: Body, m: Any) -> Any:
    m.jumps = 0
    return right(m)


add(
    Fault(
        "wrong-once-hot",
        "i64.add is wrong after 1,000 jumps taken in one entry, as in code compiled by then.",
        ("i64.add",),
        ".function main / .local i64 / :next / local.get 0 / i64.const 1 / i64.add / local.set 0 / "
        "local.get 0 / i64.const 1200 / i64.lt_u / jump_if next / local.get 0 / halt",
        rows={"i64.add": _hot},
        operations={"jump": _count_jump, "arrive": _cold},
    )
)
