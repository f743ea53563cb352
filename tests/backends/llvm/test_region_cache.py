# SPDX-License-Identifier: Apache-2.0
"""Regions' code on disk: found again only where it would be the same, whoever wrote it and died."""

from __future__ import annotations

import dataclasses
import logging
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

import ferryvm
from ferryvm.backend import Code, Compiler, Forcing, Options
from ferryvm.engine import Engine
from ferryvm.engine.journal import Outcome, Placement
from ferryvm.engine.mixed import MixedArtifact
from ferryvm.policy import Choice, Policy, Profile, Rule
from ferryvm.policy import Options as PolicyOptions
from ferryvm.region.region import Region, region
from ferryvm.registry import Registry
from ferryvm.verify import verify
from ferryvm_backends.llvm.key import region_key
from ferryvm_backends.llvm.region_code import fault

LLVM = Registry().get("llvm")
TEXT = """
(define factor 3) (define total 0) (define i 0)
(define (scale n) (* n factor))
(define (step n) (scale (+ n 1)))
(define (apart n) (- n 1))
(print! (apart 4))
(while (< i 4000)
  (if (> i 3000) (set! total (+ total 1)))
  (set! total (+ total (step i)))
  (set! i (+ i 1)))
(print! total)"""


def found(text: str = TEXT, name: str = "main/loop.1") -> Region:
    return region(verify(ferryvm.compile(text)), name)


def compiled(of: Region, options: Options | None = None) -> Code:
    assert isinstance(LLVM, Compiler)
    return LLVM.compile(of, options or Options())


def engine() -> Engine:
    """Compiles the loop of the program, with speculation."""
    options = PolicyOptions(background=False, speculate=True, guard_limit=50)
    rule = Rule(backends=(Choice("llvm", options),))
    policy = Policy(profile=Profile(True, 500, 5000, 1), rules=(rule,))
    return Engine(policy=policy)


def ran(on: Engine | None = None) -> tuple[str, Placement]:
    """What the program writes, and how its loop was compiled."""
    execution = (on or engine()).start(ferryvm.compile(TEXT))
    result = execution.run()
    ((_, artifact),) = execution._prepared.values()
    assert isinstance(artifact, MixedArtifact)
    (placement,) = artifact.journal.placements
    return result.output, placement


def outcomes(placement: Placement) -> list[Outcome]:
    return [attempt.outcome for attempt in placement.attempts]


# --- the key --------------------------------------------------------------------------------


def test_code_is_found_again_and_does_the_same(empty_cache: Path) -> None:
    expected = Engine("reference").start(ferryvm.compile(TEXT)).run().output
    cold_output, cold = ran()
    warm_output, warm = ran()
    assert cold_output == warm_output == expected
    assert outcomes(cold) == [Outcome.COMPILED] * 2
    assert outcomes(warm) == [Outcome.CACHED] * 2
    assert [a.failures for _, a in cold.activity()] == [a.failures for _, a in warm.activity()]
    assert list(cold.activity()[0][1].failures.values()) == [50]


def test_code_that_is_not_to_be_kept_is_neither_written_nor_looked_for(empty_cache: Path) -> None:
    assert not compiled(found(), Options(cache=False)).is_from_cache
    assert not empty_cache.exists()
    assert not compiled(found()).is_from_cache
    assert not compiled(found(), Options(cache=False)).is_from_cache
    assert compiled(found()).is_from_cache


def test_the_same_text_has_the_same_key_whatever_the_functions_are_called() -> None:
    key = region_key(found(), Options())
    assert region_key(found(), Options()) == key
    assert region_key(found(TEXT.replace("scale", "enlarge")), Options()) == key


@pytest.mark.parametrize(
    "change",
    [
        ("(* n factor)", "(+ n factor)"),
        ("(* n factor)", "(* n 5)"),
        ("(+ n 1)", "(+ n 2)"),
        ("4000", "4001"),
        ("(define factor 3)", "(define factor 3i32)"),
    ],
    ids=["code of a callee's callee", "its operand", "a callee", "the loop", "a static's type"],
)
def test_another_program_has_another_key(change: tuple[str, str]) -> None:
    text = TEXT.replace(*change)
    if "i32" in change[1]:
        text = text.replace("(* n factor)", "(* n (i64 factor))")
    assert text != TEXT
    assert region_key(found(text), Options()) != region_key(found(), Options())


def test_what_a_region_does_not_run_is_not_in_its_key() -> None:
    other = found(TEXT.replace("(- n 1)", "(- n 2)"))
    assert region_key(other, Options()) == region_key(found(), Options())


OTHERWISE = {
    "lanes": 4,
    "known": frozenset([(True, 0, 7)]),
    "launches": frozenset([(6, 0)]),
    "optimize": 3,
    "counting": True,
    "unseen": frozenset([(1, 2)]),
    "guard_limit": 7,
    "observe": True,
    "quick": True,
    "forcing": frozenset([Forcing.DEOPT]),
    "recompile_after": 7,
    "natives": frozenset([0]),
}


def test_every_option_is_in_the_key_but_whether_code_is_kept() -> None:
    names = {field.name for field in dataclasses.fields(Options)}
    assert names == {*OTHERWISE, "cache", "check", "device"}  # it has no devices
    changed = [dataclasses.replace(Options(), **{n: v}) for n, v in OTHERWISE.items()]  # type: ignore[arg-type]  # by name
    keys = {region_key(found(), options) for options in [Options(), *changed]}
    assert len(keys) == len(OTHERWISE) + 1
    kept = dataclasses.replace(Options(), cache=False, check=True)
    assert region_key(found(), kept) == region_key(found(), Options())


