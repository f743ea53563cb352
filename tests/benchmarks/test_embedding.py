# SPDX-License-Identifier: Apache-2.0
"""The programs of the embedding benchmark are the same, built and assembled, and run."""

import pytest
from benchmarks.embedding import calling, making, native

import ferryvm


@pytest.mark.nightly
def test_the_built_and_the_assembled_program_are_the_same_code_and_run() -> None:
    program = making.build(2000)
    built, assembled = program.build(), ferryvm.assemble(making.text_of(program))
    assert built.code.tobytes() == assembled.code.tobytes()
    assert 1500 < len(built.code) < 2500
    assert isinstance(ferryvm.run(built, "reference").value, int)


@pytest.mark.nightly
def test_figures_have_a_row_for_each_stage() -> None:
    seen: list[str] = []
    figures = making.measure(1, 1000, seen.append)
    assert len(seen) == 1
    for name in ("build_s", "verify_s", "start_s", "assemble_s", "total_s"):
        assert figures[name] >= 0
    assert figures["built_per_s"] > 0
    assert figures["target_s"] is None


def test_each_kind_of_call_is_timed_and_held_to_its_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calling, "CALLS", 50)
    monkeypatch.setattr(calling, "BACKENDS", ("threaded",))
    targets = {"call threaded": 0.0, "host threaded": 1e9}
    monkeypatch.setattr(calling, "TARGETS_US", targets)
    figures = calling.measure(1, lambda _: None)
    for name in ("call", "host", "throw", "throw ten frames"):
        assert isinstance(figures[f"{name} threaded (us)"], float)
    assert figures["missed"].split(", ")[0] == "call threaded"


def test_programs_of_the_calls_do_what_is_timed() -> None:
    program = ferryvm.assemble(calling.PROGRAM)
    instance = ferryvm.Engine("reference").instantiate(program, hosts=[calling.twice])
    assert instance.add(1, 2) == 3
    assert (instance.ask(3), instance.throw(3), instance.plain(3)) == (1, 6, 6)
    assert instance.deep(2) == 1


def test_native_calls_are_timed_and_held_to_their_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "CALLS", 50)
    monkeypatch.setattr(native, "TARGETS_NS", {"native threaded": -1e9, "native llvm": 1e9})
    figures = native.measure(1, lambda _: None)
    for name in ("C", "threaded", "llvm"):
        assert figures[f"native {name} (ns)"] > 0
    assert figures["native missed"] == "native threaded"
