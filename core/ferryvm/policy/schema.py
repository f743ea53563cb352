# SPDX-License-Identifier: Apache-2.0
"""What a policy may say, for editors (JSON schema) and for readers (tables in docs/policies.md).

Both come from the models in `ferryvm.policy.keys` and from the facts there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic.fields import FieldInfo

from ferryvm.policy import fact, keys
from ferryvm.policy.fact import Fact, FactType
from ferryvm.policy.fault import show
from ferryvm.policy.predicate import ANY, NOT

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_COMPARISON = r"\s*(>=|<=|>|<|==|!=)\s*[+-]?\d[\d_.eE+-]*\s*"
_COMPARISONS = f"^{_COMPARISON}(,{_COMPARISON})*$"


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
    definitions["When"] = _when()
    # Links of the page lead nowhere in an editor.
    return {"$schema": _DIALECT, "title": "ferryvm policy", **_plain(schema)}


def _plain(part: Any) -> Any:
    """The schema with descriptions free of links."""
    if isinstance(part, dict):
        plain = {key: _plain(value) for key, value in part.items()}
        if isinstance(part.get("description"), str):
            plain["description"] = keys.LINK.sub(r"\1", " ".join(part["description"].split()))
        return plain
    return [_plain(element) for element in part] if isinstance(part, list) else part


def _when() -> dict[str, Any]:
    """The schema of a condition: facts by their full names, and as tables of dotted keys."""
    properties: dict[str, Any] = {}
    meanings = fact.meanings()
    for name, one in fact.vocabulary().items():
        wanted = {"description": meanings[name], **_wanted(one)}
        properties[name] = wanted
        first, dot, rest = name.partition(".")
        if dot:
            group = properties.setdefault(first, _closed_table())
            group["properties"][rest] = wanted
    reference = {"$ref": "#/$defs/When", "minProperties": 1}
    properties[ANY] = {
        "type": "array",
        "items": reference,
        "minItems": 1,
        "description": "One of these conditions must hold.",
    }
    properties[NOT] = {**reference, "description": "This condition must not hold."}
    properties[fact.PLUGIN] = {"type": "object", "description": "Facts from plugins."}
    return {
        **_closed_table(),
        "properties": properties,
        "patternProperties": {rf"^{fact.PLUGIN}\.[^.]+\.[^.]+$": {}},
    }


def _closed_table() -> dict[str, Any]:
    return {"type": "object", "properties": {}, "additionalProperties": False}


def _wanted(one: Fact) -> dict[str, Any]:
    if one.type is FactType.TRUTH:
        value: dict[str, Any] = {"type": "boolean"}
    elif one.values is not None:
        value = {"anyOf": [{"enum": list(one.values)}, {"type": "string", "pattern": r"[*?\[]"}]}
    elif one.type is FactType.TEXT:
        value = {"type": "string"}
    else:
        value = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": _COMPARISONS}]}
    return {"anyOf": [value, {"type": "array", "items": value, "minItems": 1}]}


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
            yield f"| `{name}` | {keys.allowed(field)} | {_default(field)} | {meaning} |"
        yield ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    value = field.default
    return f"`{show(value)}`" if isinstance(value, bool | int | str) and value != "" else "none"


def _fact_table() -> Iterator[str]:
    meanings = fact.meanings()
    yield "### Facts\n"
    yield "| fact | is | meaning |\n|---|---|---|"
    for name, one in fact.vocabulary().items():
        yield f"| `{name}` | {one.type.value} | {meanings[name]} |"
