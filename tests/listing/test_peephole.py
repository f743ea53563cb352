# SPDX-License-Identifier: Apache-2.0
"""Every rule fires on its example, leaves its near miss alone, and ends on long listings."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from ferryvm.asm import parse, write
from ferryvm.isa import BY_MNEMONIC
from ferryvm.listing import FunctionListing, Item, Label, Line, Listing, peephole
from ferryvm.listing.rule import LABEL, RULES, Rule

from ..tier import sample

HEAD = ".loc none\n.static s i64\n.static t i64\n.static f f64\n.host show (i64)\n"
HEAD += ".function main\n.local i64 i32 f64\n"


@dataclasses.dataclass(frozen=True)
class Case:
    """What a rule makes of its example, and code that it must leave alone."""

    before: str
    after: str
    near_miss: str


CASES = {
    "neutral_operand": Case(
        "local.get 0; i64.const 0; i64.add; halt",
        "local.get 0; halt",
        "local.get 0; i64.const 1; i64.add; local.get 0; i64.const 0; i64.mul; halt",
    ),
    "adjacent_increments": Case(
        "local.get 0; i64.const 5; i64.add; i64.const 7; i64.sub; halt",
        "local.get 0; i64.const -2; i64.add; halt",
        "local.get 0; i64.const 5; i64.add; i64.const 7; i64.mul; halt",
    ),
    "known_wrap": Case(
        "i64.const -1; i32.wrap_i64; halt",
        "i32.const -1; halt",
        "local.get 0; i32.wrap_i64; halt",
    ),
    "wrap_of_widened": Case(
        "i32.const 7; i64.extend_i32_u; i32.wrap_i64; halt",
        "i32.const 7; halt",
        "local.get 0; i64.extend32_s; i32.wrap_i64; halt",
    ),
    "known_static_load": Case(
        "i64.const 1; static.load; halt", "static.get t; halt", "i64.const 3; static.load; halt"
    ),
    "known_static_store": Case(
        "local.get 0; i64.const 0; static.store; halt",
        "local.get 0; static.set s; halt",
        "local.get 0; i64.const -1; static.store; halt",
    ),
    "store_to_itself": Case(
        "local.get 0; local.set 0; static.get f; static.set f; halt",
        "halt",
        "local.get 0; local.set 1; local.get 0; static.set 0; halt",
    ),
    "unused_value": Case("f64.const 1.5; drop; halt", "halt", "i64.load 0; drop; halt"),
    "unused_result": Case(
        "f64.add; drop; halt",
        "drop; drop; halt",
        "i64.div_s; drop; i32.rem_u; drop; i32.trunc_f64_s; drop; f64.fma; drop; halt",
    ),
    "swap_back": Case("swap; swap; halt", "halt", "swap; dup; swap; halt"),
    "swap_of_equals": Case("dup; swap; halt", "dup; halt", "dup; drop; swap; halt"),
    "swap_before_either_order": Case(
        "swap; i64.mul; halt", "i64.mul; halt", "swap; i64.sub; swap; f64.add; halt"
    ),
    "no_operation": Case("nop; enter_jit; nop; halt", "enter_jit; halt", "enter_jit; halt"),
    "equal_to_zero": Case(
        "i32.const 0; i32.eq; halt",
        "i32.eqz; halt",
        "i32.const 1; i32.eq; f64.const 0; f64.eq; halt",
    ),
    "zero_test_of_widened": Case(
        "i64.extend_i32_u; i64.eqz; halt", "i32.eqz; halt", "i32.wrap_i64; i32.eqz; halt"
    ),
    "boolean_unequal_zero": Case(
        "i64.lt_s; i32.const 0; i32.ne; halt",
        "i64.lt_s; halt",
        "i64.lt_s; i32.const 1; i32.ne; i32.add; i32.const 0; i32.ne; halt",
    ),
    "widened_boolean_unequal_zero": Case(
        "f64.lt; i64.extend_i32_s; i64.const 0; i64.ne; halt",
        "f64.lt; halt",
        "i32.wrap_i64; i64.extend_i32_s; i64.const 0; i64.ne; halt",
    ),
    "double_negation": Case(
        "f64.lt; i32.eqz; i32.eqz; halt", "f64.lt; halt", "local.get 1; i32.eqz; i32.eqz; halt"
    ),
    "negated_comparison": Case(
        "i64.lt_u; i32.eqz; halt", "i64.ge_u; halt", "f64.lt; i32.eqz; halt"
    ),
    "branch_on_nonzero": Case(
        "i64.const 0; i64.ne; jump_if a; trap; :a; halt",
        "i64.eqz; jump_unless a; trap; :a; halt",
        "i64.const 1; i64.ne; jump_if a; trap; :a; halt",
    ),
    "branch_on_negation": Case(
        "i32.eqz; jump_unless a; trap; :a; halt",
        "jump_if a; trap; :a; halt",
        "i64.eqz; jump_unless a; trap; :a; halt",
    ),
    "known_branch": Case(
        "i32.const 0; jump_if a; i32.const 2; jump_if a; trap; :a; halt",
        "jump a; trap; :a; halt",
        "local.get 1; jump_if a; trap; :a; halt",
    ),
    "branch_over_jump": Case(
        "jump_if a; jump b; :c; :a; trap; :b; jump c",
        "jump_unless b; :c; :a; trap; :b; jump c",
        "jump_if a; jump b; nop; :a; trap; :b; halt",
    ),
    "branch_and_jump_alike": Case(
        "jump_if a; jump a; trap; :a; halt",
        "drop; jump a; trap; :a; halt",
        "jump_if a; jump b; :b; trap; :a; halt",
    ),
    "jump_to_next": Case(
        "jump a; :b; :a; jump_if b; halt", ":b; :a; jump_if b; halt", "jump a; trap; :a; halt"
    ),
    "branch_to_next": Case(
        "jump_unless a; :a; jump a", "drop; :a; jump a", "jump_unless a; nop; :a; jump a"
    ),
    "jump_to_jump": Case(
        "jump_if a; jump_table a c; :a; :b; jump c; :c; halt",
        "jump_if c; jump_table c c; :a; :b; jump c; :c; halt",
        "jump_if a; jump b; :a; jump_if b; :b; jump b",
    ),
    "unreachable_line": Case(
        "jump a; drop; trap; :a; return 0; halt",
        "jump a; :a; return 0",
        "jump a; :a; jump_if a; call main; halt",
    ),
    "unused_label": Case(":a; :b; jump b", ":b; jump b", ":b; jump b"),
}


def listing(body: str) -> Listing:
    return parse(HEAD + body.replace("; ", "\n"))


def rewrite(body: str, *rules: Rule) -> str:
    return write(peephole.optimize(listing(body), rules))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_turns_its_example_into_what_is_expected(rule: Rule) -> None:
    case = CASES[rule.name]
    assert rewrite(case.before, rule) == write(listing(case.after))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_leaves_its_near_miss_alone(rule: Rule) -> None:
    case = CASES[rule.name]
    assert rewrite(case.near_miss, rule) == write(listing(case.near_miss))


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if len(rule.pattern) > 1], ids=lambda rule: rule.name
)
def test_label_inside_the_window_keeps_a_rule_from_firing(rule: Rule) -> None:
    items = listing(CASES[rule.name].before).functions[0].items
    apart: list[Item] = []
    for number, item in enumerate(items):
        # A label before every line, so that no window of two lines is left.
        apart += [Label(f"x{number}"), item]
    function = FunctionListing("main", items=apart)
    whole = dataclasses.replace(listing("halt"), functions=[function])
    assert peephole.optimize(whole, [rule]).functions[0].items == apart


def test_every_rule_has_a_case_and_every_case_a_rule() -> None:
    assert list(CASES) == [rule.name for rule in RULES]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_names_only_mnemonics_that_exist_and_says_what_it_does(rule: Rule) -> None:
    assert rule.summary.endswith(".")
    for keys in rule.pattern:
        assert keys
        assert all(key == LABEL or key in BY_MNEMONIC for key in keys)


def test_optimizing_twice_is_optimizing_once() -> None:
    for case in CASES.values():
        once = peephole.optimize(listing(case.before))
        assert write(peephole.optimize(once)) == write(once)


def test_argument_is_left_as_it_was() -> None:
    before = listing(CASES["branch_over_jump"].before)
    text = write(before)
    peephole.optimize(before)
    assert write(before) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # What the classic form and Skiff make of conditions ends as one branch.
        (
            "i64.lt_s; i64.extend_i32_u; i64.const 0; i64.ne; jump_if a; trap; :a; halt",
            "i64.lt_s; jump_if a; trap; :a; halt",
        ),
        (
            "f64.lt; i64.extend_i32_u; i64.eqz; jump_if a; trap; :a; halt",
            "f64.lt; jump_unless a; trap; :a; halt",
        ),
        (
            "f32.lt; i64.extend_i32_u; i64.eqz; i64.extend_i32_u; i64.eqz; jump_if a; :b; jump b; :a",
            "f32.lt; jump_if a; :b; jump b; :a",
        ),
        ("local.get 0; i64.const 1; i64.add; i64.const 1; i64.sub; halt", "local.get 0; halt"),
        # Jumps around each other vanish with the labels that they needed.
        ("jump a; :b; jump c; :a; jump b; :c; halt", "halt"),
        ("local.get 1; jump_if b; :b; halt", "halt"),
        ("i32.const 1; jump_unless a; local.get 0; halt; :a; trap", "local.get 0; halt"),
    ],
)
def test_rules_work_together(before: str, after: str) -> None:
    assert rewrite(before, *RULES) == write(listing(after))


def test_jumps_in_a_circle_stay_a_circle() -> None:
    for body in ("jump a; :b; jump a; :a; jump b", ":a; jump a", "jump a; :b; :a; jump b"):
        result = peephole.optimize(listing(body)).functions[0].items
        assert [type(item) for item in result] == [Label, Line]


def test_rewritten_lines_keep_the_position_of_what_has_the_effect() -> None:
    text = ".static s i64\n.function main\ni64.const 0\n  static.load\ni64.eqz\n jump_if a\n:a halt"
    lines = [
        i for i in peephole.optimize(parse(text, "p")).functions[0].items if isinstance(i, Line)
    ]
    assert [(line.row.mnemonic, str(line.position)) for line in lines] == [("halt", "p:7:4")]
    text = ".static s i64\n.function main\ni64.const 0\n  static.load\nhalt"
    lines = [
        i for i in peephole.optimize(parse(text, "p")).functions[0].items if isinstance(i, Line)
    ]
    assert [(line.row.mnemonic, str(line.position)) for line in lines] == [
        ("static.get", "p:4:3"),
        ("halt", "p:5:1"),
    ]


LINES = 50_000


def _chain(names: list[str]) -> str:
    links = [f":{name}\njump {onward}" for name, onward in itertools.pairwise(names)]
    return "\n".join([f"jump {names[0]}", *links, f":{names[-1]}", "halt"])


LONG = {
    "increments": "local.get 0\n" + "i64.const 1\ni64.add\n" * (LINES // 2) + "halt",
    "jumps forward": _chain([f"l{n}" for n in range(LINES // 2)]),
    "jumps in turns": "jump_if l1\n"
    + "\n".join(f":l{n}\nlocal.get 1\njump_if l{n + 1}\njump l{n + 2}" for n in range(LINES // 4))
    + f"\n:l{LINES // 4}\n:l{LINES // 4 + 1}\nhalt",
    "dead code": "halt\n"
    + "\n".join(f":l{n}\njump l{n + 1}" for n in range(LINES // 2))
    + f"\n:l{LINES // 2}\nhalt",
    "dead code backward": "halt\n"
    + "\n".join(f":l{n}\njump l{n - 1 if n else LINES // 2}" for n in range(LINES // 2))
    + f"\n:l{LINES // 2}\nhalt",
    "nothing to do": "local.get 0\ni64.const 3\ni64.mul\nlocal.set 0\n" * (LINES // 4) + "halt",
    "labels in a heap": "jump_if l0\n" * 10 + "".join(f":l{n}\n" for n in range(LINES)) + "halt",
}


@pytest.mark.nightly
@pytest.mark.parametrize("shape", sample(LONG, 1))
def test_work_grows_no_faster_than_the_listing(shape: str) -> None:
    whole = parse(HEAD + LONG[shape])
    work = peephole.Work()
    result = peephole.optimize(whole, work=work)
    count = len(whole.functions[0].items)
    assert len(result.functions[0].items) <= count
    assert work.rewrites <= 2 * count
    assert work.looks <= 12 * count
