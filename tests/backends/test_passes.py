# SPDX-License-Identifier: Apache-2.0
"""LLVM's passes in children: the same results, and what becomes of children that end."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import llvmlite.binding as llvm
import pytest

from ferryvm.backend import BackendError
from ferryvm.service import Service
from ferryvm_backends._llvm import passes
from ferryvm_backends._llvm.codegen import parsed
from ferryvm_backends._llvm.passes import Pipeline, improve

TEXT = """
define i64 @sum(i64 %n) {
entry:
  %s = alloca i64
  store i64 0, ptr %s
  br label %again
again:
  %i = phi i64 [0, %entry], [%j, %again]
  %j = add i64 %i, 1
  %old = load i64, ptr %s
  %new = add i64 %old, %j
  store i64 %new, ptr %s
  %more = icmp ult i64 %j, %n
  br i1 %more, label %again, label %end
end:
  %found = load i64, ptr %s
  ret i64 %found
}
"""


@pytest.fixture(autouse=True)
def _only_children(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    service = Service(passes._start)
    monkeypatch.setattr(passes, "_service", service)
    monkeypatch.setattr(passes, "_runs", itertools.count())
    monkeypatch.setattr(passes, "_is_reported", False)
    monkeypatch.setattr(passes, "HERE", 0)
    yield
    service.end()


def child() -> int:
    """The process that runs passes just now."""
    found = passes._service.child
    assert found is not None
    return found.pid


def body(module: llvm.ModuleRef) -> str:
    """The text of a module but for its name."""
    return str(module).partition("source_filename")[2].partition("\n")[2]


def test_passes_of_a_child_do_what_they_do_here(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {each: body(improve(parsed(TEXT), each)) for each in Pipeline}
    child()
    monkeypatch.setattr(passes, "HERE", 100)
    assert {each: body(improve(parsed(TEXT), each)) for each in Pipeline} == there
    assert len({*there.values()}) > 2


def test_children_are_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "RENEWED", 2)
    seen = []
    for _ in range(3):
        improve(parsed(TEXT), Pipeline.SHORTEST)
        seen.append(child())
    assert seen[0] == seen[1] != seen[2]


def test_runs_here_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "HERE", 2)
    for _ in range(2):
        improve(parsed(TEXT), Pipeline.SHORTEST)
    assert passes._service.child is None
    improve(parsed(TEXT), Pipeline.SHORTEST)
    child()


def test_a_child_that_ends_is_an_error_and_followed_by_another_one() -> None:
    improve(parsed(TEXT), Pipeline.SHORTEST)
    first = child()
    os.kill(first, signal.SIGSTOP)  # it is asked, and cannot answer before it ends
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(improve, parsed(TEXT), Pipeline.SHORTEST)
        while passes._service._requests < 2:
            time.sleep(0.001)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(BackendError, match="has ended"):
            asked.result(60)
    improve(parsed(TEXT), Pipeline.SHORTEST)
    assert child() != first


def test_a_child_that_has_ended_before_it_is_asked_is_replaced() -> None:
    improve(parsed(TEXT), Pipeline.SHORTEST)
    first = passes._service.child
    assert first is not None
    os.kill(first.pid, signal.SIGKILL)
    first.finish(60)
    improve(parsed(TEXT), Pipeline.SHORTEST)
    assert child() != first.pid


def test_a_forked_process_leaves_the_child_alone() -> None:
    improve(parsed(TEXT), Pipeline.SHORTEST)
    before = child()
    forked = os.fork()
    if not forked:
        os._exit(0 if passes._service.child is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    improve(parsed(TEXT), Pipeline.SHORTEST)
    assert child() == before


def test_passes_run_here_where_there_can_be_no_child(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    for _ in range(2):
        assert "alloca" not in str(improve(parsed(TEXT), Pipeline.SHORTEST))
    assert len(caplog.records) == 1


def test_a_module_in_a_cycle_of_garbage_takes_its_context_along() -> None:
    for _ in range(10):  # which of the two is finalized first is not known
        module = parsed(TEXT)
        cycle: list[object] = [module._context, module]
        cycle.append(cycle)
        del module, cycle
    gc.collect()  # what a finalizer raises is an error of the test
