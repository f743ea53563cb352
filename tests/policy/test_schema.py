# SPDX-License-Identifier: Apache-2.0
"""The JSON schema that editors use, and how the checker's model, the engine's and it agree."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import jsonschema
import pytest
import tomli

from ferryvm.policy import DEFAULT, Options, Policy, Profile, Rule, Shadow
from ferryvm.policy import model as engine
from ferryvm.policy.fact import vocabulary
from ferryvm.policy.keys import TABLES
from ferryvm.policy.schema import json_schema

from ..tier import together
from .test_check import _cases

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.toml"))
SCHEMA = json_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

NOT_IN_A_SCHEMA = re.compile(r"unknown backend|asked for twice|never holds|not TOML|found again")
"""What depends on more than one key, on the backends there are, or on how a file is written."""


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", [*CONFIGS, DEFAULT], ids=lambda path: path.name)
def test_the_schema_takes_every_policy_that_is_shipped(path: Path) -> None:
    VALIDATOR.validate(tomli.loads(path.read_text(encoding="utf-8")))


@together("case", _cases("mistakes.txt"))
def test_the_schema_refuses_what_the_checker_refuses(case: tuple[str, str]) -> None:
    text, message = case
    if not NOT_IN_A_SCHEMA.search(message):
        assert not VALIDATOR.is_valid(tomli.loads(text))


@pytest.mark.parametrize(("text", "message"), _cases("warnings.txt"))
def test_the_schema_takes_what_is_only_warned_of(text: str, message: str) -> None:
    assert VALIDATOR.is_valid(tomli.loads(text))


def test_the_schema_takes_each_form_of_a_condition() -> None:
    text = """
    kind = ["loop", "n*"]
    "machine.cpus" = 1
    machine.memory = ">= 8e9, < 1_000_000_000_000"
    mix.heap = [0, "> 3"]
    "plugin.gpu.name" = "A*"
    plugin.gpu.devices = 2
    any = [{ marked = true }, { not = { floats = 0.5 } }]
    """
    when = tomli.loads(text)
    VALIDATOR.validate({"rule": [{"when": when, "backends": ["llvm"]}]})


def test_every_key_and_fact_is_explained_in_the_schema() -> None:
    for place, table in TABLES.items():
        properties = (SCHEMA["$defs"][table.__name__] if place else SCHEMA)["properties"]
        assert set(properties) == set(table.model_fields)
        assert all("](" not in key["description"] for key in properties.values())
    facts = SCHEMA["$defs"]["When"]["properties"]
    assert set(vocabulary()) <= set(facts)
    assert all(facts[name]["description"] for name in vocabulary())


@pytest.mark.parametrize(
    ("place", "kind", "renamed"),
    [
        ((), Policy, {"rule": "rules"}),
        (("profile",), Profile, {}),
        (("rule",), Rule, {}),
        (("shadow",), Shadow, {"enabled": None}),
        (("rule", "backends"), Options, {"name": None}),
    ],
)
def test_a_file_has_a_key_for_every_field_of_the_engine_s_model(
    place: tuple[str, ...], kind: type, renamed: dict[str, str | None]
) -> None:
    keys = {renamed.get(name, name) for name in TABLES[place].model_fields} - {None}
    assert dataclasses.is_dataclass(kind)
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    assert keys == set(fields)
    for name, field in TABLES[place].model_fields.items():
        if (
            isinstance(field.default, bool | int | str)
            and name in fields
            and name not in ("action", "place")
        ):
            assert field.default == fields[name]


def test_an_action_in_a_file_is_one_of_the_engine_s() -> None:
    allowed = SCHEMA["$defs"]["RuleKeys"]["properties"]["action"]
    assert allowed["enum"] == [action.value for action in engine.Action]
    assert allowed["default"] == Rule().action.value
    allowed = SCHEMA["$defs"]["RuleKeys"]["properties"]["place"]
    assert allowed["enum"] == [place.value for place in engine.LaunchPlacing]
    assert allowed["default"] == Rule().place.value
