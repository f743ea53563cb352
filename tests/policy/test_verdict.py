# SPDX-License-Identifier: Apache-2.0
"""The JSON schema and the checker give the same verdict on a document, but for what is listed
here."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from ferryvm.policy.fact import vocabulary
from ferryvm.policy.schema import json_schema

from ..tier import examples, together
from .sample import check

VALIDATOR = jsonschema.Draft202012Validator(json_schema())

GOOD = """
-
action = "compile"; backends = ["llvm"]
action = "interpret"
action = "interpret"; backends = []
backends = [{ name = "llvm", threshold = 1, optimize = 0, recompile_limit = 0 }, "opencl"]
when = {}
when = { kind = "loop" }
when = { kind = "l*" }
when = { kind = ["n?st", "*"] }
when = { kind = "[lx]oop" }
when = { kind = "*o*p*" }
when = { kind = "l[*?o]op" }
when = { kind = "scope*" }
when = { floats = 0 }
when = { floats = [1, 0.5] }
when = { work = 0 }
when = { work = 2.0 }
when = { work = 1_000_000_000_000_000_000 }
when = { work = " > 1_0.5e-3,<=+3E003 " }
when = { work = "> -1" }
when = { any = [{ work = "< 0" }, { depth = 2 }] }
when = { not = { floats = "> 1" } }
when = { machine.cpus = 1 }
when = { "machine.cpus" = 1 }
when = { "mix.heap" = 1, mix.control = 2 }
when = { plugin.a.b = true }
when = { plugin.a.b = [-1.5, "> 2", "> two", "", false] }
when = { "plugin.a.b" = 1 }
when = { "plugin.a" = { b = 1 } }
when = { plugin."a.b" = 1 }
when = { plugin = { a = { b = 1, c = "*" }, "d.e" = ["x"] } }
"""
"""Rules, each in a line, with `;` between keys; without backends they have llvm."""

BAD = """
action = "compile"; backends = []
backends = []
action = "interpret"; backends = ["llvm"]
action = "interpret"; backends = [{ name = "llvm" }]
action = "other"
backends = [{}]
backends = [{ threshold = 3 }]
backends = [{ name = "llvm", threshold = 0 }]
backends = [{ name = "llvm", optimize = 4 }]
backends = [{ name = "llvm", retry_after = 1.5 }]
backends = [[]]
backends = "llvm"
name = 3
when = { plugin = {} }
when = { plugin = 1 }
when = { plugin.a = 1 }
when = { plugin.a = {} }
when = { plugin.a.b = [] }
when = { plugin.a.b = {} }
when = { plugin.a.b.c = 1 }
when = { "plugin.a" = 1 }
when = { "plugin.a" = {} }
when = { "plugin.a.b" = [] }
when = { "plugin.a.b.c" = 1 }
when = { plugin."a.b.c" = 1 }
when = { plugin."a.b".c = 1 }
when = { plugin.a.b = inf }
when = { plugin.a.b = 1e19 }
when = { plugin.a.b = "> 1e400" }
when = { plugin.a.b = "> 2, 3" }
when = { plugin.a.b = [[1]] }
when = { machine = {} }
when = { machine.cores = 1 }
when = { mix = {} }
when = { mix = 1 }
when = { kind = "z*" }
when = { kind = "*z" }
when = { kind = ["loop", "x?"] }
when = { kind = "loops*" }
when = { kind = "" }
when = { kind = [] }
when = { kind = 1 }
when = { floats = 2 }
when = { floats = -0.5 }
when = { floats = [0.5, 1.5] }
when = { floats = true }
when = { work = -1 }
when = { work = 1.5 }
when = { work = inf }
when = { work = 1e19 }
when = { work = 99999999999999999999999999999999 }
when = { work = ">= 1e400" }
when = { work = ">= inf" }
when = { work = "=> 1" }
when = { work = "> 1," }
when = { work = "> .5" }
when = { work = "" }
when = { marked = 1 }
when = { marked = [] }
when = { any = [] }
when = { any = [{}] }
when = { any = [{ floats = 2 }, { depth = 2 }] }
when = { not = {} }
when = { not = { work = -1 } }
when = { all = [{ depth = 2 }] }
when = 1
"""

UNSAID = """
backends = ["no such"]
backends = [{ name = "llvm", threshold = 1.0 }]
when = { machine.cpus = 1, "machine.cpus" = 1 }
when = { work = "> 10, < 5" }
when = { work = "< 0" }
when = { floats = "> 1" }
when = { depth = 2, any = [{ work = "< 0" }] }
when = { not = { kind = "*" } }
when = { kind = "l*t" }
when = { floats = nan }
when = { plugin.a.b = nan }
when = { work = "> 9999999999999999999" }
"""
"""What the checker refuses and the schema does not; docs/policies.md says so."""


def _rules(lines: str) -> list[str]:
    rules = []
    for line in lines.strip().splitlines():
        keys = line.replace("; ", "\n").strip("-")
        has_backends = "action =" in keys or "backends =" in keys
        rules.append(f"[[rule]]\n{keys}\n" + ("" if has_backends else 'backends = ["llvm"]\n'))
    # A rule with the action to compile has to have them.
    return [rule.replace('"other"', '"other"\nbackends = ["llvm"]') for rule in rules]


def _verdicts(text: str) -> tuple[bool, bool]:
    """What the schema and the checker say: whether the document is good."""
    return VALIDATOR.is_valid(tomli.loads(text)), check(text).policy is not None


@pytest.mark.parametrize("text", _rules(GOOD))
def test_what_is_good_passes_both(text: str) -> None:
    assert _verdicts(text) == (True, True)


@together("text", ["[[rule]]", "[[rule]]\naction = 'compile'", *_rules(BAD)])
def test_what_is_bad_passes_neither(text: str) -> None:
    assert _verdicts(text) == (False, False)


@pytest.mark.parametrize("text", _rules(UNSAID))
def test_what_a_schema_cannot_say_the_checker_does(text: str) -> None:
    assert _verdicts(text) == (True, False)


NUMBERS = st.integers(-2, 3) | st.sampled_from([0.25, 1.0, 1.5, 1e18, -(10**18)])
COMPARISONS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", " ", ">", "> ", "<=", "== ", "=", "!=\n"]),
    st.sampled_from(["", "-", "+"]),
    NUMBERS | st.sampled_from(["1_0", "_1", "0x1", "1e+4", "1e400", "inf", ".5", "5.", "\u0663"]),
)
TEXTS = (
    st.lists(COMPARISONS, max_size=2).map(",".join)
    | st.text("lop*?[]!-", max_size=5)
    | st.sampled_from(["loop", "nest", "function", "scope", "program"])
)
SCALARS = NUMBERS | TEXTS | st.booleans() | st.sampled_from([1e19, -(10**19), float("inf")])
VALUES = SCALARS | st.lists(SCALARS, max_size=2)
TABLES = st.dictionaries(st.sampled_from(["a", "b", "a.b", "cpus", "heap"]), VALUES, max_size=2)
NAMES = [*vocabulary(), "plugin.a.b", "plugin.a", "plugin", "machine", "mix", "x", ""]
CONDITIONS = st.dictionaries(st.sampled_from(NAMES), VALUES | TABLES, max_size=2)

UNSAID_WORDS = re.compile("never holds|unknown kind|asked for twice")


@examples(35)
@given(CONDITIONS | st.fixed_dictionaries({"plugin": st.fixed_dictionaries({"a": TABLES})}))
def test_the_verdicts_on_any_condition_are_equal_but_for_what_a_schema_cannot_say(
    when: dict[str, object],
) -> None:
    text = f'[[rule]]\nbackends = ["llvm"]\nwhen = {_toml(when)}\n'
    by_schema, by_checker = _verdicts(text)
    errors = [str(one) for one in check(text).faults if not one.fault.is_warning]
    if not errors or not all(map(UNSAID_WORDS.search, errors)):
        assert by_schema == by_checker


def _toml(value: object) -> str:
    """A value as TOML, tables inline."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(k)} = {_toml(v)}' for k, v in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value) if isinstance(value, float) else json.dumps(value)
