# SPDX-License-Identifier: Apache-2.0
"""What was verified cannot be changed, and what comes out of a pickle is verified again."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

import ferryvm
from ferryvm.verify import Verified, VerifyError, verify

WAYS: dict[str, Callable[[Verified], Verified]] = {
    "itself": lambda verified: verified,
    "pickled": lambda verified: pickle.loads(pickle.dumps(verified)),
    "copied": copy.copy,
    "copied deeply": copy.deepcopy,
}


def sample() -> Verified:
    return verify(ferryvm.compile("(define (f x) (+ x 1)) (print! (f 2)) (f 40)"))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_verified_code_can_never_be_written(way: Callable[[Verified], Verified]) -> None:
    verified = way(sample())
    code = verified.program.code
    with pytest.raises(ValueError, match="read-only"):
        code["opcode"][0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        code.flags.writeable = True
    with pytest.raises(ValueError, match="WRITEABLE"):
        code.view(np.uint8).flags.writeable = True
    assert verified.frame_words == sample().frame_words
    assert ferryvm.run(verified.program, backend="reference").value == 41


def test_a_pickle_that_was_changed_is_refused() -> None:
    data = pickle.dumps(sample())
    code = sample().program.code.tobytes()
    assert data.count(code) == 1
    changed = data.replace(code, b"\xff\xff" + code[2:])
    with pytest.raises(VerifyError, match="opcode 65535"):
        pickle.loads(changed)


def test_the_code_of_a_program_can_be_changed_without_what_was_verified() -> None:
    program = ferryvm.compile("(print! 1)")
    again = pickle.loads(pickle.dumps(verify(program).program))
    before = verify(again)
    again.code["opcode"][:] = 0xFFFF
    assert ferryvm.run(before.program, backend="reference").output == "1\n"
