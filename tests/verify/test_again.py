# SPDX-License-Identifier: Apache-2.0
"""What was verified cannot be changed, and what comes out of a pickle is verified again."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

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
    for view in (code.opcodes, code.immediates):
        with pytest.raises(TypeError, match="read-only"):
            view[0] = 1
    with pytest.raises(AttributeError, match="no setter"):
        code.opcodes = code.immediates  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        code.records["opcode"][0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        code.records.flags.writeable = True
    assert verified.frame_words == sample().frame_words
    assert ferryvm.run(verified.program, backend="reference").value == 41


def test_a_pickle_that_was_changed_is_refused() -> None:
    data = pickle.dumps(sample())
    code = sample().program.code.tobytes()
    assert data.count(code) == 1
    changed = data.replace(code, b"\xff\xff" + code[2:])
    with pytest.raises(VerifyError, match="opcode 65535"):
        pickle.loads(changed)
