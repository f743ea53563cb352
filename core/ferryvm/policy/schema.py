# SPDX-License-Identifier: Apache-2.0
"""The schema of policies, for editors (JSON schema) and for readers (tables in docs/policies.md).

Both come from the models in `ferryvm.policy.keys` and from the facts there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic.fields import FieldInfo

from ferryvm.policy import fact, keys
from ferryvm.policy.condition import COMPARISON, COMPARISON_LIKE, RANGES
from ferryvm.policy.fact import Fact, FactType
from ferryvm.policy.predicate import ANY, NOT
from ferryvm.toml.allowed import allowed
from ferryvm.toml.fault import show

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_COMPARISONS = f"^{COMPARISON}(,{COMPARISON})*$"

_NAME = "[^.]+"
"""A part of the name of a plugin's fact."""


def json_schema() -> dict[str, Any]:
    """The JSON schema of a policy file."""
    schema = keys.PolicyKeys.model_json_schema()
    definitions = schema["$defs"]
    for name, table in keys.TABLES.items():
        definition = schema if not name else definitions[table.__name__]
        definition.pop("title", None)
        for key in definition["properties"].values():
            key.pop("title", None)
    meaning = keys.RuleKeys.model_fields["when"].description or ""
    definitions["RuleKeys"]["properties"]["when"] = {
        "$ref": "#/$defs/When",
        "description": meaning,
    }
    definitions["RuleKeys"].update(_chain())
    definitions["When"] = _when()
    every = [*fact.vocabulary().values(), fact.open_fact(fact.PLUGIN)]
    definitions.update({_definition(one): _wanted(one) for one in every})
    # Links of the page do not work in an editor.
    return {"$schema": _DIALECT, "title": "ferryvm policy", **_plain(schema)}


def _plain(part: Any) -> Any:
    """The schema with descriptions free of links."""
    if isinstance(part, dict):
        plain = {key: _plain(value) for key, value in part.items()}
        if isinstance(part.get("description"), str):
            plain["description"] = keys.LINK.sub(r"\1", " ".join(part["description"].split()))
        return plain
    return [_plain(element) for element in part] if isinstance(part, list) else part


def _chain() -> dict[str, Any]:
    """The constraint of a rule's action on its backends."""
    action = {"properties": {"action": {"const": "interpret"}}, "required": ["action"]}
    backends = {"required": ["backends"], "properties": {"backends": {"minItems": 1}}}
    return {"if": action, "then": {"properties": {"backends": {"maxItems": 0}}}, "else": backends}


def _when() -> dict[str, Any]:
    """The schema of a condition: facts by their full names, and as tables of dotted keys."""
    properties: dict[str, Any] = {}
    meanings = fact.meanings()
    for name, one in fact.vocabulary().items():
        wanted = {"description": meanings[name], **_reference(one)}
        properties[name] = wanted
        first, dot, rest = name.partition(".")
        if dot:
            group = properties.setdefault(first, {**_closed_table(), "minProperties": 1})
            group["properties"][rest] = wanted
    reference = {"$ref": "#/$defs/When", "minProperties": 1}
    properties[ANY] = {
        "type": "array",
        "items": reference,
        "minItems": 1,
        "description": "One of these conditions must hold.",
    }
    properties[NOT] = {**reference, "description": "This condition must not hold."}
    wanted = _reference(fact.open_fact(fact.PLUGIN))
    facts = _table_of({_NAME: wanted})
    named = _table_of({_NAME: facts, rf"{_NAME}\.{_NAME}": wanted})
    properties[fact.PLUGIN] = {**named, "description": "Facts from plugins: NAME.FACT."}
    before = rf"{fact.PLUGIN}\."
    quoted = {
        key.replace("^", f"^{before}", 1): value
        for key, value in named["patternProperties"].items()
    }
    return {**_closed_table(), "properties": properties, "patternProperties": quoted}


def _closed_table() -> dict[str, Any]:
    return {"type": "object", "properties": {}, "additionalProperties": False}


def _table_of(patterns: dict[str, Any]) -> dict[str, Any]:
    """A nonempty table of keys that match a pattern as a whole."""
    return {
        "type": "object",
        "patternProperties": {f"^{pattern}$": value for pattern, value in patterns.items()},
        "additionalProperties": False,
        "minProperties": 1,
    }


def _definition(one: Fact) -> str:
    """The name of the values that a fact can be required to have."""
    return f"Wanted{one.name if one.values is not None else one.type.name}".title()


def _reference(one: Fact) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{_definition(one)}"}


def _wanted(one: Fact) -> dict[str, Any]:
    """The schema of a condition on a fact, or of a list of conditions."""
    value = {"anyOf": list(_values(one))}
    return {"anyOf": [*value["anyOf"], {"type": "array", "items": value, "minItems": 1}]}


def _values(one: Fact) -> Iterator[dict[str, Any]]:
    if one.type in (FactType.BOOLEAN, FactType.OPEN):
        yield {"type": "boolean"}
    if one.type in RANGES:
        low, high = RANGES[one.type]
        kind = "integer" if one.type is FactType.COUNT else "number"
        yield {"type": kind, "minimum": low, "maximum": high}
        yield {"type": "string", "pattern": _COMPARISONS}
    if one.values is not None:
        yield {"enum": list(one.values)}
        yield {"type": "string", "pattern": _globs(one.values)}
    elif one.type is FactType.TEXT:
        yield {"type": "string"}
    elif one.type is FactType.OPEN:
        yield {"type": "string", "not": {"pattern": COMPARISON_LIKE}}


def _globs(texts: tuple[str, ...]) -> str:
    """Matches each pattern with `*`, `?` or `[` that matches one of some texts, and few others: it
    begins as one of them, up to the first such character, and ends as one of them."""
    starts = dict.fromkeys(text[:end] for text in texts for end in range(1, len(text) + 1))
    ends = dict.fromkeys(text[start:] for text in texts for start in range(len(text)))
    return rf"^({'|'.join(starts)})?[*?\[]([\s\S]*[*?\]])?({'|'.join(ends)})?$"


def markdown() -> str:
    """The tables of docs/policies.md: the keys of each table, then the facts."""
    return "\n".join([*_key_tables(), *_fact_table()])


def _key_tables() -> Iterator[str]:
    for place, table in keys.TABLES.items():
        yield f"### {keys.TITLES[place]}\n"
        if place:
            yield f"{' '.join((table.__doc__ or '').split())}\n"
        yield "| key | allowed | default | meaning |\n|---|---|---|---|"
        for name, field in table.model_fields.items():
            meaning = " ".join((field.description or "").split())
            said = allowed(keys.PolicyKeys, (*place, name))
            yield f"| `{name}` | {said} | {_default(field)} | {meaning} |"
        yield ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    value = field.default
    return (
        f"`{show(value)}`"
        if isinstance(value, bool | int | float | str) and value != ""
        else "none"
    )


def _fact_table() -> Iterator[str]:
    meanings = fact.meanings()
    yield "### Facts\n"
    yield "| fact | is | meaning |\n|---|---|---|"
    for name, one in fact.vocabulary().items():
        yield f"| `{name}` | {one.type.value} | {meanings[name]} |"
