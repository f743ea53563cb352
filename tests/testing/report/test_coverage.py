# SPDX-License-Identifier: Apache-2.0
"""Coverage counts what ran, whichever backend runs it, and says where it stopped watching."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.isa import BY_MNEMONIC
from ferryvm.machine.memory import Limits
from ferryvm.testing import Differ
from ferryvm.testing.report import Coverage, observe, total
from ferryvm.verify import verify

from .test_edge import met

CALLS = """
.host print_i64 (i64)
.table down
.function main
i64.const 120
call down
host print_i64
i64.const 0
i32.const 0
call_indirect (i64) -> (i64)
halt

.function down (n i64) -> (i64)
local.get n
i64.eqz
jump_if end
local.get n
i64.const 1
i64.sub
call down
return 1
:end
i64.const 0
return 1
"""

GROWS = """
.function main
i64.const 8
heap.alloc
i64.const 100000
heap.alloc
i64.const 1099511627776
heap.alloc
halt
"""

LIMITS = Limits(stack=65536, heap=1 << 20, first_heap=4096)


def observed(text: str, backend: str = "reference", most: int = 200_000) -> Coverage:
    program = verify(ferryvm.assemble(text))
    names = ["reference", "switch", "threaded"]
    return observe(Differ(names, limits=LIMITS).start(program), backend, most)


def test_calls_host_calls_and_depths_are_met() -> None:
    coverage = observed(CALLS)
    assert met(coverage, "call") == {
        "call depth: 1",
        "call depth: 2 to 9",
        "call depth: 10 to 99",
        "call depth: 100 or more",
        "call: of the function that calls",
    }
    assert met(coverage, "call_indirect") == {
        "operand a: zero",
        "index: last of the table",
        "call depth: 1",
    }
    assert met(coverage, "return") == {"return: with a result"}
    assert met(coverage, "host") == {"host call: with arguments"}
    assert met(coverage, "jump_if") >= {"branch: taken", "branch: not taken", "jump: forward"}
    opcode = BY_MNEMONIC["call"].opcode
    assert coverage.counts[opcode] == 121


def test_counts_add_up_to_the_instructions_that_ran() -> None:
    program = verify(ferryvm.assemble(CALLS))
    differ = Differ(["switch"], limits=LIMITS)
    (comparison,) = differ.compare(program)
    coverage = observe(differ.start(program), "reference")
    assert coverage.is_whole
    assert coverage.observed == comparison.instructions == sum(coverage.counts.values())


def test_growth_is_met_once_and_exhaustion_is_a_trap() -> None:
    coverage = observed(GROWS)
    opcode = BY_MNEMONIC["heap.alloc"].opcode
    assert met(coverage, "heap.alloc") == {"heap: grew", "trap: heap exhausted"}
    assert list(coverage.edges[opcode].values()) == [1, 1]
    assert coverage.counts[opcode] == 3  # the one that trapped included


@pytest.mark.rotate("backend", "text")
@pytest.mark.parametrize("text", [CALLS, GROWS])
def test_every_backend_covers_the_same(text: str, backend: str) -> None:
    assert observed(text, backend) == observed(text)


def test_watching_stops_at_its_limit_and_says_so() -> None:
    short = observed(CALLS, most=50)
    assert (short.observed, short.is_whole, sum(short.counts.values())) == (50, False, 50)
    assert BY_MNEMONIC["return"].opcode not in short.counts


def test_totals_add_counts_and_lose_no_limit() -> None:
    whole, short = observed(GROWS), observed(CALLS, most=50)
    both = total([whole, short])
    assert both.observed == whole.observed + 50
    assert not both.is_whole
    constant = BY_MNEMONIC["i64.const"].opcode
    assert both.counts[constant] == whole.counts[constant] + short.counts[constant]
    assert total([whole, whole]).edge_count == whole.edge_count
    assert total([]) == Coverage({}, {}, 0, True)
