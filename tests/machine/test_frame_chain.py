# SPDX-License-Identifier: Apache-2.0
"""The chain of frames: both ends and the count, in steps that do not grow with its length."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

import ferryvm
from ferryvm import Engine, TrapError
from ferryvm.engine.saved import STATE, pack_state, unpack_state
from ferryvm.image import ImageError
from ferryvm.image.container import pack, unpack
from ferryvm.machine import frame_chain
from ferryvm.machine.frame_chain import Chain, follow
from ferryvm.machine.memory import Limits


def stack_of(distances: Sequence[int]) -> tuple[memoryview, int]:
    """A stack whose frames, from main's outwards to the innermost, are that far apart; and the
    innermost frame. The frame of number n returns to pc n."""
    words = np.zeros(sum(distances) + 2, np.uint64)
    at = np.cumsum(np.array(distances, np.uint64))
    words[at] = np.arange(1, len(distances) + 1)
    words[at + 1] = distances
    return memoryview(words), int(at[-1])


def by_steps(count: int, most: int) -> Chain:
    pcs = [999_999_999, *range(count - 1, -1, -1)]
    inner, outer = pcs[:most], pcs[most:][-most:]
    return Chain(inner, outer, len(pcs) - len(inner) - len(outer), True)


@pytest.mark.parametrize("count", [1, 11, 12, 13, 24, 25, 63, 64, 65, 76, 100, 5_000])
@pytest.mark.parametrize("period", [(3,), (4, 9), (5, 5, 2, 7)])
def test_chain_has_the_frames_of_a_walk_of_single_steps(
    count: int, period: tuple[int, ...]
) -> None:
    stack, fp = stack_of((period * count)[:count])
    assert follow(stack, 999_999_999, fp, 12) == by_steps(count, 12)


def test_chain_that_changes_its_period_is_followed_through() -> None:
    rng = random.Random(1)
    distances: list[int] = []
    for _ in range(30):
        period = [rng.randint(2, 20) for _ in range(rng.randint(1, 5))]
        distances += period * rng.randint(1, 400)
    stack, fp = stack_of(distances)
    assert follow(stack, 999_999_999, fp, 12) == by_steps(len(distances), 12)


def test_million_calls_take_hundreds_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_chain, "MOST_STEPS", 300)
    stack, fp = stack_of((3, 5) * 500_000)
    assert follow(stack, 999_999_999, fp, 12) == by_steps(1_000_000, 12)


def test_chain_that_never_repeats_is_given_up_after_so_many_steps() -> None:
    rng = random.Random(2)
    stack, fp = stack_of([rng.randint(2, 9) for _ in range(frame_chain.MOST_STEPS + 100)])
    found = follow(stack, 999_999_999, fp, 12)
    assert (len(found.inner), found.outer, found.is_whole) == (12, [], False)


DEEP = "(define (f n) (g (+ n 1)))\n(define (g n) (+ (f (+ n 1)) 1))\n(f 0)"


def test_stack_overflow_tells_both_ends_and_how_many_are_between() -> None:
    execution = Engine("threaded").start(ferryvm.compile(DEEP, "deep.skiff"))
    with pytest.raises(TrapError) as caught:
        execution.run()
    stack = caught.value.stack
    assert (len(stack), stack[-1].function) == (24, "main")
    assert {frame.function for frame in stack[:-1]} == {"f", "g"}
    (skipped,) = (frame.skipped for frame in stack if frame.skipped)
    machine = execution.machine
    depth, fp = 1, machine.control.fp
    while machine.memory.stack[fp + 1]:
        depth, fp = depth + 1, fp - machine.memory.stack[fp + 1]
    assert skipped == depth - 24 > 1_000_000
    assert f"... {skipped} more calls ..." in str(caught.value)


def test_calls_that_nobody_counted_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_chain, "MOST_STEPS", 20)
    execution = Engine("threaded").start(ferryvm.compile(DEEP, "deep.skiff"))
    with pytest.raises(TrapError) as caught:
        execution.run()
    assert len(caught.value.stack) == 12
    assert str(caught.value).endswith("\n    ... more calls, not counted ...")


@pytest.mark.parametrize("word", [10_000, 200_001, 349_998])
def test_lie_deep_in_frames_that_repeat_is_found(word: int) -> None:
    limits = Limits(stack=1 << 22)
    text = ".function main\ni32.const 0\ncall f\nhalt\n.function f (n i32)\nlocal.get n\n"
    program = ferryvm.assemble(f"{text}i32.const 1\ni32.add\ncall f\nreturn\n")
    execution = Engine("threaded", limits=limits).start(program)
    with pytest.raises(TrapError):
        execution.run()
    content = pack_state(execution.machine, None)
    unpack_state(content, limits, "s")
    sections = unpack(STATE, content, "s")
    words = bytearray(sections["STCK"])
    words[8 * word + 7] ^= 1
    with pytest.raises(ImageError) as caught:
        unpack_state(pack(STATE, {**sections, "STCK": bytes(words)}), limits, "s")
    assert str(caught.value).startswith("s: not a state of its program: ")
