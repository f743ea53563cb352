# SPDX-License-Identifier: Apache-2.0
"""The reference backend checks that references are what the verifier says they are."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm_backends.reference.object import Violation

TEXT = """
.struct node value i64
.struct other value i64
.static head node
.host spoil
.function main
    i64.const 5
    struct.new other
    drop
    i64.const 6
    struct.new node
    static.set head
    host spoil
    static.get head
    struct.get node.value
    halt
"""


@pytest.mark.parametrize("word", [4, 8, 3, 1 << 40, 1 << 63])
def test_a_word_that_is_no_reference_of_its_type_is_a_violation(word: int) -> None:
    statics: list[memoryview[int]] = []

    @ferryvm.host(name="spoil")
    def spoil() -> None:
        statics[0][0] = word

    execution = ferryvm.Engine("reference", hosts=[spoil]).start(ferryvm.assemble(TEXT))
    statics.append(execution.machine.memory.statics)
    with pytest.raises(Exception, match="is no node") as caught:
        execution.run()
    error: BaseException | None = caught.value
    while error is not None and not isinstance(error, Violation):
        error = error.__cause__
    assert isinstance(error, Violation)


def test_a_result_that_is_a_reference_is_no_number() -> None:
    text = ".struct node\n.function main\nstruct.new_default node\nhalt\n"
    assert ferryvm.run(ferryvm.assemble(text), backend="reference").value is None
