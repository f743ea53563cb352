# SPDX-License-Identifier: Apache-2.0
"""The limit of placements in blocks that are not pipelined loops."""

from __future__ import annotations

import pytest

from ferryvm.backend import RefusalError
from ferryvm_backends.vliw.code import tuning
from ferryvm_backends.vliw.machine.read import find

from .loop_program import COUNTS
from .program import compiled, whole

REASON = r"takes more than 40 placements of operations outside of pipelined loops"


def test_a_region_whose_blocks_take_too_many_placements_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "LIST_PLACEMENTS", 40)
    with pytest.raises(RefusalError, match=REASON):
        compiled(whole(COUNTS), find("multi16"))
