# SPDX-License-Identifier: Apache-2.0
"""Faults planted in compilers are found: the campaign's results, and one of each kind anew."""

from __future__ import annotations

import importlib
import sys

import pytest

import ferryvm
from ferryvm.backend import Options
from ferryvm.errors import FerryError
from ferryvm.ir.passes import code_motion, jump_threading
from ferryvm.ir.text import module_text
from ferryvm.region.region import region
from ferryvm.testing import Verdict
from ferryvm.verify import verify
from ferryvm_backends.llvm.build import improved

from ...tier import together
from .by_hand import BY_HAND
from .campaign import SHARE
from .page import MISSED, first, load
from .planting import CompilerFault, planted, source_of
from .programs import Origin, program
from .search import CC, checks, differ_of, search, warm_up
from .table import FAULTS, by_name

SAMPLE = [
    ("poll-not-made", Origin.BY_HAND),  # a pass
    ("frame-written-backwards", Origin.BY_HAND),  # llvm
    ("store-moved-over-an-exit", Origin.GENERATED),  # vliw, which takes seconds for those by hand
    ("fuel-not-given-back", Origin.BY_HAND),  # C
]
"""One fault of each class, which the first program of an origin shows."""


@together("fault", FAULTS, label=lambda fault: fault.name)
def test_the_text_that_a_fault_replaces_is_there_once(
    fault: CompilerFault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(CC)])
    assert source_of(importlib.import_module(fault.module)).count(fault.old) == 1


def test_there_are_faults_in_every_compiler_and_most_passes() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 40
    assert {fault.backend for fault in FAULTS} == {"llvm", "opencl", "vliw", "cc"}
    assert sum(".passes." in module for module in {fault.module for fault in FAULTS}) >= 14


def test_the_results_are_of_faults_in_the_table_and_enough_are_found() -> None:
    entries = load()["results"]
    names = [entry["fault"] for entry in entries]
    assert names == [fault.name for fault in FAULTS if fault.name in names]
    assert len(names) >= 60
    missed = {entry["fault"] for entry in entries if first(entry) is None}
    assert missed == MISSED.keys()
    assert len(missed) <= (1 - SHARE) * len(names)


@pytest.mark.parametrize(("name", "origin"), SAMPLE)
def test_a_fault_of_each_class_is_found_again(name: str, origin: Origin) -> None:
    (fault,) = by_name([name])
    warm_up([fault.backend])
    find, runs = search(fault, origin)
    assert find is not None
    assert runs == 1


@pytest.mark.rotate("number", most=len(BY_HAND) // 8)
@pytest.mark.parametrize("number", range(len(BY_HAND)), ids=list(BY_HAND))
def test_a_program_by_hand_ends_alike_in_compiled_code(number: int) -> None:
    _, verified = program(Origin.BY_HAND, number)
    with checks():
        differ = differ_of(("llvm", "llvm", "cc")[number % 3], patience=300.0)
        (comparison,) = differ.compare(verified)
    assert comparison.verdict is Verdict.AGREE


LOOP = "(define (f n) (define i 0) (while (< i n) (set! i (+ i 1))) i) (f 3)"


def ir() -> str:
    module, _ = improved(region(verify(ferryvm.compile(LOOP)), "f"), Options())
    return module_text(module)


def test_a_fault_is_there_only_while_it_is_planted() -> None:
    right = ir()
    fault = CompilerFault(
        "none", "", "llvm", jump_threading.__name__, "        self._merge()\n", "        pass\n"
    )
    with planted(fault):
        assert ir() != right
    assert ir() == right


def test_constants_of_a_module_are_planted_too() -> None:
    (fault,) = by_name(["division-moved-out-of-a-loop"])
    with planted(fault):
        assert "div_s" in code_motion._MOVABLE
    assert "div_s" not in code_motion._MOVABLE


def test_a_fault_of_another_source_is_told() -> None:
    fault = CompilerFault("old", "", "llvm", jump_threading.__name__, "not there", "")
    with pytest.raises(FerryError, match="does not have its text once"):
        planted(fault).__enter__()
