# SPDX-License-Identifier: Apache-2.0
"""Kernels of code around launches: they leave in front of a launch, whose items are work-items."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.engine import launching
from ferryvm.ir.c.opencl_launch import launch_word, packed
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.condition import Like
from ferryvm.policy.predicate import Test, When
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.device import Device

from .entering import NAME, named
from .test_items import launched as launched  # noqa: PLC0414 - a fixture

NEST = """
(define (put item to factor) (array-set! to item (+ (array-ref to item) (* item factor))))
(define (fill to rounds)
  (define turn 0)
  (while (< turn rounds) (for-each-item 500 (put to turn)) (set! turn (+ turn 1))))
(define to (make-array i64 500))
(fill to 40)
(array-ref to 499)
"""


def engine(backend: OpenClBackend, kind: str) -> Engine:
    """An engine that has the backend run launches, and the code of a kind around them."""
    kinds = ("launch", kind.rpartition(" ")[2])
    when = When((Test("kind", tuple(map(Like, kinds))),))
    choice = Choice(NAME, Options(background=False, required=True))
    policy = Policy(
        rules=(Rule(when=when, backends=(choice,)),),
        profile=Profile(loop_threshold=2, function_threshold=1),
        whole_program=kind == "whole program",
    )
    return Engine(policy=policy, registry=named(backend))


@pytest.mark.parametrize("kind", ["whole program", "function", "nest"])
def test_a_kernel_leaves_for_the_launch_in_it(
    kind: str,
    backend: OpenClBackend,
    launched: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launching, "WORTH", 0.0)
    monkeypatch.setattr(launching, "SAMPLE", 0.0)
    execution = engine(backend, kind).start(ferryvm.compile(NEST))
    assert execution.run().value == 499 * sum(range(40))
    assert len(launched) >= 30  # the first ones were interpreted


def test_small_launches_remain_in_the_kernel_around_them(
    device: Device, launched: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "WORTH", 1e9)
    execution = engine(OpenClBackend(device=str(device)), "whole program").start(
        ferryvm.compile(NEST)
    )
    assert execution.run().value == 499 * sum(range(40))
    assert not launched


@pytest.mark.parametrize("number", [0, 7, 13])
@pytest.mark.parametrize("word", [0, 1, 2, 500, (1 << 62) + 1, launching.NEVER])
def test_a_packed_word_is_at_least_the_word_and_less_than_twice_as_much(
    number: int, word: int
) -> None:
    text = launch_word(number).replace("ul", "").replace("control->launches", "field")
    read = eval(text, {"field": packed({number: word, number + 1: 5})})
    assert word <= read <= max(2 * word - 1, word)


def test_launches_that_share_bits_are_left_for_by_the_smaller_word() -> None:
    assert packed({3: 9, 13: launching.NEVER}) == packed({3: 9})
    assert packed({}) == packed({4: launching.NEVER})
