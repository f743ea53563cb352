# SPDX-License-Identifier: Apache-2.0
"""Bodies with many exits and locals: words that are stored before control leaves, and what that
costs."""

from __future__ import annotations

from pathlib import Path

import pytest

import ferryvm
from ferryvm import cache
from ferryvm.backend import Forcing, Options
from ferryvm.engine import Engine
from ferryvm.ir.lift import lift
from ferryvm.region.region import region
from ferryvm.testing.differential import Differ, Verdict
from ferryvm.testing.generate import LIMITS, ProgramKind
from ferryvm.verify import verify
from ferryvm_backends.llvm import early_store
from ferryvm_backends.llvm.early_store import state_words, store_early
from ferryvm_backends.llvm.lower import lower

from ...random_program import small_programs
from ..ending import ended
from .test_random_programs import SEED

PROGRAMS = 2


@pytest.mark.rotate("most", "kind", most=1)
@pytest.mark.parametrize(("most", "forcing"), [(0, True), (2, False)])
@pytest.mark.parametrize("kind", [ProgramKind.BYTECODE, ProgramKind.SKIFF])
def test_random_programs_run_alike_where_words_are_stored_early(
    kind: ProgramKind, most: int, forcing: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(cache.ENVIRONMENT, str(tmp_path))  # keys say nothing of these numbers
    monkeypatch.setattr(early_store, "MANY_WORDS", -1)
    monkeypatch.setattr(early_store, "MOST_WORDS", most)
    monkeypatch.setattr(early_store, "_RUN", 2)
    monkeypatch.setattr(early_store, "FEW_EXITS", -1)
    forced = frozenset({Forcing.HOT, Forcing.DEOPT} if forcing else {Forcing.HOT})
    differ = Differ(["llvm"], limits=LIMITS, forcing=forced)
    for program in small_programs(SEED, kind, 600, PROGRAMS // (2 if forcing else 1)):
        for comparison in differ.compare(program):
            assert comparison.verdict is Verdict.AGREE, (SEED, comparison)


def _loads(count: int) -> ferryvm.Program:
    """Loads into so many locals, each of which may trap, a call, and as many stores; in a loop."""
    loads = "".join(f"local.get p\ni64.load {8 * n}\nlocal.set a{n}\n" for n in range(count))
    stores = "".join(f"local.get p\nlocal.get a{n}\ni64.store {8 * n}\n" for n in range(count))
    names = "".join(f".local a{n} i64\n" for n in range(count))
    return ferryvm.assemble(f"""
.data 0 "{"a" * 8 * count}"
.function main
    i32.const 3
    call f
    halt
.function f (n i32) -> i64
.local p i64
{names}:again
{loads}    local.get a1
    local.get a0
    i64.add
    local.set a0
    local.get n
    i32.const 1
    i32.sub
    local.set n
{stores}    local.get n
    jump_if again
    local.get a0
    return 1
""")


@pytest.mark.nightly
def test_exits_write_words_in_proportion_to_what_changes() -> None:
    text = []
    for count in (50, 200):
        module = lift(region(verify(_loads(count)), "program"))
        (body,) = module.functions.values()
        assert state_words(body) > count * count
        found = store_early(body)
        assert found is not None
        states = (*found.states.values(), *found.stores.values())
        written = sum(sum(1 for _ in early_store.runs(state.words)) for state in states)
        assert written < 2 * early_store.MOST_WORDS * count  # two exits for each of them
        text.append(len(str(lower(module, Options()))))
    assert text[1] < 8 * text[0]  # for four times as many; it would be sixteen times as long


def test_a_body_with_many_exits_and_locals_ends_as_on_the_reference() -> None:
    program = _loads(40)
    assert ended(Engine("llvm"), program) == ended(Engine("reference"), program)


@pytest.mark.parametrize(("most", "has_stores"), [(early_store.FEW_EXITS, False), (0, True)])
def test_a_loop_with_few_exits_stores_nothing_in_each_iteration(
    most: int, has_stores: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early_store, "MANY_WORDS", -1)
    monkeypatch.setattr(early_store, "FEW_EXITS", most)
    changed = "".join(f"local.get n\nlocal.set a{n}\n" for n in range(40))
    names = "".join(f".local a{n} i32\n" for n in range(40))
    program = ferryvm.assemble(f"""
.function main
    i32.const 3
    call f
    halt
.function f (n i32)
{names}:again
{changed}    local.get n
    i32.const 1
    i32.sub
    local.set n
    local.get n
    jump_if again
    return 0
""")
    (body,) = lift(region(verify(program), "program")).functions.values()
    found = store_early(body)
    assert found is not None
    assert bool(found.stores) is has_stores
