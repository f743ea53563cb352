# SPDX-License-Identifier: Apache-2.0
"""Policies as the engine has them: built of a file, the default one, and those of `--backend`."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from ferryvm import policy
from ferryvm.policy import Action, Choice, Options, Policy, Profile, Rule, Shadow
from ferryvm.policy import check as checker
from ferryvm.policy.check import KnownBackends
from ferryvm.policy.condition import Like, Within
from ferryvm.policy.model import PROMPT, build_ours
from ferryvm.policy.predicate import Test, When

from .sample import LOOP, MACHINE, check, loop

FULL = """
interpreter = "reference"
whole_program = true
[profile]
enabled = true
loop_threshold = 1
function_threshold = 2
scope_threshold = 3
delay_ms = 4
[shadow]
against = "threaded"
[[rule]]
name = "a"
when = { kind = "loop", any = [{ work = "> 5" }], not = { name = "x*" } }
[[rule.backends]]
name = "llvm"
[[rule.backends]]
name = "opencl"
threshold = 4
optimize = 3
background = false
speculate = true
cache = false
required = true
guard_limit = 5
recompile_limit = 6
retry_after = 7
device = "gpu"
recompile_after = 8
threads = 9
lanes = 16
guard_share = 0.5
observe_items = 10
[[rule]]
action = "interpret"
"""


def test_every_key_of_a_file_arrives_in_the_policy() -> None:
    when = When(
        (Test("kind", (Like("loop"),)),),
        (When((Test("work", (Within(((">", 5),)),)),)),),
        When((Test("name", (Like("x*"),)),)),
    )
    options = Options(4, 3, False, True, False, True, 5, 6, 7, "gpu", 8, 9, 16, 0.5, 10)
    rules = (
        Rule("a", when, Action.COMPILE, (Choice("llvm"), Choice("opencl", options))),
        Rule(action=Action.INTERPRET),
    )
    assert check(FULL).policy == Policy(
        "reference", Profile(True, 1, 2, 3, 4), rules, True, Shadow("threaded")
    )


def test_an_empty_file_interprets_everything() -> None:
    read = check("")
    assert (read.policy, read.faults) == (Policy(), ())


@pytest.mark.parametrize(
    ("text", "shadow"),
    [
        ("", None),
        ("[shadow]", Shadow("reference")),
        ("[shadow]\nenabled = true\nagainst = 'llvm'", Shadow("llvm")),
        ("[shadow]\nenabled = false", None),
    ],
)
def test_a_shadow_runs_where_there_is_a_table_that_does_not_turn_it_off(
    text: str, shadow: Shadow | None
) -> None:
    read = check(text).policy
    assert read is not None
    assert read.shadow == shadow


def test_a_document_that_was_not_checked_is_refused() -> None:
    with pytest.raises(ValueError, match=r"when\.any: found \[\]"):
        build_ours({"rule": [{"when": {"any": []}, "backends": ["llvm"]}]})


def test_policies_are_frozen() -> None:
    for part in (Policy(), Profile(), Shadow(), Rule(), Choice("llvm"), Options()):
        (name, *_) = (field.name for field in dataclasses.fields(part))
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, name, None)


# --- the default ----------------------------------------------------------------------------


def test_the_checker_reads_the_default_policy_as_the_light_way_does() -> None:
    reading = checker.read(policy.DEFAULT, KnownBackends(("llvm", "opencl", "threaded")))
    assert reading.faults == ()
    assert reading.policy == policy.default()


def test_the_default_states_the_thresholds_that_files_without_a_profile_get() -> None:
    assert policy.default().profile == Profile(delay_ms=5)


def test_the_default_compiles_what_is_hot_in_the_background() -> None:
    rules = policy.default()
    assert rules.interpreter == "threaded"
    assert not rules.whole_program
    for facts in (LOOP, loop(kind="function"), loop(kind="scope", marked=True)):
        decision = policy.choose(rules, facts, MACHINE)
        assert decision.rule is not None
        (choice,) = decision.rule.backends
        assert choice == Choice("llvm")
        assert choice.options.background


def test_the_default_waits_longer_where_compiling_takes_time_from_the_program() -> None:
    alone = dataclasses.replace(MACHINE, cpus=1)
    decision = policy.choose(policy.default(), LOOP, alone)
    assert decision.rule is not None
    threshold = decision.rule.backends[0].options.threshold
    assert threshold is not None
    assert threshold > 10 * policy.default().profile.loop_threshold


def test_the_default_policy_needs_no_checker() -> None:
    code = (
        "import sys; from ferryvm import policy; policy.default()\n"
        "print(*sorted({'pydantic', 'ferryvm.policy.check'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# --- backends by name -----------------------------------------------------------------------


def test_a_compiler_by_name_takes_the_whole_program_at_once_or_it_is_an_error() -> None:
    named = Policy.for_compiler("llvm")
    assert named.whole_program
    assert named.profile == PROMPT
    for kind in ("program", "function"):
        decision = policy.choose(named, loop(kind=kind), MACHINE)
        assert decision.rule is not None
        assert decision.rule.backends == (
            Choice("llvm", Options(optimize=3, background=False, required=True)),
        )


def test_an_interpreter_by_name_counts_and_compiles_nothing() -> None:
    named = Policy.for_interpreter("switch")
    assert (named.interpreter, named.rules, named.whole_program) == ("switch", (), False)
    assert not named.profile.enabled
