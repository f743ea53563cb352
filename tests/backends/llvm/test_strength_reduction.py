# SPDX-License-Identifier: Apache-2.0
"""LLVM's reduction of strength in loops, which large regions with groups are generated without."""

from __future__ import annotations

from ferryvm_backends._llvm.codegen import object_code, parsed_text

_STRIDED = """
define i64 @sum(ptr %first, i64 %stride, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i64 [ 0, %entry ], [ %added, %loop ]
  %place = mul i64 %i, %stride
  %address = getelementptr i64, ptr %first, i64 %place
  %element = load i64, ptr %address
  %added = add i64 %sum, %element
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret i64 %added
}
"""


def test_strength_is_reduced_again_behind_code_without() -> None:
    usual, without, again = (
        object_code(parsed_text(_STRIDED), reduces_strength=reduces)
        for reduces in (True, False, True)
    )
    assert without != usual
    assert again == usual
