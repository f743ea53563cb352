# SPDX-License-Identifier: Apache-2.0
"""The base of compilers: each step once and timed, the cache around them, one target after
another."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path

import pytest

import ferryvm
from ferryvm import cache
from ferryvm.backend import (
    Activity,
    BackendError,
    Capabilities,
    Code,
    Forcing,
    Options,
    TooLargeError,
)
from ferryvm.compiler import Compilation, RegionCompiler, Target, code_facts
from ferryvm.cost import Cost
from ferryvm.ir.graph import Module
from ferryvm.region.region import Region, region
from ferryvm.verify import verify

LOOP = "(define i 0) (while (< i 100) (set! i (+ i 1))) (print! i)"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv(cache.ENVIRONMENT, str(tmp_path / "cache"))
    return tmp_path / "cache"


def loop(text: str = LOOP) -> Region:
    return region(verify(ferryvm.compile(text)), "program")


class _Code(Code):
    address = 0

    def __init__(self, payload: bytes) -> None:
        self.payload = payload

    def activity(self) -> Activity:
        return Activity()


class _Letters(Target[str]):
    """Notes its steps."""

    kind = "letters"

    def __init__(self, letters: str = "x", is_fit: bool = True, fault: str | None = None) -> None:
        self.letters, self.is_fit, self._fault = letters, is_fit, fault
        self.steps: list[str] = []

    def __str__(self) -> str:
        return f"target {self.letters}"

    def prepare(self) -> None:
        self.steps.append("prepare")
        super().prepare()

    def lift(self, region: Region, options: Options) -> Module:
        self.steps.append("lift")
        assert not gc.isenabled()
        return super().lift(region, options)

    def lower(self, work: Compilation[str]) -> str:
        self.steps.append("lower")
        return self.letters

    def key(self, work: Compilation[str]) -> str:
        return cache.key([self.letters, *code_facts(work.region, work.options)])

    def fault(self, payload: bytes) -> str | None:
        return self._fault

    def build(self, work: Compilation[str]) -> bytes:
        self.steps.append("build")
        assert work.lowered is work.lowered
        work.step("half")
        return work.lowered.encode()

    def load(
        self, work: Compilation[str], payload: bytes, found: cache.Entry | None
    ) -> Code | None:
        self.steps.append("load")
        return _Code(payload) if self.is_fit else None

    def show(self, work: Compilation[str], stage: str) -> str:
        return f"{stage} {work.lowered}"


class _Compiler(RegionCompiler):
    name, version = "spelling", "1"
    stages = ("ir", "letters")

    def __init__(self, *targets: _Letters, limits: Cost | None = None) -> None:
        self.all = targets
        self.capabilities = Capabilities(limits=limits)

    def targets(self, options: Options) -> Sequence[_Letters]:
        return self.all


def compiled(*targets: _Letters, options: Options | None = None) -> _Code:
    code = _Compiler(*targets).compile(loop(), options or Options())
    assert isinstance(code, _Code)
    return code


def test_each_step_is_taken_once_and_timed() -> None:
    target = _Letters()
    notes = compiled(target).notes
    assert target.steps == ["build", "prepare", "lift", "lower", "load"]
    assert list(notes) == ["lift", "lower", "half", "build", "load", "total"]
    assert all(seconds >= 0 for seconds in notes.values())
    assert sum(notes.values()) - notes["total"] <= notes["total"]
    assert gc.isenabled()


def test_what_is_found_is_neither_lifted_nor_lowered() -> None:
    first, again = compiled(_Letters()), _Letters()
    second = compiled(again)
    assert again.steps == ["load"]
    assert list(second.notes) == ["load", "total"]
    assert (first.is_from_cache, second.is_from_cache) == (False, True)
    assert first.payload == second.payload == b"x"


def test_without_the_cache_nothing_is_read_or_kept(folder: Path) -> None:
    for _ in range(2):
        assert not compiled(_Letters(), options=Options(cache=False)).is_from_cache
    assert not list(folder.rglob("*.bin"))


@pytest.mark.parametrize(
    "options",
    [
        Options(optimize=1),
        Options(counting=True),
        Options(unseen=frozenset({(1, 2)})),
        Options(known=frozenset({(True, 0, 7)})),
        Options(guard_limit=5),
        Options(observe=True),
        Options(forcing=frozenset({Forcing.DEOPT})),
        Options(device="other"),
        Options(quick=True),
    ],
)
def test_code_of_other_options_is_other_code(options: Options) -> None:
    assert code_facts(loop(), options) != code_facts(loop(), Options())


def test_neither_cache_nor_check_is_a_fact_of_code() -> None:
    assert code_facts(loop(), Options(cache=False, check=True)) == code_facts(loop(), Options())


def test_where_a_target_cannot_load_the_next_one_is_tried() -> None:
    first, second = _Letters("a", is_fit=False), _Letters("b")
    code = compiled(first, second)
    assert code.payload == b"b"
    assert not compiled(_Letters("a")).is_from_cache  # nothing is kept that was not loaded


def test_a_region_that_no_target_can_load_is_an_error() -> None:
    with pytest.raises(BackendError, match=r"^spelling: region program: no target can load"):
        compiled(_Letters(is_fit=False))


def test_what_is_no_payload_is_told_once_and_not_kept(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        assert not compiled(_Letters("f", fault="it is odd")).is_from_cache
    assert caplog.messages == ["spelling: what target f builds is not kept: it is odd"]
    assert not list(folder.rglob("*.bin"))


def test_a_region_beyond_the_limits_is_too_large() -> None:
    compiler = _Compiler(_Letters(), limits=Cost(instructions=3, words=1000, frame=1000))
    with pytest.raises(TooLargeError, match=r"region program: \d+ instructions .* more than 3$"):
        compiler.compile(loop(), Options())


def test_stages_are_the_ir_and_what_the_target_shows() -> None:
    compiler = _Compiler(_Letters())
    assert compiler.show(loop(), Options(), "ir").startswith("module program\n")
    assert compiler.show(loop(), Options(), "letters") == "letters x"
    with pytest.raises(BackendError, match="shows no 'sounds'; it has: ir, letters"):
        compiler.show(loop(), Options(), "sounds")
    with pytest.raises(BackendError, match="has no picture of 'ir'"):
        compiler.picture(loop(), Options(), "ir")