TABLE = """
.table {table}
.function main
.local i i64
:again
    local.get i
    i32.const 0
    call_indirect (i64) -> i64
    local.set i
    local.get i
    i64.const 900
    i64.lt_s
    jump_if again
    local.get i
    halt
.function one (n i64) -> i64
    local.get n
    i64.const 1
    i64.add
    return
.function two (n i64) -> i64
    local.get n
    i64.const 2
    i64.add
    return
"""


def test_the_function_table_is_in_the_key() -> None:
    keys = {
        region_key(
            region(verify(ferryvm.assemble(TABLE.format(table=t))), "main/loop.1"), Options()
        )
        for t in ("one two", "two one", "one one")
    }
    assert len(keys) == 3


HANDLERS = """
.tag a
.tag b
.tag c {values}
.function main
    i32.const 1
:start
    jump_if second
    throw a
:second
    throw b
:end
:one
    i64.const 1
    halt
:two
    i64.const 2
    halt
.catch b from start to {end} using {b}
.catch a from start to {end} using {a}
"""


def handled(
    *, b: str = "one", a: str = "two", end: str = "end", values: str = ""
) -> ferryvm.Program:
    return ferryvm.assemble(HANDLERS.format(b=b, a=a, end=end, values=values))


def test_clauses_and_tags_are_in_the_key() -> None:
    changed: list[dict[str, str]] = [
        {}, {"b": "two", "a": "one"}, {"end": "two"}, {"values": "i64"}, {"values": "f64"}
    ]  # fmt: skip
    programs = [handled(**each) for each in changed]
    keys = {region_key(region(verify(each), "main"), Options()) for each in programs}
    assert len(keys) == len(changed)


def test_code_of_the_same_instructions_under_other_clauses_is_not_taken() -> None:
    for program, value in ((handled(), 1), (handled(b="two", a="one"), 2)):
        assert ferryvm.run(program, backend="llvm").value == value


# --- damage, kills, other processes ---------------------------------------------------------


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_damaged_code_is_reported_and_made_again(
    empty_cache: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    expected, _ = ran()
    for entry in empty_cache.glob("*/region-*.bin"):
        content = bytearray(entry.read_bytes())
        content[-20] ^= 1
        entry.write_bytes(
            {"cut": bytes(content[:-9]), "flipped": bytes(content), "empty": b""}[damage]
        )
    with caplog.at_level(logging.WARNING, "ferryvm.cache"):
        output, placement = ran()
    assert output == expected
    assert outcomes(placement) == [Outcome.COMPILED] * 2
    assert caplog.text.count("it is damaged, or") == 2
    assert outcomes(ran()[1]) == [Outcome.CACHED] * 2


def test_without_a_place_to_keep_code_it_is_compiled_all_the_same_and_that_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected, _ = ran()
    usable = engine()
    monkeypatch.setenv("FERRYVM_CACHE_DIR", "/dev/null/x")
    with caplog.at_level(logging.WARNING, "ferryvm.cache"):
        output, placement = ran(usable)
    assert output == expected
    assert outcomes(placement) == [Outcome.COMPILED] * 2
    (said,) = caplog.messages
    assert said == (
        "llvm: cache /dev/null/x cannot be used: Not a directory; set FERRYVM_CACHE_DIR to a "
        "folder of your own that can be written; compiled code is not kept"
    )


def test_code_that_is_there_and_cannot_be_read_is_compiled_again(
    empty_cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected, _ = ran()
    for entry in empty_cache.glob("*/region-*.bin"):
        entry.unlink()
        entry.mkdir()
    with caplog.at_level(logging.WARNING, "ferryvm.cache"):
        output, placement = ran()
    assert output == expected
    assert outcomes(placement) == [Outcome.COMPILED] * 2
    assert caplog.messages
    refused = [said for said in caplog.messages if said.endswith("it is no regular file")]
    unusable = [said for said in caplog.messages if "cannot be used: Is a directory; " in said]
    assert (len(refused), len(unusable)) == (2, 1)


def _compile_many(folder: str, first: int) -> None:
    os.environ["FERRYVM_CACHE_DIR"] = folder
    for number in range(first, 1_000_000):
        compiled(found(TEXT.replace("4000", str(number))), Options(optimize=0))


@pytest.mark.nightly
def test_a_process_that_is_killed_while_it_keeps_code_leaves_none_that_is_bad(
    empty_cache: Path,
) -> None:
    context = multiprocessing.get_context("spawn")
    seen = 0
    for attempt in range(2):
        process = context.Process(target=_compile_many, args=(str(empty_cache), 5000 * attempt))
        process.start()
        while not empty_cache.exists() or len(list(empty_cache.glob("*/*.bin"))) < seen + 3:
            assert process.is_alive()
            time.sleep(0.0007 * attempt)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        seen = len(list(empty_cache.glob("*/*.bin")))
    entries = list(empty_cache.glob("*/region-*.bin"))
    assert len(entries) >= 6
    for entry in entries:
        content = entry.read_bytes()
        assert content.startswith(b"ferryvm\x02")
        assert fault(content[40:]) is None


def _compile_some(folder: str, results: multiprocessing.Queue[int]) -> None:
    os.environ["FERRYVM_CACHE_DIR"] = folder
    codes = [compiled(found(TEXT.replace("4000", str(n))), Options(optimize=1)) for n in range(8)]
    results.put(sum(not code.is_from_cache for code in codes))


@pytest.mark.nightly
def test_processes_that_compile_the_same_at_once_all_have_their_code(empty_cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[int] = context.Queue()
    processes = [
        context.Process(target=_compile_some, args=(str(empty_cache), results)) for _ in range(2)
    ]
    for process in processes:
        process.start()
    made = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert 8 <= sum(made) <= 16
    assert len(list(empty_cache.glob("*/region-*.bin"))) == 8
    assert list(empty_cache.glob("*/.ferry-*")) == []
