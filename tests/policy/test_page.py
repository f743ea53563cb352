# SPDX-License-Identifier: Apache-2.0
"""docs/policies.md: its tables are the model's, its policies are checked, its messages real."""

from __future__ import annotations

import re
from pathlib import Path

from ferryvm.policy.check import KnownBackends, read_text
from ferryvm.policy.schema import markdown

PAGE = (Path(__file__).parents[2] / "docs" / "policies.md").read_text(encoding="utf-8")
INTERPRETERS = ("reference", "switch", "threaded")
KNOWN = KnownBackends((*INTERPRETERS, "llvm", "opencl"), INTERPRETERS, ("llvm", "opencl"))
POLICY = re.compile(r"^```toml\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def test_the_tables_are_what_the_model_gives() -> None:
    headings = re.compile(r"^(?=### )", re.MULTILINE)
    chunks = [chunk.rstrip() for chunk in headings.split(markdown()) if chunk]
    assert len(chunks) == 6
    missing = [chunk.splitlines()[0] for chunk in chunks if f"{chunk}\n\n" not in PAGE]
    assert missing == [], "see `ferry policy schema --markdown`"


def test_each_policy_on_the_page_has_the_faults_that_the_page_shows() -> None:
    policies = POLICY.findall(PAGE)
    assert len(policies) == 3
    for text, expected in policies:
        found = read_text(text, "mine.toml", KNOWN).faults
        assert "".join(f"{fault}\n" for fault in found) == expected


def test_each_form_of_a_condition_on_the_page_is_one() -> None:
    forms = re.findall(r"^\| `(.* = .*)` \| ", PAGE, re.MULTILINE)
    assert len(forms) == 8
    for form in forms:
        text = f'[[rule]]\nwhen = {{ {form} }}\nbackends = ["llvm"]\n'
        assert read_text(text, "mine.toml", KNOWN).faults == ()
