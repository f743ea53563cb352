# SPDX-License-Identifier: Apache-2.0
"""What the text of a region looks like to who reads it."""

from __future__ import annotations

import dataclasses

import ferryvm
from ferryvm.ir.c import C11, Choices, module_text
from ferryvm.ir.c.comment import describer
from ferryvm.ir.lift import lift
from ferryvm.ir.passes.canonicalisation import defer_canonicalisation
from ferryvm.machine.declaration import declarations
from ferryvm.program import SourceMap
from ferryvm.region.region import region
from ferryvm.verify import Verified, verify

SUM = """\
(define (sum n)
  (define total 0)
  (while (> n 0)
    (set! total (+ total n))
    (set! n (- n 1)))
  total)
(sum 10)
"""

EXPECTED = """\
static struct returned_i64 f1(struct ferry_control *restrict control, uint64_t *const frame, \
uint64_t a0)
{
    int32_t budget = entered(control) ? 1 : 4096;
    uint64_t p0, p1;
    if (unlikely(entered(control))) {
        frame_l__l(frame, a0, 0ull);
        leave(control, frame, 1, 4, 3, FERRY_INTERRUPTED);
        return (struct returned_i64){0, 1};
    }
    /* <string>:2: 3 i64.const 0, 4 local.set 1 */
    /* <string>:3: 5 jump 14 */
    p0 = a0;
    p1 = 0ull;
    for (;;) {
        /* <string>:3: 14 local.get 0, 15 i64.const 0, 16 i64.gt_s */
        const bool v3 = (int64_t)p0 > (int64_t)0ull;
        /* <string>:3: 17 jump_if 6 */
        if (!v3) {
            /* <string>:6: 18 local.get 1, 19 return 1 */
            return (struct returned_i64){p1, 0};
        }
        /* <string>:4: 6 local.get 1, 7 local.get 0, 8 i64.add */
        const uint64_t v4 = p1 + p0;
        /* <string>:4: 9 local.set 1 */
        /* <string>:5: 10 local.get 0, 11 i64.const 1, 12 i64.sub */
        const uint64_t v5 = p0 + -1ull;
        /* <string>:5: 13 local.set 0 */
        if (unlikely(--budget == 0)) {
            budget = 4096;
            if (unlikely(interrupted(control))) {
                frame_l__l(frame, v5, v4);
                leave(control, frame, 1, 4, 14, FERRY_INTERRUPTED);
                return (struct returned_i64){0, 1};
            }
        }
        p0 = v5;
        p1 = v4;
    }
}
"""
"""The whole function."""


def text_of(verified: Verified, **choices: bool) -> str:
    module = lift(region(verified, "program"))
    for body in module.bodies:
        defer_canonicalisation(body)
    describe = describer(verified)
    return module_text(module, C11, declarations(C11), Choices(**choices), describe)


def test_a_loop_reads_as_one_would_write_it() -> None:
    verified = verify(ferryvm.compile(SUM))
    text = text_of(verified)
    at = text.index("static struct returned_i64 f1(", text.index("/* function sum */"))
    assert text[at : at + len(EXPECTED)] == EXPECTED


def test_only_helpers_that_are_called_are_defined() -> None:
    text = text_of(verify(ferryvm.compile(SUM)))
    assert "static inline bool interrupted(" in text
    assert "clz" not in text
    assert "sqrt" not in text


def test_a_file_name_cannot_end_a_comment() -> None:
    program = ferryvm.compile(SUM)
    rows = program.source_map.rows
    named = dataclasses.replace(program, source_map=SourceMap(("*/ evil(); /*\\",), rows))
    text = text_of(verify(named))
    assert "* / evil(); /*/:3: " in text
    assert "*/ evil" not in text


def test_without_polls_no_loop_looks_at_the_flag() -> None:
    verified = verify(ferryvm.compile("(define i 0)(while (< i 9) (set! i (+ i 1)))i"))
    assert "budget" in text_of(verified)
    assert "budget" not in text_of(verified, polls=False)
