# SPDX-License-Identifier: Apache-2.0
"""The programs of the embedding benchmark are the same, built and assembled, and run."""

from benchmarks import embedding
from benchmarks.embedding import making

import ferryvm


def test_the_built_and_the_assembled_program_are_the_same_code_and_run() -> None:
    program = making.build(2000)
    built, assembled = program.build(), ferryvm.assemble(making.text_of(program))
    assert built.code.tobytes() == assembled.code.tobytes()
    assert 1500 < len(built.code) < 2500
    assert isinstance(ferryvm.run(built, "reference").value, int)


def test_figures_have_a_row_for_each_stage() -> None:
    seen: list[str] = []
    figures = embedding.measure(1, 1000, seen.append)
    assert len(seen) == 1
    for name in ("build_s", "verify_s", "start_s", "assemble_s", "total_s"):
        assert figures[name] >= 0
    assert figures["built_per_s"] > 0
    assert figures["target_s"] is None
