# SPDX-License-Identifier: Apache-2.0
"""NaNs are made canonical where bits are seen, and only there."""

from __future__ import annotations

from ferryvm.ir.passes.canonicalisation import defer_canonicalisation

from .change import changed


def test_operands_of_arithmetic_are_raw() -> None:
    text = """
entry @0 ():
  %0: f64 = word 2
  %1: f64 = fadd f64 %0, %0
  %2: f64 = canonical f64 %1
  %3: f64 = fmul f64 %2, %2
  %4: f64 = canonical f64 %3
  return %4
"""
    after = changed(defer_canonicalisation, text, "f64")
    assert after.count("canonical") == 1
    assert "%2: f64 = fmul f64 %1, %1\n  %3: f64 = canonical f64 %2\n  return %3" in after


def test_a_store_a_call_and_a_reinterpretation_see_bits() -> None:
    for use in (
        "set_static 0 %2",
        "%3: i64 = reinterpret i64 f64 %2\n  set_static 0 %3",
        "%3: i64 = to_slot f64 %2\n  set_static_at %3, %3",
        "call_indirect () 4 %9, %2 @0 [_ _ %0 i64:0 i64:0 i64:0]",
    ):
        text = f"""
entry @0 ():
  %9: i64 = word 3
  %0: f64 = word 2
  %1: f64 = fadd f64 %0, %0
  %2: f64 = canonical f64 %1
  {use}
  leave @0 [_ _]
"""
        after = changed(defer_canonicalisation, text)
        (made,) = [line for line in after.splitlines() if "= canonical" in line]
        assert made.split(":")[0].strip() in after.split(made)[1], use


def test_states_name_what_has_no_place() -> None:
    text = """
entry @0 ():
  %0: f64 = word 2
  %1: f64 = fadd f64 %0, %0
  %2: f64 = canonical f64 %1
  leave @0 [_ _ %2 %0] {s0=%2}
"""
    after = changed(defer_canonicalisation, text)
    assert "leave @0 [_ _ canonical(%1) %0] {s0=canonical(%1)}" in after
    assert "= canonical" not in after


LOOP = """
entry @0 ():
  %0: f64 = word 2
  jump b1({first})
b1 @1 (%1: f64):
  %2: f64 = fadd f64 %1, %0
  %3: f64 = canonical f64 %2
  %4: boolean = compare f64 lt %3, %0
  branch %4 b2() b3()
b2 @1 ():
  poll @1 [_ _ %3]
  jump b1(%3)^
b3 @2 ():
  set_static 0 %1
  return %1
"""


def test_a_parameter_that_is_only_given_what_is_canonical_is_raw() -> None:
    after = changed(defer_canonicalisation, LOOP.format(first="f64:1.0"), "f64")
    assert "jump b1(%2)^" in after
    assert after.count("= canonical") == 1  # one for both uses in the last block
    assert "= canonical f64 %1" in after.split("b3 @2")[1]


def test_bits_from_memory_are_observed_as_they_are_in_the_first_iteration() -> None:
    after = changed(defer_canonicalisation, LOOP.format(first="%0"), "f64")
    assert "jump b1(%0, true)" in after
    assert "%3: f64 = canonical f64 %1" in after
    assert "%4: f64 = select %2, %0, %3" in after
    assert "return %4" in after
    assert "jump b1(%5, false)^" in after


def test_a_nan_with_a_payload_is_not_taken_for_the_canonical_one() -> None:
    after = changed(defer_canonicalisation, LOOP.format(first="f64:0x7ff8000000000001"), "f64")
    assert "= select %2, f64:0x7ff8000000000001, %3" in after
    assert "return %4" in after
